"""Webhooks without a store: signatures, which facts are wanted, what is sent, and configurations that cannot work."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import msgspec
import pytest

from tickwork.config import Config
from tickwork.config.checks import validate
from tickwork.config.loading import describe, load
from tickwork.config.webhooks import Webhook
from tickwork.errors import ConfigError
from tickwork.model.facts import Event, Fact
from tickwork.model.tasks import Record, Spec, Status
from tickwork.webhooks import signing
from tickwork.webhooks.events import STATUSES, body_of, delivery, event_id, needs_record, wants

HOOK = Webhook(name="audit", url="https://hooks.example.com/T0/secret-path", events=("task.succeeded", "task.died"))


def fact(kind: str = "task.died", **fields: Any) -> Event:
    return Event(
        **{"seq": 7, "at": 1_700_000_000_000, "kind": kind, "id": "t1", "type": "mail", "queue": "q", **fields}
    )


def but(**fields: Any) -> Webhook:
    return msgspec.structs.replace(HOOK, **fields)


# --- signatures


def test_the_vector_that_standard_webhooks_publishes() -> None:
    key = signing.key_of(b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    assert signing.sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body) == (
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


def test_the_signature_covers_id_time_and_body() -> None:
    key = bytes(range(32))
    expected = base64.b64encode(hmac.new(key, b"evt_1.1700000000.{}", hashlib.sha256).digest()).decode()
    assert signing.sign(key, "evt_1", 1_700_000_000, b"{}") == f"v1,{expected}"
    others = {signing.sign(key, "evt_2", 1_700_000_000, b"{}"), signing.sign(key, "evt_1", 1_700_000_001, b"{}")}
    assert len({f"v1,{expected}", *others, signing.sign(key, "evt_1", 1_700_000_000, b"[]")}) == 4


def test_two_keys_sign_beside_each_other() -> None:
    old, new = bytes(32), bytes(range(32))
    sent = signing.headers([new, old], "evt_1", 5, b"{}")
    assert sent["webhook-signature"].split() == [
        signing.sign(new, "evt_1", 5, b"{}"),
        signing.sign(old, "evt_1", 5, b"{}"),
    ]
    assert (sent["webhook-id"], sent["webhook-timestamp"]) == ("evt_1", "5")


def test_a_key_goes_through_its_text_and_back() -> None:
    key = bytes(range(32))
    assert signing.key_of(signing.secret_text(key).encode()) == key
    assert signing.key_of(b"a plain text of more than 24 bytes") == b"a plain text of more than 24 bytes"


@pytest.mark.parametrize("secret", [b"whsec_***", b"whsec_QUJD", b"short"])
def test_a_secret_that_cannot_be_used_is_not_repeated(secret: bytes) -> None:
    with pytest.raises(ValueError, match=r"Base64|bytes") as refused:
        signing.key_of(secret)
    assert secret.decode() not in str(refused.value)


# --- which facts, and what of them


def test_only_chosen_events_types_and_queues_are_wanted() -> None:
    assert wants(HOOK, fact())
    assert not wants(HOOK, fact("task.claimed"))
    assert wants(but(types=("mail",), queues=("q",)), fact())
    assert not wants(but(types=("other",)), fact())
    assert not wants(but(queues=("other",)), fact())
    assert wants(but(events=("worker.lost",), types=("mail",)), fact("worker.lost", type="", queue=""))


def test_nothing_about_a_delivery_is_wanted() -> None:
    every = but(events=tuple(str(kind) for kind in Fact))
    own = delivery(HOOK, "shop", fact(), None)
    assert not wants(every, fact(id=own.id, type=own.type, queue=own.queue))
    assert not wants(every, fact("queue.paused", id=own.queue, type="", queue=""))


def test_an_event_has_one_id_in_a_namespace_and_no_full_stop_in_it() -> None:
    assert event_id("a.b", 7) == event_id("a.b", 7)
    assert len({event_id("a.b", 7), event_id("a.b", 8), event_id("c", 7)}) == 3
    assert "." not in event_id("a.b", 7)


def test_the_body_holds_ids_and_status_and_nothing_more_by_default() -> None:
    sent = msgspec.json.decode(body_of(HOOK, fact(attempt=3, duration=0.5, detail="secret", worker_id="host-1"), None))
    assert sent == {
        "type": "task.died",
        "timestamp": "2023-11-14T22:13:20+00:00",
        "data": {"id": "t1", "type": "mail", "queue": "q", "attempt": 3, "status": "dead", "duration": 0.5},
    }
    assert b"secret" not in delivery(HOOK, "shop", fact(detail="secret"), None).payload


def test_payload_error_and_result_are_sent_where_they_were_asked_for() -> None:
    hook = but(include=("payload", "error", "result"))
    done = fact("task.succeeded", attempt=1)
    spec = Spec(id="t1", type="mail", nonce="", payload=b'{"to": 1}')
    record = Record(spec=spec, seq=1, status=Status.SUCCESS, attempt=1, result=b"[2]")
    assert needs_record(hook, done)
    assert not needs_record(but(include=("error",)), done)
    data = msgspec.json.decode(body_of(hook, done, record))["data"]
    assert (data["payload"], data["error"], data["result"]) == ({"to": 1}, None, [2])
    data = msgspec.json.decode(body_of(hook, fact(detail="boom", attempt=1), record))["data"]
    assert data["error"] == "boom"


def test_of_a_task_that_is_gone_or_has_gone_on_there_is_no_result() -> None:
    hook, done = but(include=("payload", "result")), fact("task.succeeded", attempt=1)
    assert msgspec.json.decode(body_of(hook, done, None))["data"]["payload"] is None
    again = Record(spec=Spec(id="t1", type="mail", nonce=""), seq=1, status=Status.SUCCESS, attempt=2, result=b"[2]")
    assert msgspec.json.decode(body_of(hook, done, again))["data"]["result"] is None


@pytest.mark.parametrize(
    ("payload", "serializer", "sent"),
    [(b"not json", "json", None), (b"[" * 5000, "json", None), (msgspec.msgpack.encode([1]), "msgpack", [1]),
     (b"\x01", "protobuf", None), (b"", "json", None), (msgspec.msgpack.encode({1: b"x"}), "msgpack", {"1": "eA=="})],
)  # fmt: skip
def test_a_payload_that_is_no_json_harms_nothing(payload: bytes, serializer: str, sent: Any) -> None:
    record = Record(spec=Spec(id="t1", type="mail", nonce="", payload=payload, serializer=serializer), seq=1)
    assert msgspec.json.decode(body_of(but(include=("payload",)), fact(), record))["data"]["payload"] == sent


def test_each_status_that_is_told_is_that_of_a_task() -> None:
    assert all(kind.startswith("task.") for kind in STATUSES)


# --- configuration


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"name": "a b"}, "name must be 1 to 64 letters"),
        ({"url": "ftp://example.com"}, "url must begin with https://"),
        ({"events": ()}, "events are none"),
        ({"events": ("task.dead",)}, "events hold 'task.dead'; known are task.submitted"),
        ({"events": ("log.missed",)}, "events hold 'log.missed'"),
        ({"include": ("all",)}, "include holds 'all'; known are payload, error, result"),
        ({"secret": "whsec_abc"}, "secret must be a reference, file:/path/of/a/file"),
        ({"old_secret": "file:/a"}, "old_secret is there without a secret"),
        ({"max_retry": -1}, "max_retry must be 0 or more"),
        ({"timeout": 0}, "timeout must be above 0"),
        ({"quota": 0}, "quota must be 1 or more"),
        ({"disable_time": -1}, "disable_time must be from 0"),
    ],
)
def test_a_webhook_that_cannot_work_is_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        validate(Config(webhooks=[but(**fields)]))
    assert complaint in str(refused.value)
    assert "secret-path" not in str(refused.value)


def test_names_are_unique_and_the_log_is_on() -> None:
    with pytest.raises(ConfigError, match="must each have a name of its own"):
        validate(Config(webhooks=[HOOK, HOOK]))
    with pytest.raises(ConfigError, match="need the log of events"):
        validate(Config(webhooks=[HOOK], events=False))


def test_the_path_of_a_url_is_shown_nowhere() -> None:
    loaded = load({"webhooks": [HOOK]})
    shown = [
        repr(loaded.config),
        repr(describe(loaded)),
        str(msgspec.json.encode([row[1] for row in describe(loaded)])),
    ]
    assert not any("secret-path" in text for text in shown)
    assert "https://hooks.example.com" in shown[0]


def test_webhooks_are_read_as_mappings_too() -> None:
    said = {"name": "a", "url": "https://x", "events": ["task.died"], "timeout": "5s", "disable_time": "1h"}
    (hook,) = load({"webhooks": [{**said, "retry": {"type": "fixed", "seconds": 1}}]}).config.webhooks
    assert (hook.timeout, hook.disable_time, hook.events) == (5.0, 3600.0, ("task.died",))
    with pytest.raises(ConfigError, match="unknown field 'evnts'; did you mean 'events'"):
        load({"webhooks": [{**said, "evnts": []}]})


def test_a_file_that_was_only_found_cannot_name_a_secret(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "webhooks: [{name: a, url: 'https://x', events: [task.died], secret: 'file:/etc/passwd'}]"
    (tmp_path / "tickwork.yaml").write_text(text)
    with pytest.raises(ConfigError, match="only found cannot name the file of a secret"):
        load(default_file=True)
    assert load(file=tmp_path / "tickwork.yaml").config.webhooks[0].secret == "file:/etc/passwd"
