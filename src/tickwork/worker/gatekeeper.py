"""Which gates a task has to pass: from what its handler says, and from what was set by hand."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from tickwork.client.limits import apply_limit
from tickwork.config import Config
from tickwork.errors import StoreError
from tickwork.handlers.executor_names import LOCAL
from tickwork.handlers.options import RESERVED
from tickwork.handlers.registry import Registry
from tickwork.model.gates import (
    MARK,
    Book,
    Limit,
    breaker_gate,
    is_whole,
    limit_gate,
    read_book,
    switch_gate,
    switch_names,
    write_book,
)
from tickwork.model.tasks import Spec
from tickwork.observe.loggers import Log
from tickwork.store.contract import Gate, Store

READ_INTERVAL = 1.0  # seconds: so soon what was set by hand counts here
TRIES = 10  # to write what the handlers say, while others write it too


class Gatekeeper:
    """One for all workers of a node. `watches` is False while there is no rule for any task: nothing is asked then."""

    def __init__(self, store: Store, registry: Registry, config: Config, log: Log) -> None:
        self._store = store
        self._registry = registry
        self._breaker = config.breaker
        self._interval = min(READ_INTERVAL, config.scan_interval)
        self._log = log
        self._text: str | None = None
        self.book = Book()
        self.watches = False
        self._look()
        registry.on_change(self._look)

    def close(self) -> None:
        self._registry.off_change(self._look)

    async def run(self) -> None:
        """Follow the rules that are set by hand."""
        declared = False
        while True:
            try:
                if not declared:
                    await self._declare()
                    declared = True
                await self.read()
            except StoreError as error:
                self._log.debug("the rules of limits could not be read: %s", error)
            await asyncio.sleep(self._interval)

    async def read(self) -> None:
        text = await self._store.marks.get(MARK)
        if text != self._text:
            before, self._text, self.book = self.book, text, read_book(text)
            self._look()
            await self._let_go_on(before)

    async def _let_go_on(self, before: Book) -> None:
        """Until now this node has refused tasks also of what was lifted since, and so has shut those gates again."""
        lifted = [switch_gate(of) for of in before.switches if of not in self.book.switches]
        lifted += [breaker_gate(of) for of in before.breakers if of not in self.book.breakers]
        for gate in lifted:
            await self._store.gates.reset(gate)
        old, new = {**before.declared, **before.limits}, {**self.book.declared, **self.book.limits}
        for of in {of for of in (*old, *new) if old.get(of) != new.get(of)}:
            await apply_limit(self._store, of, new.get(of))

    async def _declare(self) -> None:
        """Show what the handlers say to those who have only the store. It counts here in any case."""
        said = self._said()
        for _ in range(TRIES if said else 0):
            text = await self._store.marks.get(MARK)
            book = read_book(text)
            declared = {**book.declared, **said}
            if declared == book.declared or not is_whole(text):
                return
            new = replace(book, version=book.version + 1, declared=declared)
            if await self._store.marks.swap(MARK, text, write_book(new)):
                return

    def _said(self) -> dict[str, Limit]:
        found: dict[str, Limit] = {}
        for kind in self._registry.list():
            entry = self._registry.find(kind)
            if entry is not None and entry.protection.limit is not None:
                found[f"type:{kind}"] = entry.protection.limit
        return found

    def _look(self) -> None:
        entries = [self._registry.find(kind) for kind in self._registry.list()]
        said = any(entry is not None and (entry.protection.limit or entry.protection.breaker) for entry in entries)
        book = self.book
        rules = (book.declared, book.limits, book.switches, book.breakers)
        self.watches = bool(self._breaker or said or any(rules))

    @property
    def stops(self) -> bool:
        return bool(self.book.switches or self.book.breakers)

    def stopped(self, kind: str) -> bool:
        """Whether all tasks of a type are switched off, or its breaker is open by hand."""
        return f"type:{kind}" in self.book.switches or f"type:{kind}" in self.book.breakers

    def gates_of(self, spec: Spec) -> tuple[Gate, ...]:
        """The narrowest first, so that a task waits where it is held longest. Tickwork's own tasks pass none."""
        if spec.queue.startswith(RESERVED):
            return ()
        return (*self._switches(spec), *self._limits(spec), *self._breakers(spec))

    def _switches(self, spec: Spec) -> list[Gate]:
        switches = self.book.switches
        if not switches:
            return []
        return [Gate(switch_gate(name), shut=True) for name in switch_names(spec) if name in switches]

    def _limits(self, spec: Spec) -> list[Gate]:
        entry = self._registry.find(spec.type)
        of_type, of_queue = f"type:{spec.type}", f"queue:{spec.queue}"
        limits = self.book.limits
        # Where another node has the handler, what it has said counts.
        said = self.book.declared.get(of_type) if entry is None else entry.protection.limit
        found = ((of_type, limits.get(of_type, said)), (of_queue, limits.get(of_queue)))
        return [_gate(of, limit, spec.key) for of, limit in found if limit is not None and limit.limits]

    def _breakers(self, spec: Spec) -> list[Gate]:
        entry = self._registry.find(spec.type)
        said = None if entry is None else entry.protection.breaker
        failures, timeout = said or self._breaker or (0, 0.0)
        executor = spec.executor or (LOCAL if entry is None else entry.executor)
        of = f"target:{executor}/{spec.target}" if executor != LOCAL and spec.target else f"type:{spec.type}"
        by_hand = of in self.book.breakers
        if not failures and not by_hand:
            return []
        return [Gate(breaker_gate(of), failures=failures, timeout=round(timeout * 1000), shut=by_hand)]


def _gate(of: str, limit: Limit, key: str | None) -> Gate:
    name = limit_gate(of, key or "") if limit.per_key else limit_gate(of)
    return Gate(name, limit.rate / 1000, limit.most, limit.concurrency)
