"""What the docs repeat of the code is what the code says: run `python -m docs.generate` when this fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs import generate
from tests.docs.pages import PAGES, ROOT
from tickwork import errors
from tickwork.model.facts import Fact
from tickwork.model.table import Op
from tickwork.model.tasks import Status


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_generated_parts_are_fresh(page: Path) -> None:
    text = page.read_text()
    assert generate.generated(text) == text, "stale: run python -m docs.generate"


def test_every_part_is_used() -> None:
    text = "".join(page.read_text() for page in PAGES)
    assert [name for name in generate.PARTS if f"<!-- generated: {name} -->" not in text] == []


def test_everything_is_described() -> None:
    assert list(generate.STATUSES) == list(Status)
    assert list(generate.OPERATIONS) == list(Op)
    assert list(generate.FACTS) == list(Fact)


def test_the_error_tree_names_every_error() -> None:
    drawn = "\n".join(generate.error_tree())
    classes = [name for name, value in vars(errors).items() if isinstance(value, type) and not name.startswith("_")]
    raised = [name for name in classes if issubclass(getattr(errors, name), Exception)]
    assert [name for name in raised if name not in drawn] == []
