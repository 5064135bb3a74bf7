"""From a fact of the log to what is sent: whether a webhook wants it, its id, its delivery and its body. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from tickwork.clock import to_datetime
from tickwork.config.webhooks import Webhook
from tickwork.model.facts import Event, Fact
from tickwork.model.tasks import Record, Spec, Status
from tickwork.payload.depth import is_deep_json

TYPE = "tickwork.webhook"
QUEUES = "tickwork.webhooks."  # and the name of the webhook
TASKS = "task."
ERRORS = (Fact.TASK_RETRYING, Fact.TASK_DIED, Fact.TASK_FAILED)  # those whose detail is an error
MORE_TIME = 5.0  # seconds that a delivery has beside those of its request

STATUSES = {
    Fact.TASK_CLAIMED: Status.RUNNING,
    Fact.TASK_SUCCEEDED: Status.SUCCESS,
    Fact.TASK_RETRYING: Status.RETRYING,
    Fact.TASK_FAILED: Status.FAILED,
    Fact.TASK_DIED: Status.DEAD,
    Fact.TASK_CANCELLED: Status.CANCELLED,
    Fact.TASK_EXPIRED: Status.CANCELLED,
    Fact.TASK_LOST: Status.READY,
    Fact.TASK_RELEASED: Status.READY,
    Fact.TASK_DUE: Status.READY,
}


class Delivery(Struct, frozen=True):
    """The payload of a delivery."""

    webhook: str
    id: str
    event: Event


class Body(Struct, frozen=True):
    type: str
    timestamp: str
    data: dict[str, Any] = field(default_factory=dict)


def queue_of(name: str) -> str:
    return QUEUES + name


def wants(hook: Webhook, fact: Event) -> bool:
    """Never a fact about a delivery, or each would lead to the next."""
    if fact.kind not in hook.events or fact.queue.startswith(QUEUES) or fact.type == TYPE:
        return False
    if not fact.kind.startswith(TASKS):
        return not fact.id.startswith(QUEUES)  # the pause of a webhook's own queue
    return (hook.types is None or fact.type in hook.types) and (hook.queues is None or fact.queue in hook.queues)


def event_id(namespace: str, number: int) -> str:
    """The same whoever sends it and however often; without full stops, which stand between the parts that are
    signed."""
    return f"evt_{hashlib.blake2b(namespace.encode(), digest_size=5).hexdigest()}_{number}"


def delivery_id(name: str, number: int) -> str:
    return f"{TYPE}:{name}:{number}"


def delivery(hook: Webhook, namespace: str, fact: Event, after: int | None) -> Spec:
    """The task that tells of a fact, when that which tells of fact `after` has ended. It is the same task whoever makes
    it, so that making it twice makes one."""
    if fact.kind.startswith(TASKS) and "error" not in hook.include:
        fact = msgspec.structs.replace(fact, detail="")
    sent = Delivery(hook.name, event_id(namespace, fact.seq), fact)
    return Spec(
        id=delivery_id(hook.name, fact.seq),
        type=TYPE,
        nonce=f"fact-{fact.seq}",
        queue=queue_of(hook.name),
        payload=msgspec.json.encode(sent),
        max_retry=hook.max_retry,
        retry=hook.retry,
        timeout=hook.timeout + MORE_TIME,
        depends_on=() if after is None else (delivery_id(hook.name, after),),
        run_after="end",
    )


def body_of(hook: Webhook, fact: Event, record: Record | None) -> bytes:
    """What is sent. `record` is the task of the fact, where more of it is wanted than the fact says."""
    data: dict[str, Any] = {"id": fact.id}
    if fact.kind.startswith(TASKS):
        data |= {"type": fact.type, "queue": fact.queue, "attempt": fact.attempt}
        if (status := STATUSES.get(Fact(fact.kind))) is not None:
            data["status"] = status
        if fact.duration:
            data["duration"] = fact.duration
        data |= {what: _more(what, fact, record) for what in hook.include}
    elif fact.detail:
        data["detail"] = fact.detail
    return msgspec.json.encode(Body(fact.kind, to_datetime(fact.at).isoformat(), data))


def _more(what: str, fact: Event, record: Record | None) -> Any:
    """None where the task is gone, or has gone on to another attempt."""
    if what == "error":
        return (fact.detail or None) if fact.kind in ERRORS else None
    if record is None or record.unreadable:
        return None
    if what == "payload":
        return _plain(record.spec.payload, record.spec.serializer)
    return _plain(record.result, "json") if record.attempt == fact.attempt and record.status.ended else None


def _plain(data: bytes | None, serializer: str) -> Any:
    """None for what is not JSON and cannot be made JSON of."""
    if not data:
        return None
    try:
        if serializer == "json":
            if is_deep_json(data):
                return None
            msgspec.json.decode(data)
            return Raw(data)
        return Raw(msgspec.json.encode(msgspec.msgpack.decode(data))) if serializer == "msgpack" else None
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        return None


def needs_record(hook: Webhook, fact: Event) -> bool:
    return fact.kind.startswith(TASKS) and bool({"payload", "result"} & set(hook.include))
