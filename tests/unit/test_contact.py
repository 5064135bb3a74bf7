"""How an outage of a store is told: once when it begins and once when it ends, whoever met it."""

from __future__ import annotations

import pytest

from tickwork.observe.loggers import Log
from tickwork.store.contact import Contact


@pytest.fixture
def contact() -> Contact:
    return Contact(Log.of(None, "store"))


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().partition(" after")[0] for record in caplog.records]


LOST = "the store cannot be used now, trying again: no route"
MADE = "the store can be used again,"


def test_an_outage_is_two_lines_for_all(contact: Contact, caplog: pytest.LogCaptureFixture) -> None:
    contact.made("heart")
    for _ in range(10):
        contact.lost("heart", "no route")
        contact.lost("worker", "no way")
    assert told(caplog) == [LOST]
    contact.made("worker")
    contact.made("somebody else")
    assert told(caplog) == [LOST], "as long as one of them cannot use it"
    contact.made("heart")
    contact.made("heart")
    assert told(caplog) == [LOST, MADE]


def test_the_end_says_how_long_it_was(contact: Contact, caplog: pytest.LogCaptureFixture) -> None:
    contact.lost("wire", "no route", since=0.0)
    contact.made("wire")
    seconds = float(caplog.records[1].getMessage().removesuffix(" s").rpartition(" ")[2])
    assert seconds > 1, "counted from the beginning, not from when it was told"


def test_who_stops_asking_does_not_hold_up_the_end(contact: Contact, caplog: pytest.LogCaptureFixture) -> None:
    contact.lost("prune", "no route")
    contact.forget("prune")
    assert told(caplog) == [LOST], "nobody knows yet"
    contact.made("heart")
    assert told(caplog) == [LOST, MADE]


def test_a_closed_store_starts_anew(contact: Contact, caplog: pytest.LogCaptureFixture) -> None:
    contact.lost("heart", "no route")
    contact.reset()
    contact.made("heart")
    contact.lost("heart", "no route")
    assert told(caplog) == [LOST, LOST]
