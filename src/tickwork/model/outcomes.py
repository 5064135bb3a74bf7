"""How a run may end, as the worker hands it to the store."""

from __future__ import annotations

from msgspec import Struct

from tickwork.model.tasks import Lease, ParkReason


class Succeeded(Struct, frozen=True, gc=False, tag=True):
    """The handler returned; `result` is its encoded value."""

    lease: Lease
    result: bytes | None = None
    code: int = 0
    message: str = ""
    duration: float = 0.0


class Failed(Struct, frozen=True, gc=False, tag=True):
    """The attempt failed and another follows in `retry_in` milliseconds."""

    lease: Lease
    error: str
    retry_in: int
    duration: float = 0.0


class Aborted(Struct, frozen=True, gc=False, tag=True):
    """The attempt failed for good: retries are spent, or it makes no sense to try again."""

    lease: Lease
    error: str
    duration: float = 0.0


class Snoozed(Struct, frozen=True, gc=False, tag=True):
    """It is to run later; the attempt is given back. `at` is absolute, else `delay` ms from now. The handler asked for
    it, or it could not be called: then `error` says why."""

    lease: Lease
    at: int | None = None
    delay: int = 0
    error: str = ""


class Held(Struct, frozen=True, gc=False, tag=True):
    """A gate did not let it run (see `store/contract/gates.py`). The attempt is given back, and leaves no trace in the
    history. It is ready again after `delay` milliseconds, or when it is woken, and starts next then."""

    lease: Lease
    gate: str
    why: ParkReason
    delay: int


class Released(Struct, frozen=True, gc=False, tag=True):
    """Given back unfinished, without blame: it starts next, wherever there is a free slot."""

    lease: Lease


class Stopped(Struct, frozen=True, gc=False, tag=True):
    """The handler ended because the task was cancelled, or somebody who holds it cancels it and says why."""

    lease: Lease
    duration: float = 0.0
    message: str = ""  # in place of the one that the task has, if there is one


Outcome = Succeeded | Failed | Aborted | Snoozed | Held | Released | Stopped
