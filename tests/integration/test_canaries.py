"""Secrets stay where they belong: each is marked, everything that can say something is made to, and no mark comes out.

A real node has a password in the URL of its store, secrets of webhooks and endpoints, and tasks with payloads and
results. It logs everything, in both formats, while all kinds of things go wrong. Commands fail with secrets in what
they were given.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.programs import Shop, until
from tests.support.redis import RedisServer
from tickwork import TaskInfo

MARK = "CANARY"
PASSWORD = f"password-{MARK}"
# A port on which nobody listens: the addresses of webhooks and endpoints may name it, and are refused at once.
NOWHERE = "http://127.0.0.1:1"
SHOP = """
import asyncio, os, pathlib
from tickwork import Abort, FixedDelay, Scheduler, TaskContext

here = str(pathlib.Path(__file__).parent)
app = Scheduler(
    "URL", scan_interval=0.2, shutdown_timeout=2, retry=FixedDelay(0.01), max_retry=1, metrics=True, metrics_port=0,
    allow_addresses=["NOWHERE"], secret_file=f"{here}/administrator",
    webhooks=[dict(name="audit", url="NOWHERE/path-MARK", events=["task.succeeded"], include=["payload", "result"],
                   secret=f"file:{here}/hook", max_retry=1, retry=FixedDelay(0.01))],
    endpoints=dict(billing=dict(url="NOWHERE/{payload.token}", types=["bill"],
                   headers=dict(Authorization=dict(secret=f"file:{here}/token", prefix="Bearer ")))),
)

@app.task
async def echo(token: str, ctx: TaskContext) -> str:
    ctx.progress(0.5)
    return token

@app.task
async def fails(token: str) -> None:
    raise ValueError("refused")

@app.task
async def gives_up(token: str) -> None:
    raise Abort("refused for good")

@app.task(run_in="process")
def dies(token: str) -> None:
    os._exit(3)

@app.task(run_in="thread")
def counts(token: int) -> int:
    return token

@app.task(timeout=0.05)
async def hangs(token: str) -> None:
    await asyncio.sleep(60)

@app.periodic("* * * * * *", payload={"token": "MARK"}, id="often")
async def often(token: str) -> str:
    return token
