"""Which workers may run a task: by its type, and by what else it needs (see `Spec.kind`)."""

from __future__ import annotations

from collections.abc import Container, Mapping

from tickwork.ids import name_of


def has_needs(needs: str, worker_id: str, labels: Mapping[str, str]) -> bool:
    """Whether a worker has what a task needs (see `Spec.needs`). A task may name a worker with or without the tail that
    makes it one process's own."""
    for need in needs.split(","):
        if need.startswith("@"):
            if need[1:] not in (worker_id, name_of(worker_id)):
                return False
        else:
            label, _, value = need.partition("=")
            if labels.get(label) != value:
                return False
    return True


def may_run(kind: str, types: Container[str], worker_id: str, labels: Mapping[str, str]) -> bool:
    """Whether a worker of these types and labels may run tasks of a kind (see `Spec.kind`)."""
    type_, _, needs = kind.partition(" ")
    return type_ in types and (not needs or has_needs(needs, worker_id, labels))
