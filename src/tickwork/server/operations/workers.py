"""Workers: list, register, heartbeat, capacity, drain."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from tickwork.client.views import seen_at, task_info, worker_info
from tickwork.errors import WorkerNotFound
from tickwork.ids import is_label, name_of
from tickwork.model.info import RemoteWorker, WorkerInfo
from tickwork.model.tasks import Status
from tickwork.server.callers import Right, Role
from tickwork.server.calls import Call
from tickwork.server.operations import operation
from tickwork.server.operations.tasks import Name
from tickwork.server.problems import Refused
from tickwork.server.rows import TaskRow, row_of
from tickwork.store.contract import Query
from tickwork.texts import shown

Capacity = Annotated[int, Meta(ge=1, le=1_000_000)]
RUNNING_MAX = 500
LABELS_MAX = 64
WORKERS_MAX = 10_000  # of a namespace, beyond which none is registered from outside
OWNERS = "worker_owners"  # documents by the id of a worker: the token that has registered it


class NewWorker(Struct, forbid_unknown_fields=True, kw_only=True):
    """A worker outside of the nodes. One with an address is called there, if the nodes allow it."""

    id: Name
    address: Annotated[str, Meta(max_length=500)] = ""
    queues: Annotated[list[Name], Meta(min_length=1, max_length=100)] = field(default_factory=lambda: ["default"])
    task_types: Annotated[list[Name], Meta(max_length=1000)] = []
    labels: dict[str, str] = {}
    weight: Capacity = 1
    capacity: Capacity = 10


class SetWorker(Struct, forbid_unknown_fields=True, kw_only=True):
    """How many tasks it runs at a time, and from which queues; null leaves it as it is."""

    capacity: Capacity | None = None
    queues: Annotated[list[Name], Meta(min_length=1, max_length=100)] | None = None


class WorkerList(Struct, frozen=True, kw_only=True):
    """The workers by name, those that were lost in the last hour among them, and who leads."""

    items: list[WorkerInfo]
    leader: str | None
    term: int | None


class WorkerView(Struct, frozen=True, kw_only=True):
    """A worker and what it runs, the longest first."""

    worker: WorkerInfo
    running: list[TaskRow]


@operation("GET", "/workers", Right.VIEW)
async def list_workers(call: Call) -> WorkerList:
    """The workers, and which node leads."""
    store = await call.space.store()
    members = seen_at(await call.space.members(), store.now())
    leader = await store.members.leader()
    return WorkerList(
        items=[worker_info(each) for each in sorted(members, key=lambda each: each.id)],
        leader=None if leader is None else name_of(leader.id),
        term=None if leader is None else leader.term,
    )


@operation("GET", "/workers/{id}", Right.VIEW)
async def get_worker(call: Call, id: str) -> WorkerView:
    """One worker, and the tasks that it runs."""
    worker = await call.client.get_worker(id)
    store = await call.space.store()
    found, cursor = await store.queries.page(Query(Status.RUNNING, limit=RUNNING_MAX))
    while cursor is not None and sum(each.worker_id == id for each in found) < worker.running:
        more, cursor = await store.queries.page(Query(Status.RUNNING, limit=RUNNING_MAX, cursor=cursor))
        found += more
        if len(found) >= 10 * RUNNING_MAX:
            break
    mine = sorted((each for each in found if each.worker_id == id), key=lambda each: each.started_at or 0)
    return WorkerView(
        worker=worker, running=[row_of(task_info(each, call.client.registry), call.mask) for each in mine[:RUNNING_MAX]]
    )


@operation("POST", "/workers", Right.WORK, status=201, changes="registered a worker")
async def register_worker(call: Call, body: NewWorker) -> WorkerInfo:
    """Make a worker known that is not part of a node; doing it again is its heartbeat.

    What it may run is what is said here. An id that lives elsewhere is refused.
    """
    call.tell(body.id)
    _check_labels(body.labels)
    known = {each.id for each in await call.space.members()}
    if len(known) >= WORKERS_MAX and body.id not in known:
        raise Refused(429, "quota", f"the namespace has {WORKERS_MAX:,} workers already", retry_after=60.0)
    await _own(call, body.id)
    await call.client.register_worker(
        RemoteWorker(
            id=body.id, address=body.address, queues=tuple(body.queues), task_types=tuple(body.task_types),
            labels=body.labels, weight=body.weight, capacity=body.capacity,
        )
    )  # fmt: skip
    if body.id not in known:
        call.space.forget()
    return await call.client.get_worker(body.id)


async def _own(call: Call, worker_id: str) -> None:
    """A worker is of the token that has registered it, while it is up and that token counts. An admin may do all."""
    control = (await call.space.store()).control
    caller = call.caller
    mine, owner = caller.credential or f"{caller.via} {caller.name}", await control.get(OWNERS, worker_id)
    if owner == mine or (owner is not None and caller.role is Role.ADMIN):
        return
    if owner is not None and await _is_up(call, worker_id) and await _counts(call, owner):
        raise _of_other(worker_id)
    if await control.swap(OWNERS, worker_id, owner, mine, WORKERS_MAX):
        return
    if await control.get(OWNERS, worker_id) is not None:  # somebody else was faster
        raise _of_other(worker_id)
    await _forget_owners(call)
    if not await control.swap(OWNERS, worker_id, None, mine, WORKERS_MAX):
        raise Refused(429, "quota", f"the namespace has {WORKERS_MAX:,} workers already", retry_after=60.0)


def _of_other(worker_id: str) -> Refused:
    return Refused(
        409, "worker_of_other",
        f"worker {worker_id} is up and was registered with another token: use that one, another id, or have an admin "
        "unregister it",
    )  # fmt: skip


async def _is_up(call: Call, worker_id: str) -> bool:
    try:
        return (await call.client.get_worker(worker_id)).lost_at is None
    except WorkerNotFound:
        return False


async def _counts(call: Call, owner: str) -> bool:
    kind, _, name = owner.partition(" ")
    return kind != "token" or await call.plane.tokens.live(name) is not None


async def _forget_owners(call: Call) -> None:
    """Of workers that are gone without having left."""
    control, known = (await call.space.store()).control, {each.id for each in await call.space.members()}
    after = ""
    while page := await control.page(OWNERS, after):
        for each in page:
            if each.name not in known:
                await control.swap(OWNERS, each.name, each.text, None)
        after = page[-1].name


def _check_labels(labels: dict[str, str]) -> None:
    """They are as those that tasks may require."""
    if len(labels) > LABELS_MAX:
        raise Refused(400, "bad_value", f"a worker has at most {LABELS_MAX} labels")
    for name, value in labels.items():
        if not is_label(name) or not is_label(value):
            raise Refused(
                400, "bad_value", f"label {shown(name)}: names and values are 1 to 64 letters, digits or ._:/-"
            )


@operation("POST", "/workers/{id}/heartbeat", Right.WORK, changes="gave a heartbeat")
async def beat_worker(call: Call, id: Name) -> WorkerInfo:
    """Say that a worker which was registered here is still there."""
    call.tell(id)
    worker = await call.client.get_worker(id)
    if worker.node:
        raise Refused(
            409, "worker_of_node", f"worker {id} is part of node {worker.node}, which gives its own heartbeat"
        )
    if worker.lost_at is not None:
        raise WorkerNotFound(id)
    await _own(call, id)
    await call.client.register_worker(
        RemoteWorker(
            id=worker.id, address=worker.address, queues=worker.queues, task_types=worker.task_types,
            labels=worker.labels, weight=worker.weight, capacity=worker.capacity,
        )
    )  # fmt: skip
    return await call.client.get_worker(id)


@operation("DELETE", "/workers/{id}", Right.WORK, status=204, changes="unregistered a worker")
async def unregister_worker(call: Call, id: Name) -> None:
    """Forget a worker that was registered here."""
    call.tell(id)
    worker = await call.client.get_worker(id)
    if worker.node:
        raise Refused(409, "worker_of_node", f"worker {id} is part of node {worker.node}: drain it, or stop that node")
    await _own(call, id)
    await call.client.unregister_worker(id)
    control = (await call.space.store()).control
    if (owner := await control.get(OWNERS, id)) is not None:
        await control.swap(OWNERS, id, owner, None)
    call.space.forget()


@operation("PATCH", "/workers/{id}", Right.OPERATE, changes="changed a worker")
async def set_worker(call: Call, id: Name, body: SetWorker) -> WorkerInfo:
    """Let a worker run another number of tasks at a time, or take tasks from other queues, until it ends."""
    call.tell(id, f"capacity {body.capacity}, queues {body.queues}")
    await call.client.set_worker(id, concurrency=body.capacity, queues=body.queues)
    return await call.client.get_worker(id)


@operation("POST", "/workers/{id}/drain", Right.OPERATE, changes="drained a worker")
async def drain_worker(call: Call, id: Name) -> WorkerInfo:
    """Let a worker take no more tasks, and finish those that it runs."""
    call.tell(id)
    await call.client.drain_worker(id)
    return await call.client.get_worker(id)


@operation("POST", "/workers/{id}/resume", Right.OPERATE, changes="resumed a worker")
async def resume_worker(call: Call, id: Name) -> WorkerInfo:
    """Let a worker that drains take tasks again."""
    call.tell(id)
    await call.client.resume_worker(id)
    return await call.client.get_worker(id)


@operation("POST", "/workers/{id}/reset", Right.OPERATE, changes="reset a worker")
async def reset_worker(call: Call, id: Name) -> WorkerInfo:
    """Take back what was changed of a worker: it goes by its own options again."""
    call.tell(id)
    await call.client.reset_worker(id)
    return await call.client.get_worker(id)