"""
TYPES = ("echo", "fails", "gives_up", "dies", "bill", "hangs")


@pytest.fixture
def server() -> Iterator[RedisServer]:
    options = {"appendonly": "yes", "appendfsync": "always"}
    with RedisServer(options=options, password=PASSWORD) as server:
        yield server


@pytest.fixture
def shop(tmp_path: Path, server: RedisServer) -> Iterator[Shop]:
    for name in ("administrator", "hook", "token"):
        (tmp_path / name).write_text(f"{name}-secret-of-at-least-32-bytes-{MARK}")
    shop = Shop(tmp_path, server.url)
    shop.write(SHOP.replace("URL", server.url).replace("NOWHERE", NOWHERE).replace("MARK", MARK))
    yield shop
    shop.close()


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_node_tells_no_secret(shop: Shop, server: RedisServer, form: str) -> None:
    up = shop.start("up", "shop:app", "--log-level", "debug", "--log-format", form)
    up.until("this node leads")
    secrets: dict[str, Any] = {"context": {"auth": MARK}, "key": MARK}
    ids = [shop.app.sync.submit(kind, {"token": f"payload-{MARK}"}, **secrets).id for kind in TYPES]
    ids.append(shop.app.sync.submit("counts", {"token": [f"payload-{MARK}"]}).id)  # does not fit
    until(lambda: all(shop.task(task_id).status.ended for task_id in ids[:-1]), "all but one have ended")
    up.until("webhook")
    up.until("Schedule fired")
    server.kill()
    up.until("the store cannot be used now")
    server.start()
    up.until("the store can be used again")
    server.command("CONFIG", "SET", "requirepass", f"changed-{MARK}")
    server.password = f"changed-{MARK}"
    server.command("CLIENT", "KILL", "TYPE", "normal")
    up.until("WRONGPASS")
    up.signal(signal.SIGINT)  # unless it has ended by that error already
    up.wait()
    for words in ("Task started", "Task completed", "Task retry", "Task failed", "Schedule fired", "Task registered"):
        assert up.lines(words), words
    assert_unmarked(up.err)
    assert (form == "json") == all(line.startswith("{") for line in up.err.splitlines())


def test_the_errors_that_a_worker_writes_hold_no_secret(shop: Shop) -> None:
    up = shop.start("up", "shop:app")
    ids = [shop.app.sync.submit(kind, {"token": f"payload-{MARK}"}).id for kind in TYPES]
    unfit = shop.app.sync.submit("counts", {"token": [f"payload-{MARK}"]}).id
    until(lambda: all(shop.task(task_id).status.ended for task_id in ids), "all but one have ended")
    until(lambda: shop.task(unfit).last_error, "the payload does not fit")
    infos = [shop.task(task_id) for task_id in (*ids, unfit)]
    assert [bool(info.last_error) for info in infos] == [kind != "echo" for kind in TYPES] + [True]
    for info in infos:
        assert_unmarked(told_of(info))
    for event in shop.app.sync.events.read(limit=1000):
        assert_unmarked(event.detail)
    for group in shop.app.sync.failures():
        assert_unmarked(repr(group))
    assert_unmarked(up.err)


def told_of(info: TaskInfo) -> str:
    return "\n".join([info.last_error or "", *info.log])


# --- commands

LOST = f"redis://:{PASSWORD}@127.0.0.1:1/0"
BAD_STORES = {
    "unreachable": LOST,
    "no port": f"redis://:{PASSWORD}@localhost:x/0",
    "no bracket": f"redis://:{PASSWORD}@[::1/0",
    "no number": f"redis://:{PASSWORD}@localhost/x",
    "other scheme": f"postgres://user:{PASSWORD}@localhost/db",
    "option": f"redis://localhost:1/0?password={PASSWORD}",
    "sentinel": f"redis+sentinel://:{PASSWORD}@127.0.0.1:1/main/0?sentinel_password={PASSWORD}",
    "no service": f"redis+sentinel://127.0.0.1:1?sentinel_password={PASSWORD}",
    "two hosts": f"redis://:{PASSWORD}@localhost,127.0.0.1/0",
}


@pytest.mark.parametrize("store", BAD_STORES)
def test_a_command_that_cannot_use_its_store_tells_no_password(tmp_path: Path, store: str) -> None:
    command = ["submit", "echo", f'"payload-{MARK}"', "--store", BAD_STORES[store]]
    assert_unmarked(failing(tmp_path, command))


def test_as_json_and_from_a_file_neither(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(json.dumps({"store": LOST}))
    assert_unmarked(failing(tmp_path, ["stats", "--config", "own.yaml", "--json"]))


def test_a_command_with_the_wrong_password_does_not_tell_it(tmp_path: Path, server: RedisServer) -> None:
    wrong = server.url.replace(PASSWORD, f"wrong-{MARK}")
    (tmp_path / "shop.py").write_text(f"from tickwork import Scheduler\napp = Scheduler({wrong!r})\n")
    for command in (["doctor", "--store", wrong], ["up", "shop:app"]):
        assert_unmarked(failing(tmp_path, command))


BAD_FILES: dict[str, dict[str, Any]] = {
    "a secret in the place of its reference": {
        "webhooks": [{"name": "a", "url": "https://h.example", "events": ["task.died"], "secret": f"secret-{MARK}"}]
    },
    "a token in the place of its reference": {
        "endpoints": {"b": {"url": "https://h.example", "headers": {"Authorization": f"Bearer {MARK}"}}}
    },
    "a token as the reference": {
        "endpoints": {"b": {"url": "https://h.example", "headers": {"Authorization": {"secret": f"token-{MARK}"}}}}
    },
    "a short secret": {"secret_file": "SHORT", "webhooks": [{"name": "a", "url": "https://h.example",
                                                             "events": ["task.died"]}]},
    "a path of a webhook": {
        "webhooks": [{"name": "a b", "url": f"https://h.example/path-{MARK}", "events": ["task.died"]}]
    },
    "a password apart": {"redis_addr": "127.0.0.1:x", "redis_pass": PASSWORD},
}  # fmt: skip


@pytest.mark.parametrize("wrong", BAD_FILES)
def test_a_configuration_that_is_refused_is_told_without_its_secrets(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "short").write_text(MARK)
    text = json.dumps({"store": f"sqlite:///{tmp_path}/tick.db", "submit_timeout": 1, **BAD_FILES[wrong]})
    if "redis_addr" in text:
        text = json.dumps({"submit_timeout": 1, **BAD_FILES[wrong]})
    (tmp_path / "wrong.yaml").write_text(text.replace("SHORT", str(tmp_path / "short")))
    (tmp_path / "shop.py").write_text("from tickwork import Scheduler\napp = Scheduler(config='wrong.yaml')\n")
    assert_unmarked(failing(tmp_path, ["up", "shop:app", "--config", "wrong.yaml"]))


@pytest.mark.parametrize("payload", [f'{{"token": "{MARK}"', f'"{MARK}', f'{{"other": "{MARK}"}}', f'["{MARK}"]'])
def test_a_payload_that_is_refused_is_not_repeated(tmp_path: Path, payload: str) -> None:
    store = f"sqlite:///{tmp_path}/tick.db"
    (tmp_path / "shop.py").write_text(
        f"from tickwork import Scheduler\napp = Scheduler({store!r})\n@app.task\nasync def count(token: int): ...\n"
    )
    assert_unmarked(failing(tmp_path, ["submit", "count", payload, "--app", "shop:app"]))


def failing(folder: Path, words: list[str]) -> str:
    """What a command says that fails."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TICKWORK_")}
    ran = subprocess.run(
        [sys.executable, "-m", "tickwork", *words], cwd=folder, env={**environment, "TICKWORK_STORE_TIMEOUT": "1"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    told = ran.stdout + ran.stderr
    assert ran.returncode, f"it was to fail:\n{told}"
    assert told.strip(), "it says why"
    return told


def assert_unmarked(text: str) -> None:
    told = [line for line in text.splitlines() if MARK in line]
    assert not told, "\n".join(told)
