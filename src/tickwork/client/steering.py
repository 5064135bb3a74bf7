"""Moving a task by hand: run it again, or set its status."""

from __future__ import annotations

from tickwork.client.access import Access
from tickwork.client.dependants import cancelled_with
from tickwork.errors import LeaseLost, NotRetryable, TaskNotFound, TickworkError
from tickwork.handlers.options import known_id
from tickwork.ids import is_token_of
from tickwork.model.outcomes import Aborted, Outcome, Stopped, Succeeded
from tickwork.model.tasks import DELAYED, UNKNOWN, Lease, Record, Status
from tickwork.model.transitions import waits_again
from tickwork.store.contract import MANY_MAX, Store


async def retry(access: Access, task_id: str, *, cascade: bool = False) -> list[str]:
    record = await access.record(task_id)
    if record.status.ended:
        return await retry_ended(access, record, cascade=cascade)
    if record.status in DELAYED:
        raise NotRetryable(
            f"task {task_id} is {record.status}: it has not ended, but waits for its time. run_now() "
            "(`tickwork run-now` on the command line) lets it run at once"
        )
    raise NotRetryable(f"task {task_id} is {record.status}: only a task that has ended can be retried")


async def run_now(access: Access, task_id: str) -> None:
    (found,) = await (await access.open_store()).operators.run_now([known_id(task_id)])
    if found is None:
        raise TaskNotFound(task_id)
    if found is Status.BLOCKED:
        raise NotRetryable(f"task {task_id} is blocked: it waits for other tasks, not for its time")
    if found.ended:
        raise NotRetryable(f"task {task_id} has ended already ({found}): retry() (`tickwork retry`) runs it again")


async def retry_ended(
    access: Access, record: Record, only: Status | None = None, *, cascade: bool = False
) -> list[str]:
    """The ids of the tasks that came back with it. `only`: it is as good as not there in any other status."""
    store = await access.open_store()
    if only not in (None, record.status):
        raise TaskNotFound(record.id)
    if record.spec.type == UNKNOWN:
        raise NotRetryable(f"task {record.id} is damaged, and nothing is left of it that could run: delete it")
    await _check_upstreams(store, record)
    followers = await cancelled_with(store, record) if cascade else []
    found = (await store.operators.retry([record.id], only))[0].found
    if found is None or only not in (None, found):
        raise TaskNotFound(record.id)
    ids = [follower.id for follower in followers]
    for start in range(0, len(ids), MANY_MAX):
        await store.operators.retry(ids[start : start + MANY_MAX], Status.CANCELLED)
    return ids


async def _check_upstreams(store: Store, record: Record) -> None:
    """A store leaves alone what cannot run; here is who says why."""
    upstreams = {upstream_id: await store.queries.get(upstream_id) for upstream_id in record.spec.depends_on}
    _, never = waits_again(record, upstreams.get)
    if not never:
        return
    upstream = upstreams[never]
    if upstream is None:
        raise NotRetryable(f"task {record.id} depends on task {never}, which is gone, and never ran: submit it anew")
    raise NotRetryable(
        f"task {record.id} depends on task {never}, which is {upstream.status}: retry that one with cascade=True "
        "(--cascade on the command line), which brings this one back too"
    )


async def set_status(access: Access, task_id: str, wanted: Status, message: str, token: str | None) -> None:
    """Move a task by hand, along the transition table only."""
    record, store = await access.record(task_id), await access.open_store()
    if record.status is Status.RUNNING and wanted.ended:
        await _end_running(store, record, wanted, message, token)
    elif wanted is Status.CANCELLED and not record.status.ended:
        if await store.operators.cancel([task_id], False, message) == [Status.RUNNING]:
            raise LeaseLost(f"task {task_id} began to run meanwhile; nothing was changed")
    elif wanted is Status.READY and record.status.ended:
        await retry_ended(access, record)
    elif wanted is Status.READY and record.status in DELAYED:
        await run_now(access, task_id)
    elif wanted is not record.status:
        raise TickworkError(f"task {task_id} is {record.status} and cannot become {wanted}")


async def _end_running(store: Store, record: Record, wanted: Status, message: str, token: str | None) -> None:
    if not token:
        raise LeaseLost(
            f"task {record.id} is running: its token is needed to end it, which its handler has as ctx.token"
        )
    holds = is_token_of(str(token), record.id, record.fence, record.nonce)
    outcome = _outcome(record.lease, wanted, message)
    if not holds or (await store.tasks.finish([outcome])).verdicts[0].kind == "lost":
        raise LeaseLost(f"task {record.id} is running under another token; nothing was changed")


def _outcome(lease: Lease, wanted: Status, message: str) -> Outcome:
    match wanted:
        case Status.SUCCESS:
            return Succeeded(lease, None, 0, message)
        case Status.CANCELLED:
            return Stopped(lease)
        case _:
            return Aborted(lease, message or "failed by request")
