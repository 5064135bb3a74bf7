"""How the alert rules stand, as the leader has left it in the store."""

from __future__ import annotations

from tickwork.clock import to_datetime
from tickwork.model.alerts import MARK, Alert, read_book
from tickwork.store.contract import Store


async def alerts_of(store: Store) -> list[Alert]:
    """Those that fire come first, then those that are pending."""
    book = read_book(await store.marks.get(MARK))
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
        )
        for name, rule in book.rules.items()
    ]
    return sorted(found, key=lambda alert: (("firing", "pending", "ok").index(alert.state), alert.name))
