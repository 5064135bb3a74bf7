"""How the alert rules stand, as the leader has left it in the store, and silencing them."""

from __future__ import annotations

from collections.abc import Callable

from tickwork.client import rulebook
from tickwork.client.access import Access
from tickwork.clock import to_datetime
from tickwork.config.values import nearest
from tickwork.errors import ConfigError, StoreUnavailable
from tickwork.model.alerts import (
    MARK,
    SILENCES,
    SILENCES_MAX,
    Alert,
    AlertSilence,
    Silence,
    read_book,
    read_silences,
    write_silences,
)
from tickwork.store.contract import Store
from tickwork.texts import shown

Silences = dict[str, Silence]


async def alerts_of(store: Store) -> list[Alert]:
    """Those that fire come first, then those that are pending."""
    book = read_book(await store.marks.get(MARK))
    silences = read_silences(await store.marks.get(SILENCES), store.now())
    found = [
        Alert(
            name=name,
            state=rule.state,
            since=to_datetime(rule.since),
            value=rule.value,
            metric=rule.metric,
            operator=rule.operator,
            threshold=rule.threshold,
            duration=rule.duration,
            looked_at=to_datetime(book.at),
            silenced=_shown(silences.get(name)),
        )
        for name, rule in book.rules.items()
    ]
    return sorted(found, key=lambda alert: (("firing", "pending", "ok").index(alert.state), alert.name))


def _shown(silence: Silence | None) -> AlertSilence | None:
    if silence is None:
        return None
    return AlertSilence(
        by=silence.by, note=silence.note, since=to_datetime(silence.at), until=to_datetime(silence.until)
    )


async def silence(access: Access, name: str, until: rulebook.Until, note: str, by: str | None) -> None:
    store = await access.open_store()
    rules, now = read_book(await store.marks.get(MARK)).rules, store.now()
    if name not in rules:  # a slip would be found out only when the alert wakes somebody
        raise ConfigError(f"there is no alert rule {shown(name)} that a leader looks at{nearest(str(name), rules)}")
    end = rulebook.end_of(until, now)
    if not end:
        raise ConfigError("a silence needs an end: say until when, or how long")
    new = Silence(end, now, rulebook.who(access, by), rulebook.short_note(note))

    def edit(silences: Silences) -> Silences:
        if name not in silences and len(silences) >= SILENCES_MAX:
            raise ConfigError(f"{len(silences)} rules are silenced already, which is the most; end some silences first")
        return {**silences, name: new}

    await _change(store, edit)


async def unsilence(access: Access, name: str) -> bool:
    store = await access.open_store()
    found = False

    def edit(silences: Silences) -> Silences:
        nonlocal found
        found = name in silences
        return {rule: each for rule, each in silences.items() if rule != name}

    await _change(store, edit)
    return found


async def _change(store: Store, edit: Callable[[Silences], Silences]) -> None:
    """Write what `edit` makes of those that have not ended. It is called again when others have changed them."""
    for _ in range(rulebook.TRIES):
        text = await store.marks.get(SILENCES)
        new = write_silences(edit(read_silences(text, store.now())))
        if await store.marks.swap(SILENCES, text, new):
            return
    raise StoreUnavailable("the silences of alerts are changed by others all the time")
