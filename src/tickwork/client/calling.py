"""Calls: a task is submitted, and its result waited for, in one."""

from __future__ import annotations

from typing import Any

from tickwork.client.access import Access
from tickwork.client.results import Patience, result_after, wait_for_result
from tickwork.client.submitting import existing, refusal
from tickwork.errors import ConfigError
from tickwork.handlers.options import Options, returns_existing, wanted_durability


async def call(access: Access, type: str, payload: Any, options: Options, patience: Patience) -> Any:
    """What `submit` and then `result` would give. The store is asked within the submit to tell of the end, so that
    nothing more is sent until then."""
    if options.get("cron") is not None:
        raise ConfigError("call waits for the result of one task, and a schedule has none; use submit(cron=...)")
    durability = wanted_durability(options)
    spec = access.spec(type, payload, options)
    access.check_that_tasks_can_run()
    store = await access.open_to_submit()
    with store.hint(spec.id) as ended:
        (receipt,) = await access.send(store, [spec], durability, ended)
        if receipt.verdict == "created":
            return await result_after(access, store, spec.id, ended, patience)
    if returns_existing(options) and (other := existing(receipt, spec)):
        return await wait_for_result(access, other, patience)
    raise refusal(receipt, spec)
