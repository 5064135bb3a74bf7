"""What the steps of a random history do to tasks, queues, schedules, workers and servers. Answers are written down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.faults.history import History
from tests.faults.random_crew import Slots
from tests.faults.random_plan import QUEUES, SCHEDULES, TYPES, Step
from tests.faults.random_stores import Place
from tickwork import Scheduler
from tickwork.errors import StoreUnavailable, TickworkError
from tickwork.model.schedules import Overlap
from tickwork.model.tasks import Status
from tickwork.store.contract import Query

TRIES = 10  # of what must be done in the end, each as patient as the client
OVERLAPS = {"always": Overlap.ALLOW, "paused": Overlap.ALLOW, "queued": Overlap.QUEUE}


class Steps:
    def __init__(self, place: Place, slots: Slots, app: Scheduler, history: History) -> None:
        self._place = place
        self._slots = slots
        self._app = app
        self._history = history

    async def take(self, step: Step) -> None:
        if step.do in self._place.faults:
            await self._fault(step)
        else:
            await getattr(self, f"_{step.do}")(**step.args)

    # --- tasks

    async def _submit(self, id: str, type: str, payload: Any, options: dict[str, Any]) -> None:
        """One whose answer did not come is submitted again, as callers are told to do."""
        facts = {"id": id, "type": type, **options}
        self._history.write("submit", **facts)
        for number in range(TRIES):
            try:
                handle = await self._app.submit(
                    type, payload, id=id, if_exists="return" if number else "raise", **options
                )
            except StoreUnavailable:
                continue
            except TickworkError as error:
                self._history.write("refused", id=id, asked="submit", error=f"{error.__class__.__name__}: {error}")
            else:
                self._history.write("ack" if handle.id == id else "refused", id=id, asked="submit")
            return
        self._history.write("unknown", id=id, asked="submit")

    async def _ask(self, asked: str, id: str, call: Callable[[], Awaitable[Any]]) -> None:
        self._history.write("asked", asked=asked, id=id)
        try:
            await call()
        except StoreUnavailable:
            self._history.write("unknown", id=id, asked=asked)
        except TickworkError as error:
            self._history.write("refused", id=id, asked=asked, error=f"{error.__class__.__name__}: {error}")
        else:
            self._history.write("answered", id=id, asked=asked)

    async def _cancel(self, id: str) -> None:
        await self._ask("cancel", id, lambda: self._app.cancel(id))

    async def _force_cancel(self, id: str) -> None:
        await self._ask("cancel by force", id, lambda: self._app.cancel(id, force=True))

    async def _retry(self, id: str) -> None:
        await self._ask("retry", id, lambda: self._app.retry(id))

    async def _delete(self, id: str) -> None:
        await self._ask("delete", id, lambda: self._app.delete(id))

    async def _run_now(self, id: str) -> None:
        await self._ask("run now", id, lambda: self._app.run_now(id))

    # --- queues, types and schedules

    async def put_schedules(self) -> None:
        for name, overlap in OVERLAPS.items():
            await self._app.schedules.put(name, "tick", cron="* * * * * *", misfire="all", overlap=overlap)

    async def _pause(self, what: str, name: str) -> None:
        await self._ask(f"pause {what}", name, lambda: self._switch("pause", what, name))

    async def _resume(self, what: str, name: str) -> None:
        await self._ask(f"resume {what}", name, lambda: self._switch("resume", what, name))

    async def _switch(self, verb: str, what: str, name: str) -> None:
        if what == "schedule":
            await getattr(self._app.schedules, verb)(name)
        else:
            await getattr(self._app.queues, verb if what == "queue" else f"{verb}_type")(name)

    async def _trigger(self, schedule: str) -> None:
        await self._ask("trigger", schedule, lambda: self._app.schedules.trigger(schedule))

    async def _delete_tick(self, schedule: str) -> None:
        """The newest run of a schedule that has ended, if one is found."""
        try:
            store = await self._app._open_bounded()
            page, _ = await store.queries.page(Query(Status.SUCCESS, type="tick", limit=20))
        except StoreUnavailable:
            return
        for record in page:
            if record.spec.schedule_id == schedule:
                await self._delete(record.id)
                return

    async def calm_down(self) -> None:
        """Nothing is paused any more, and no schedule ticks."""
        resumes = [("queue", name) for name in QUEUES] + [("type", name) for name in (*TYPES, "tick")]
        for what, name in resumes:
            await self._insist("resume", what, name)
        for name in SCHEDULES:
            await self._insist("pause", "schedule", name)

    async def _insist(self, verb: str, what: str, name: str) -> None:
        for _ in range(TRIES):
            try:
                await self._switch(verb, what, name)
            except StoreUnavailable:
                continue
            return
        raise AssertionError(f"{what} {name} could not be {verb}d though all faults are over")

    # --- faults

    async def _fault(self, step: Step) -> None:
        args = dict(step.args)
        if self._place.spared(step.do):
            return
        if step.do.endswith("_leader"):
            slot = await self._leader()
            if slot is None:
                return
            await getattr(self._slots, step.do.removesuffix("_leader"))(slot=slot, **args)
        elif hasattr(self._slots, step.do):
            await getattr(self._slots, step.do)(**args)
        else:
            pids: set[int | None] = {self._slots.pid(args["slot"]) if "slot" in args else None}
            await getattr(self._place, step.do)(lambda kind, **times: self._tell(kind, pids, times), **args)

    def _tell(self, kind: str, pids: set[int | None], times: dict[str, Any]) -> None:
        """Of a fault of a link to each process that had it meanwhile, of one of the store to all."""
        if (slot := times.pop("slot", None)) is not None:
            pids = {*pids, self._slots.pid(slot)}
        for pid in pids:
            self._history.write("fault", kind=kind, victim=pid, **times)

    async def _leader(self) -> int | None:
        try:
            leader = await (await self._app._open_bounded()).members.leader()
        except StoreUnavailable:
            return None
        if leader is None:
            return None
        pids = {line["node"]: line["pid"] for line in self._history.lines() if line["what"] == "up"}
        return self._slots.slot_of(pids.get(leader.id, 0))
