"""The command `tickwork`: in this process where that is enough, as real processes where signals and files matter."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from tests.support.redis_store import empty_redis
from tickwork import Fact, Page, ScheduleInfo, Scheduler, Status, TaskInfo, TickworkError
from tickwork.cli import commands
from tickwork.client.schedules import Schedules
from tickwork.model import ticks
from tickwork.model.members import Worker as Member
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Spec
from tickwork.store.contract import SCHEDULES_PAGE, Advance, Claim
from tickwork.testing import drain

SHOP = """
import asyncio
from tickwork import Scheduler, TaskContext

app = Scheduler(worker_concurrency=5)

@app.task
async def add(a: int, b: int) -> int:
    return a + b

@app.task
async def slow(seconds: float, ctx: TaskContext) -> str:
    ctx.progress(0.5, "half way")
    ctx.logger.info("under way")
    await asyncio.sleep(seconds)
    return "done"

@app.task
async def greet(name: str = "you") -> str:
    return name

@app.task(max_retry=0)
async def boom(text: str) -> None:
    raise ValueError(text)

@app.task(run_in="process")
def square(n: int) -> int:
    return n * n

@app.periodic("0 0 1 1 *")
async def new_year() -> None: ...

not_an_app = 3
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with an application in it, and none of the caller's settings."""
    for name in [name for name in os.environ if name.startswith("TICKWORK_") or name in ("NO_COLOR", "COLUMNS")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TICKWORK_STORE", "sqlite:///tickwork.db")
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


def run(*args: str, input: str | None = None) -> Result:
    return CliRunner().invoke(commands, list(args), input=input)


def good(*args: str, input: str | None = None) -> str:
    result = run(*args, input=input)
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.stdout
    return result.stdout


def data(*args: str) -> Any:
    return json.loads(good(*args, "--json"))


def until(condition: Callable[[], object], what: str = "", timeout: float = 30) -> None:
    """`wait_until` for conditions that run an event loop of their own."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout:g} s: {what}"
        time.sleep(0.02)


def status_of(task_id: str) -> str:
    return str(data("task", task_id)["status"])


class Program:
    """`tickwork` as a process of its own; what it prints goes to files."""

    def __init__(self, *args: str, folder: Path) -> None:
        self._out, self._err = folder / "out.txt", folder / "err.txt"
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-c", "from tickwork.cli import main; main()", *args],
                cwd=folder, stdout=out, stderr=err, env=environment,
            )  # fmt: skip

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def until(self, text: str) -> None:
        until(lambda: self._has(text), text)

    def _has(self, text: str) -> bool:
        assert text in self.out + self.err or self.process.poll() is None, self.out + self.err
        return text in self.out + self.err

    def end(self, number: int = signal.SIGINT, timeout: float = 20) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    programs: list[Program] = []

    def start(*args: str) -> Program:
        program = Program(*args, folder=tmp_path)
        programs.append(program)
        return program

    yield start
    for program in programs:
        if program.process.poll() is None:
            program.process.kill()
            program.process.wait()


# --- without a store


def test_version_and_help_need_no_store() -> None:
    assert re.fullmatch(r"tickwork \d+\.\d+\.\d+\n", good("--version"))
    text = good("--help")
    assert "3  the store cannot be reached" in text
    assert "doctor" in text
    assert good() == text


def test_small_commands_import_little() -> None:
    """Start-up is kept short by what is not imported; times would depend on the machine."""
    script = (
        "import sys, tickwork.cli\n"
        "try: tickwork.cli.commands(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )

    environ = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}  # it imports much

    def imported(*args: str) -> set[str]:
        command = [sys.executable, "-c", script, *args]
        ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        return set(ran.stderr.split())

    assert not imported("--version") & {"asyncio", "msgspec", "sqlite3", "tickwork.scheduler", "tickwork.config"}
    good("submit", "add", "1")
    heavy = {
        "multiprocessing",
        "tickwork.scheduler",
        "tickwork.worker.worker",
        "tickwork.store.memory.tasks",
        "yaml",
        "uvloop",
    }
    assert not imported("tasks") & heavy


def test_cron_explains_a_line() -> None:
    text = good("cron", "*/5 9-17 * * mon-fri", "--timezone", "Europe/Berlin", "-n", "3")
    assert text.startswith("every 5 minutes from 09:00 to 17:59 on Monday to Friday, Europe/Berlin time\n")
    assert len(text.splitlines()) == 4
    assert len(data("cron", "@daily", "-n", "7")["next_runs"]) == 7


def test_config_says_where_each_value_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tickwork.yaml").write_text("concurrency: 7\nlease_ttl: 20s\n")
    monkeypatch.setenv("TICKWORK_STORE", "redis://user:hunter2@host/0")
    monkeypatch.setenv("TICKWORK_LEASE_TTL", "25s")
    found = data("config")
    assert found["concurrency"] == {"value": 7, "from": "file tickwork.yaml"}
    assert found["lease_ttl"] == {"value": 25.0, "from": "environment TICKWORK_LEASE_TTL"}
    assert found["queues"] == {"value": ["default"], "from": "default"}
    assert found["retry"]["value"]["type"] == "exponential"
    assert [found[name]["value"] for name in ("dedup", "log_level", "serializer")] == [True, None, "json"]
    assert found["weight"]["from"] == "default"
    assert "hunter2" not in good("config")
    assert "user:***@host" in good("config")


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (["taks"], 2, "no command 'taks'; did you mean 'tasks'?"),
        (["tasks", "--status", "ded"], 2, "'ded' is not one of"),
        (["tasks", "--tag", "x"], 2, "name=value"),
        (["cron", "61 * * * *"], 2, "61"),
        (["tasks"], 3, "there is no SQLite file tickwork.db"),
        (["doctor"], 3, "there is no SQLite file"),
        (["queues", "pause", "x"], 3, "there is no SQLite file"),
        (["tasks", "--store", "memory://"], 2, "each process has its own memory"),
        (["--store", "memory://", "submit", "add"], 2, "each process has its own memory"),
        (["tasks", "--store", "ftp://x"], 2, "of no known kind"),
        (["tasks", "--config", "no.yaml"], 2, "no.yaml"),
        (["submit", "add", "{nope"], 2, "not JSON"),
        (["submit", "add", "--at", "2030-01-01T00:00"], 2, "names no zone"),
        (["submit", "add", "--at", "soon"], 2, "is not a time"),
        (["submit", "add", "--delay", "soon"], 2, "not a duration"),
        (["submit", "add", "--cron", "@daily", "--wait"], 2, "no result"),
        (["submit", "add", '{"a": "x"}', "--app", "shop:app"], 2, "Expected `int`"),
        (["submit", "nope", "--app", "shop:app"], 2, "known: add, boom, greet"),
        (["up"], 2, "which application?"),
        (["up", "nope:app"], 2, "there is no module 'nope'"),
        (["up", "shop:nope"], 2, "has no 'nope'; it has shop:app"),
        (["up", "shop:not_an_app"], 2, "is a int, not a Scheduler"),
        (["up", "shop.py"], 2, "name the module instead: shop:app"),
        (["up", "shop:app", "--lease-ttl", "soon"], 2, "lease_ttl: 'soon' (argument) is not a duration"),
        (["up", "shop:app", "--store", "sqlite:///no/such/folder/x.db"], 3, "does not exist"),
        (["worker"], 2, "Missing argument"),
        (["queues", "pause"], 2, "name a queue"),
        (["events", "--kind", "task.dead"], 2, "did you mean 'task.died'?"),
    ],
)
def test_mistakes_are_told_in_a_line(args: list[str], status: int, words: str, tmp_path: Path) -> None:
    result = run(*args)
    assert (result.exit_code, result.stdout) == (status, ""), result.output
    assert words in result.stderr
    assert "error: " in result.stderr
    assert "Traceback" not in result.output
    assert not list(tmp_path.glob("*.db")), "a refused command must not leave a file behind"


def test_an_error_in_the_users_module_shows_the_users_traceback_only(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def deep():\n    import surely_not_there\ndeep()\n")
    (tmp_path / "wrong.py").write_text("def f(:\n")
    (tmp_path / "leaves.py").write_text("import sys; sys.exit(4)\n")
    result = run("up", "broken:app")
    assert result.exit_code == 2
    assert result.stderr.count("File ") == 2
    assert "line 2, in deep" in result.stderr
    assert result.stderr.rstrip().endswith("No module named 'surely_not_there'")
    assert "SyntaxError" in run("up", "wrong:app").stderr
    assert "ended the program" in run("up", "leaves:app").stderr


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("from tickwork import Scheduler\napp = Scheduler()\n", 2, "store URL 'redsi://localhost' is of no known kind"),
        ("from tickwork import Cron\ndef f():\n    Cron('61 * * * *')\nf()\n", 3, "minute '61' is out of range"),
    ],
)
def test_a_setting_that_the_users_module_is_refused_for_is_told_in_a_line(
    text: str, line: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TICKWORK_STORE", "redsi://localhost")
    (tmp_path / "refused.py").write_text(text)
    result = run("up", "refused:app")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {tmp_path / 'refused.py'}, line {line}: ")
    assert words in result.stderr
    assert "Traceback" not in result.output


def test_a_file_or_a_namespace_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other.db").touch()
    result = run("tasks", "--store", "sqlite:///other.db")
    assert (result.exit_code, (tmp_path / "other.db").stat().st_size) == (3, 0)
    (tmp_path / "text.db").write_text("this is no database, but long enough to be looked at" * 20)
    assert run("tasks", "--store", "sqlite:///text.db").exit_code == 3
    good("submit", "add", "1")
    result = run("tasks", "--namespace", "typo")
    assert result.exit_code == 3
    assert "has no namespace 'typo' of Tickwork (it has: scheduler)" in result.stderr


# --- submitting, asking and steering, with nobody at work


def test_submit_makes_the_file_and_prints_the_id() -> None:
    result = run(
        *("submit", "add", '{"a": 1, "b": 2}', "--id", "t-1", "--priority", "high", "--queue", "mail"),
        *("--tag", "env=prod", "--tag", "x=y", "--max-retry", "1", "--timeout", "30s", "--context", '{"trace": 7}'),
    )
    assert (result.stdout, result.stderr) == ("t-1\n", "note: tickwork.db is a new file\n")
    task = data("task", "t-1")
    assert task["payload"] == {"a": 1, "b": 2}
    assert (task["priority"], task["queue"], task["max_retry"]) == (10, "mail", 1)
    assert (task["tags"], task["context"]) == ({"env": "prod", "x": "y"}, {"trace": 7})
    assert task["explanation"]["text"] == "No worker is up."
    assert [event["kind"] for event in task["events"]] == ["task.submitted"]
    assert (
        good("submit", "add", "-", input="[1]").strip()
        == data("tasks", "--type", "add", "--limit", "1")["tasks"][0]["id"]
    )
    assert run("submit", "add", "--id", "t-1").exit_code == 1


def test_global_options_stand_anywhere_and_json_too() -> None:
    good("--store", "sqlite:///a.db", "submit", "add", "--id", "t")
    for args in (
        ["--json", "--store", "sqlite:///a.db", "tasks"],
        ["tasks", "--store", "sqlite:///a.db", "--json"],
        ["--store", "sqlite:///wrong.db", "tasks", "--store", "sqlite:///a.db", "--json"],
    ):
        assert [task["id"] for task in json.loads(good(*args))["tasks"]] == ["t"]
    assert json.loads(good("--json", "queues", "--store", "sqlite:///a.db", "list"))["queues"][0]["normal"] == 1
    assert "default" in good("queues", "--store", "sqlite:///a.db")


def test_times_dependencies_and_dedup_of_a_submission() -> None:
    good("submit", "add", "--id", "later", "--delay", "1h")
    good("submit", "add", "--id", "then", "--at", "2040-01-31T09:00", "--timezone", "Europe/Berlin")
    good("submit", "add", "--id", "after", "--depends-on", "later")
    good("submit", "add", "--id", "only", "--dedup-key", "k", "--dedup-ttl", "1h")
    assert [status_of(task) for task in ("later", "then", "after")] == ["pending", "pending", "blocked"]
    assert data("task", "then")["scheduled_at"] == "2040-01-31T08:00:00Z"
    twin = run("submit", "add", "--dedup-key", "k")
    assert twin.exit_code == 1
    assert "held by task 'only'" in twin.stderr
    assert re.search(r"later .* in (1h|59m)", good("tasks", "--status", "pending"))


def test_tasks_pages_and_filters() -> None:
    for n in range(5):
        good("submit", "add", "--id", f"t{n}", "--tag", f"n={n % 2}")
    assert "no tasks" in good("tasks", "--type", "other")
    assert len(data("tasks", "--tag", "n=0")["tasks"]) == 3
    first = data("tasks", "--limit", "2")
    second = data("tasks", "--limit", "2", "--cursor", first["cursor"])
    assert not {task["id"] for task in first["tasks"]} & {task["id"] for task in second["tasks"]}
    assert f"more with --cursor {first['cursor']}" in good("tasks", "--limit", "2")


def test_cancel_retry_and_delete_take_several_and_report_each() -> None:
    for name in ("a", "b"):
        good("submit", "add", "--id", name)
    result = run("cancel", "a", "nope", "b")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == ["a  cancelled", "b  cancelled"]
    assert "error: no task 'nope'" in result.stderr
    assert good("retry", "a") == "a  sent to run\n"
    assert run("delete", "a").exit_code == 1
    assert data("delete", "b") == {"tasks": [{"id": "b", "done": "deleted", "error": None}]}
    assert run("task", "b").exit_code == 1


def test_run_now_takes_delayed_tasks_and_retry_names_it() -> None:
    good("submit", "add", "--id", "later", "--delay", "1d")
    refused = run("retry", "later")
    assert refused.exit_code == 1
    assert "error: task later is pending" in refused.stderr
    assert "`tickwork run-now` on the command line" in refused.stderr
    assert good("run-now", "later") == "later  sent to run\n"
    assert data("task", "later")["status"] == "ready"
    assert run("run-now", "nope").exit_code == 1


def test_schedules_from_making_to_deleting() -> None:
    assert "at 03:00 every day, next " in good("schedules", "put", "nightly", "add", "[1]", "--cron", "0 3 * * *")
    good("schedules", "put", "by-hand", "add")
    assert re.match(r"ID +TYPE +WHEN", good("schedules"))
    assert sorted(schedule["id"] for schedule in data("schedules")["schedules"]) == ["by-hand", "nightly"]
    good("schedules", "pause", "nightly")
    assert data("schedules", "show", "nightly")["enabled"] is False
    good("schedules", "resume", "nightly")
    assert len(data("schedules", "next", "nightly", "-n", "3")["next_runs"]) == 3
    assert "only when it is triggered" in good("schedules", "next", "by-hand")
    task_id = good("schedules", "trigger", "by-hand").strip()
    assert data("task", task_id)["schedule_id"] == "by-hand"
    good("schedules", "delete", "nightly")
    assert run("schedules", "show", "nightly").exit_code == 1
    whole = ["--cron", "TZ=Europe/Paris 0 3 * * *", "--queue", "slow", "--tag", "k=v", "--priority", "9"]
    good("schedules", "put", "whole", "add", '{"a": 1}', *whole, "--max-retry", "2", "--timeout", "90s")
    shown = good("schedules", "show", "whole")
    for line in (r"payload +\{\"a\": ?1\}", "queue +slow, priority 9", "retries +2", "timeout +90 s", "tags +k=v"):
        assert re.search(line, shown), line
    assert re.search("zone +Europe/Paris", shown)
    schedule_id = good("submit", "add", "--cron", "@hourly", "--timezone", "Asia/Tokyo").strip()
    assert data("schedules", "show", schedule_id)["timezone"] == "Asia/Tokyo"


async def _put_many(count: int) -> list[str]:
    app = Scheduler("sqlite:///tickwork.db")
    store = await app._open()
    definition = Schedule(id="", task=Spec(id="", type="add", nonce=""))
    puts = [store.schedules.put(replace(definition, id=f"s{number:04}")) for number in range(count)]
    names = [put.id for put in await asyncio.gather(*puts) if put is not None]
    await app.close()
    return names


def test_a_task_that_exists_is_as_good_as_a_new_one_if_that_is_said() -> None:
    first = good("submit", "add", "[1]", "--dedup-key", "k").strip()
    assert good("submit", "add", "[2]", "--dedup-key", "k", "--if-exists", "return").strip() == first
    assert good("submit", "add", "[2]", "--id", first, "--if-exists", "return").strip() == first
    for said in ([], ["--if-exists", "raise"]):
        assert run("submit", "add", "[2]", "--dedup-key", "k", *said).exit_code == 1


def test_a_schedule_is_edited() -> None:
    good("schedules", "put", "nightly", "add", "[1]", "--cron", "0 3 * * *", "--timezone", "Asia/Tokyo", "--queue", "q")
    assert "at 04:00 every day, next " in good("schedules", "edit", "nightly", "--cron", "0 4 * * *")
    data("schedules", "edit", "nightly", "--payload", '{"a": 2}', "--max-retry", "2", "--type", "sum", "--name", "Sum")
    found = data("schedules", "show", "nightly")
    assert (found["cron"], found["timezone"], found["queue"]) == ("0 4 * * *", "Asia/Tokyo", "q")
    assert (found["payload"], found["max_retry"], found["type"], found["name"]) == ({"a": 2}, 2, "sum", "Sum")
    assert data("schedules", "edit", "nightly", "--payload", "null")["payload"] is None
    assert run("schedules", "edit", "nobody", "--queue", "x").exit_code == 1
    refused = run("schedules", "edit", "nightly")
    assert refused.exit_code == 2
    assert "name what is to be changed" in refused.output


def test_many_schedules_are_listed_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    names = asyncio.run(_put_many(SCHEDULES_PAGE + 10))
    largest: list[int] = []
    honest = Schedules.list

    async def watched(self: Schedules, *, cursor: str | None = None) -> Page[ScheduleInfo]:
        page = await honest(self, cursor=cursor)
        largest.append(len(page))
        return page

    monkeypatch.setattr(Schedules, "list", watched)
    assert [schedule["id"] for schedule in data("schedules")["schedules"]] == names
    assert [line.split()[0] for line in good("schedules").splitlines() if line[0] == "s"] == names
    assert largest == [SCHEDULES_PAGE, 10] * 2


async def _fire(*types: str) -> None:
    """Schedules whose runs nobody takes, and one whose run is gone."""
    app = Scheduler("sqlite:///tickwork.db")
    store = await app._open()
    for number, kind in enumerate(types):
        await app.schedules.put(kind, kind, cron="@yearly", timezone="Asia/Tokyo")
        schedule = await store.schedules.get(kind)
        assert schedule is not None
        run = ticks.run_of(schedule, 1_800_000_000_000)
        await store.tasks.submit([run])
        fired = run.id
        await store.schedules.advance(kind, schedule.next_at, Advance(schedule.next_at, fired, 1_800_000_000_000))
        if number == 0:
            await app.cancel(fired)
            await app.delete(fired)
    await app.close()


def test_the_last_run_of_a_schedule_has_the_status_of_its_task() -> None:
    asyncio.run(_fire("gone", "waits"))
    last = {line.split()[0]: re.split(r"  +", line)[5] for line in good("schedules").splitlines()[1:]}
    assert {name: text.partition(" ")[0] for name, text in last.items()} == {"gone": "deleted", "waits": "ready"}
    shown = good("schedules", "show", "waits")
    assert re.search(r"last status +ready", shown)
    assert set(re.findall(r"\d\d:\d\d:\d\d (\w+)", shown)) == {"JST"}, "one zone a screen"


async def _hold_two() -> None:
    """A worker that told of itself when it had nothing, and has taken two tasks since."""
    app = Scheduler("sqlite:///tickwork.db")
    store = await app._open()
    await store.members.beat(Member(id="w1", node="n", capacity=4, task_types=("add",)))
    await store.members.beat(Member(id="w2", node="n", capacity=2, running=2, task_types=("add",)))
    for n in range(2):
        await app.submit("add", {"a": n, "b": n})
    await store.tasks.claim(Claim("w1", ("default",), frozenset({"add"}), 2, 60_000, "nonce"))
    await app.close()


def test_workers_are_as_busy_as_the_running_tasks_say() -> None:
    asyncio.run(_hold_two())
    busy = {line.split()[0]: line.split()[1:3] for line in good("workers").splitlines()[1:]}
    assert busy == {"w1": ["working", "2/4"], "w2": ["idle", "0/2"]}
    assert [(worker["id"], worker["running"], worker["status"]) for worker in data("workers")["workers"]] == [
        ("w1", 2, "idle"), ("w2", 0, "idle"),
    ]  # fmt: skip


def test_queues_and_types_pause_and_resume() -> None:
    good("submit", "add", "--id", "t")
    good("queues", "pause", "default", "--note", "deploy")
    assert "paused: deploy" in good("queues", "list")
    assert re.fullmatch(r"Queue default is paused since .+: deploy\.", data("task", "t")["explanation"]["text"])
    why = data("why", "t")
    assert (why["id"], why["reason"], why["blockers"]) == ("t", "queue_paused", ["default"])
    assert good("why", "t") == why["text"] + "\n"
    assert good("queues", "resume", "default") == "queue default  resumed\n"
    assert data("queues", "pause", "--type", "add")["type"] == "add"
    assert "task type add is paused" in good("queues")
    assert good("queues", "resume", "--type", "add") == "type add  resumed\n"
    assert good("queues", "resume", "--type", "add") == "type add  was not paused\n"


def test_times_have_dates_and_one_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        good("submit", "add", "--id", "later", "--at", "2040-01-01T00:00Z")
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}  task\.submitted", good("events"))
        shown = good("task", "later")
        assert "It waits for its time, 2040-01-01 09:00:00 JST." in shown
        assert re.search(r"due +2040-01-01 09:00:00 JST", shown)
        assert re.search(r"What happened\n  \d{4}-\d\d-\d\d \d\d:\d\d:", shown)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_negative_number_is_a_payload() -> None:
    good("submit", "square", "-5", "--id", "five")
    good("submit", "--id", "half", "square", "--tag", "a=b", "-0.5", "--priority", "high")
    good("schedules", "put", "s", "square", "-7")
    assert [data("task", task_id)["payload"] for task_id in ("five", "half")] == [-5, -0.5]
    for refused in (["square", "--delay", "-5"], ["square", "-x"], ["square", "-5x"]):
        assert run("submit", *refused).exit_code == 2


def test_events_look_back_by_kind_and_by_task() -> None:
    for n in range(3):
        good("submit", "add", "--id", f"t{n}")
    good("cancel", "t1")
    assert [event["id"] for event in data("events", "--kind", "task.cancelled")["events"]] == ["t1"]
    assert [event["kind"] for event in data("events", "--task", "t1")["events"]] == ["task.submitted", "task.cancelled"]
    assert [event["id"] for event in data("events", "--kind", "task", "--limit", "2")["events"]] == ["t2", "t1"]
    assert "no events" in good("events", "--kind", "worker")


async def _die(count: int) -> None:
    app = Scheduler("sqlite:///tickwork.db", scan_interval=0.05)

    @app.task(max_retry=0)
    async def boom(text: str) -> None:
        raise ValueError(text)

    async with app:
        handles = await app.submit_many("boom", [f"\x1b[31mno {n}\x07" for n in range(count)])
        for handle in handles:
            with pytest.raises(TickworkError):
                await handle.result(20)


def test_dead_letters_are_shown_run_again_and_thrown_away() -> None:
    asyncio.run(_die(4))
    assert re.search(r"boom .* ValueError: no \d$", good("dlq"), re.MULTILINE)
    ids = [task["id"] for task in data("dlq", "list")["tasks"]]
    assert "Last error" in good("dlq", "show", ids[0])
    good("dlq", "retry", ids[0])
    assert status_of(ids[0]) == "ready"
    assert run("dlq", "show", ids[0]).exit_code == 1
    good("dlq", "remove", ids[1])
    refused = run("dlq", "clear")
    assert (refused.exit_code, "Delete 2 dead letters?" in refused.stderr) == (2, True), "nobody there to say yes"
    assert "2 dead letters sent to run" in good("dlq", "retry-all", "--yes")
    asyncio.run(_die(1))
    assert data("dlq", "clear", "--yes", "--type", "other")["matched"] == 0
    assert data("dlq", "clear", "--yes")["done"] == 4
    assert good("dlq", "list") == "no dead letters\n"


async def _die_with_dependants() -> None:
    app = Scheduler("sqlite:///tickwork.db", scan_interval=0.05)

    @app.task(max_retry=0)
    async def boom() -> None:
        raise ValueError("no")

    @app.task
    async def add() -> None: ...

    paid = await boom.options(id="charge-7").submit()
    await add.options(id="ship-7", depends_on=[paid]).submit()
    await add.options(id="mail-7", depends_on=["ship-7"]).submit()
    async with app:
        await drain(app)


def test_a_retried_task_brings_its_dependants_back() -> None:
    asyncio.run(_die_with_dependants())
    assert re.search("dependants +ship-7 \\(cancelled\\), mail-7 \\(cancelled\\)", good("task", "charge-7"))
    refused = run("retry", "ship-7")
    assert (refused.exit_code, "depends on task charge-7, which is dead" in refused.stderr) == (1, True)
    told = good("retry", "charge-7", "--cascade")
    assert told == "charge-7  sent to run\nship-7  brought back\nmail-7  brought back\n"
    assert [status_of(task_id) for task_id in ("charge-7", "ship-7", "mail-7")] == ["ready", "blocked", "blocked"]
    assert data("task", "charge-7")["dependants"] == [{"id": "ship-7", "status": "blocked"}]


def test_a_retry_says_which_dependants_it_leaves_cancelled() -> None:
    asyncio.run(_die_with_dependants())
    alone = run("dlq", "retry", "charge-7")
    assert "2 dependants cancelled before. Use --cascade" in alone.stderr
    assert [status_of(task_id) for task_id in ("charge-7", "ship-7")] == ["ready", "cancelled"]


def test_tables_fit_the_terminal_and_colours_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(_die(1))
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, good("tasks").splitlines())) <= 80
    assert max(map(len, good("dlq").splitlines())) <= 80
    painted = CliRunner().invoke(commands, ["tasks"], color=True).stdout
    assert "\x1b[31mdead" in painted
    assert "\x1b[31mno" not in painted, "a colour of the task's own"
    for plain in (["--no-color", "tasks"], ["tasks", "--no-color"]):
        assert "\x1b" not in CliRunner().invoke(commands, plain, color=True).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in CliRunner().invoke(commands, ["tasks"], color=True).stdout


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_doctor_tells_who_else_can_read_the_file() -> None:
    run("submit", "nobody")
    assert "other users" not in run("doctor").stdout
    Path("tickwork.db").chmod(0o644)
    found = json.loads(run("doctor", "--json").stdout)["findings"]
    (told,) = [finding for finding in found if "other users" in finding["text"]]
    assert (told["level"], "chmod 600" in told["advice"]) == ("warning", True)


def test_doctor_finds_what_nobody_will_run() -> None:
    good("submit", "add")
    result = run("doctor")
    assert result.exit_code == 1
    assert "no worker is up, with 1 task waiting" in result.stdout
    found = json.loads(run("doctor", "--json").stdout)
    assert found["healthy"] is False
    assert {finding["level"] for finding in found["findings"]} == {"ok", "problem"}


def test_bench_measures_and_leaves_nothing_behind(tmp_path: Path) -> None:
    for store in ("memory://", "sqlite:///tickwork.db"):
        found = data("bench", "--seconds", "0.3", "--store", store)
        assert len(found["measures"]) == 3
        assert all(measure["tasks"] > 0 and measure["cpu_us_per_task"] > 0 for measure in found["measures"])
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".py" and path.name != "__pycache__"] == []


def test_bench_prints_a_table_and_wants_a_folder_that_exists() -> None:
    shown = run("bench", "--seconds", "0.3", "--store", "memory://")
    heads, *rows = shown.stdout.splitlines()
    assert heads.split()[:2] == ["WHAT", "TASKS"]
    assert len(rows) == 3
    assert "at a time" in shown.stderr
    refused = run("bench", "--store", "sqlite:///nowhere/tickwork.db")
    assert refused.exit_code == 2
    assert "nowhere does not exist" in refused.stderr


def test_output_into_a_pipe_that_closes_is_no_error() -> None:
    for n in range(3):
        good("submit", "add", "--id", f"t{n}")
    script = f"{sys.executable} -c 'from tickwork.cli import main; main()' config --json | head -c 1"
    ran = subprocess.run(["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "{", "")


# --- setting options over those of an application


async def test_configure_changes_options_but_not_handlers(tmp_path: Path) -> None:
    app = Scheduler(worker_concurrency=5, max_retry=1)

    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    @app.periodic("@daily")
    async def daily() -> None: ...

    app.configure(store=f"sqlite:///{tmp_path}/own.db", concurrency=2, lease_ttl=timedelta(seconds=40))
    assert (app.config.concurrency, app.config.max_retry, app.config.lease_ttl) == (2, 1, 40)
    assert app.loaded.origins["weight"] == "default"
    async with app:
        handle = await add.submit(1, 2)
        assert await handle.result(10) == 3
        assert (await handle.info()).max_retry == 1
        assert [schedule.id for schedule in await app.schedules.list()] == ["daily"]
        with pytest.raises(TickworkError, match="before"):
            app.configure(concurrency=3)
    assert (tmp_path / "own.db").exists()


# --- as a process


def test_up_from_banner_to_drain(start: Callable[..., Program]) -> None:
    up = start(
        "up",
        "shop:app",
        "--concurrency",
        "3",
        "--lease-ttl",
        "12s",
        "--renew-interval",
        "1",
        "--queues",
        "default,mail",
    )
    up.until("this node leads")
    banner = up.err
    for words in ("Tickwork ", "sqlite:///tickwork.db", "namespace    scheduler", "default, mail", "3 tasks at a time",
                  "add, boom, greet, new_year, slow, square", "new_year", "Ctrl-C stops"):  # fmt: skip
        assert words in banner
    worker = data("workers")["workers"][0]
    assert (worker["capacity"], worker["queues"], worker["pid"]) == (3, ["default", "mail"], up.process.pid)

    assert good("submit", "add", '{"a": 1, "b": 2}', "--wait", "--queue", "mail") == "3\n"
    assert (
        json.loads(good("submit", "square", "9", "--app", "shop:app", "--wait-timeout", "30s", "--json"))["status"]
        == "success"
    )
    greeted = json.loads(good("submit", "greet", "--app", "shop:app", "--wait-timeout", "30s", "--json"))
    assert greeted["result"]["data"] == "you", "without a payload a handler has its defaults"
    failed = run("submit", "boom", '"the \\u001b[31mreason"', "--app", "shop:app", "--wait")
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert "ValueError: the reason" in failed.stderr

    slow = good("submit", "slow", "4").strip()
    until(lambda: status_of(slow) == "running" and data("task", slow)["progress"] == 0.5, "the slow task runs")
    impatient = run("submit", "slow", "20", "--id", "very-slow", "--wait-timeout", "10ms")
    assert (impatient.exit_code, "has not ended within 0.01 s" in impatient.stderr) == (1, True)
    assert "is running; force=True (--force) asks its handler to stop" in run("cancel", slow).stderr
    good("cancel", "--force", "very-slow")
    until(lambda: status_of("very-slow") == "cancelled", "the other one stops")
    shown = good("task", slow)
    assert "It is running on" in shown
    assert "50% half way" in shown
    assert "INFO under way" in shown
    assert "healthy" in run("doctor", "--json").stdout

    assert up.end() == 0
    assert "Task scheduler stopping running=1" in up.err
    assert status_of(slow) == "success"
    assert data("workers") == {"workers": []}
    shown = good("task", slow)
    assert re.search(r"was claimed by \S+, attempt 1\n.*succeeded after 4[.s]", shown)


def test_a_second_signal_gives_work_back_at_once(start: Callable[..., Program]) -> None:
    task = good("submit", "slow", "60").strip()
    up = start("up", "shop:app", "--log-format", "json")
    until(lambda: status_of(task) == "running", "it runs")
    up.process.send_signal(signal.SIGTERM)
    up.until("Task scheduler stopping")
    began = time.monotonic()
    assert up.end() == 0
    assert time.monotonic() - began < 10
    found = data("task", task)
    assert (found["status"], found["attempt"]) == ("ready", 0)
    lines = [json.loads(line) for line in up.err.splitlines()]
    assert {"Task scheduler started", "Task started", "Task given back"} <= {line["event"] for line in lines}


def test_roles_share_the_work(start: Callable[..., Program]) -> None:
    worker = start("worker", "shop:app", "--store", "sqlite:///roles.db")
    worker.until("Task scheduler started")
    store = ("--store", "sqlite:///roles.db")
    assert good("submit", "add", '{"a": 2, "b": 2}', "--wait", *store) == "4\n"
    assert data("events", "--kind", "leader", *store) == {"events": []}
    assert worker.end(signal.SIGTERM) == 0
    alone = start("up", "--role", "scheduler", *store)
    alone.until("this node leads")
    assert "runs no handlers" in alone.err
    assert data("workers", *store) == {"workers": []}
    assert alone.end() == 0


def test_events_can_be_followed(start: Callable[..., Program]) -> None:
    good("submit", "add", "--id", "before")
    follower = start("events", "--follow", "--json", "--kind", "task.submitted")
    shown: list[dict[str, Any]] = []

    def seen() -> bool:
        good("submit", "add")  # until it listens
        shown[:] = [json.loads(line) for line in follower.out.splitlines()]
        return bool(shown)

    until(seen, "an event")
    assert follower.end() == 0
    assert shown[0]["kind"] == "task.submitted"
    assert shown[0]["id"] != "before"
    assert "Traceback" not in follower.err


def test_a_password_on_the_command_line_is_warned_of() -> None:
    shown = run("config", "--store", "redis://:hunter2@host")
    assert shown.exit_code == 0
    assert "warning: --store has a password, which `ps` shows to everybody here" in shown.stderr
    assert "hunter2" not in shown.output
    assert "warning" not in run("config", "--store", "redis://user@host?password_file=pw").stderr


# --- the demo


async def _all_tasks(path: Path) -> dict[str, TaskInfo]:
    app = Scheduler(f"sqlite:///{path}")
    try:
        assert await app.audit() == []
        found: dict[str, TaskInfo] = {}
        cursor: str | None = None
        while True:
            page = await app.list_tasks(limit=1000, cursor=cursor)
            found.update({task.id: task for task in page})
            if (cursor := page.cursor) is None:
                return found
    finally:
        await app.close()


def test_the_demo_survives_kill_9_and_loses_nothing(start: Callable[..., Program], tmp_path: Path) -> None:
    path = tmp_path / "tickwork-demo.db"
    demo = start("demo", "--rate", "25")
    demo.until("is a new file")
    until(lambda: re.search(r"running=[1-9]\d* .* success=\d\d", demo.out), "it is busy")
    demo.process.kill()
    demo.process.wait()
    before = asyncio.run(_all_tasks(path))
    cut_off = [task for task in before.values() if task.status is Status.RUNNING]
    assert len(before) > 10
    assert cut_off, "rebuilding the search takes seconds"

    again = start("demo", "--rate", "0")
    again.until(f"from last time: {len(cut_off)} cut off while running, taken back now, ")

    def all_run_again() -> bool:
        after = asyncio.run(_all_tasks(path))
        found = [(after[old.id], old) for old in cut_off]
        return all(new.status is not Status.READY and new.worker_id != old.worker_id for new, old in found)

    until(all_run_again, "what was cut off is taken by the new process")
    assert again.end(signal.SIGTERM) == 0
    assert "Stopped. tickwork-demo.db holds " in again.out
    after = asyncio.run(_all_tasks(path))
    assert set(before) <= set(after), "no task may be lost"
    for task in before.values():
        assert not task.status.ended or after[task.id].status is task.status, "what had ended stays as it was"
    assert not [task for task in after.values() if task.status is Status.RUNNING]

    fresh = start("demo", "--fresh", "--seconds", "0.5")
    assert fresh.process.wait(30) == 0
    assert "is a new file" in fresh.out
    assert not set(before) & set(asyncio.run(_all_tasks(path)))


def demo_on_a_terminal(folder: Path, wanted: str, times: int = 1, rows: int = 24, **environ: str) -> str:
    """What the demo writes to a terminal until it has shown the wanted words that often."""
    if sys.platform == "win32":
        pytest.skip("needs a pseudo terminal")
    import pty

    ours, theirs = pty.openpty()
    size = {"LINES": str(rows), "COLUMNS": "120"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tickwork", "demo", "--no-color", "--seconds", "60"],
        cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True, env={**os.environ, **size, **environ},
    )  # fmt: skip
    os.close(theirs)
    shown, asked = b"", False
    while chunk := _read(ours):
        shown += chunk
        if not asked and len(re.findall(wanted.encode(), shown)) >= times:
            process.send_signal(signal.SIGINT)
            asked = True
    os.close(ours)
    assert asked, f"{wanted} was not shown {times} times"
    assert process.wait(20) == 0
    text = shown.decode(errors="replace")  # what is told at the end may come in the middle of a screen
    assert "Stopped. " in text
    assert "Traceback" not in text
    return text


def test_the_demo_draws_a_screen_on_a_terminal(tmp_path: Path) -> None:
    text = demo_on_a_terminal(tmp_path, "READY, BY PRIORITY", times=2)
    assert "\x1b[23A" in text, "in place"


def pasted(text: str, words: str, folder: Path, path: str) -> str:
    """The output of the command with these words that the screen offers, as a shell with that PATH runs it."""
    (command,) = {line.strip() for line in re.findall(rf"^\r(.*{words}.*?)\x1b", text, re.MULTILINE)}
    ran = subprocess.run(
        command, shell=True, cwd=folder, env={"PATH": path}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_what_the_demo_offers_can_be_pasted(tmp_path: Path) -> None:
    own = str(Path(sys.executable).parent)
    for path, name in ((os.devnull, rf"{own}/tickwork"), (f"{own}:{os.environ['PATH']}", "tickwork")):
        text = demo_on_a_terminal(tmp_path, "queues pause default", times=2, rows=40, PATH=path)
        assert "dead letters" in pasted(text, f"  {name} dlq retry-all", tmp_path, path)
        assert "is paused" not in text
        assert "paused" in pasted(text, f"  {name} queues pause default", tmp_path, path)
        text = demo_on_a_terminal(tmp_path, "Queue default is paused. To go on:", times=2, PATH=path)
        assert "resumed" in pasted(text, f"  {name} queues resume default", tmp_path, path)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux: the other side was closed
        return b""


def test_the_demo_runs_on_redis_in_a_namespace_of_its_own(start: Callable[..., Program]) -> None:
    url = empty_redis()
    demo = start("demo", "--store", url)
    demo.until(f"{url}, namespace demo, holds no task yet")
    until(lambda: re.search(r"success=[1-9]", demo.out), "it works")
    assert demo.end() == 0
    assert "Nothing is lost: run it again and it goes on from here." in demo.out
    assert data("stats", "--store", url, "--namespace", "demo")["tasks"]["success"] > 0
    refused = start("demo", "--fresh", "--store", url)
    assert refused.process.wait(20) == 2
    assert "start over with another --namespace" in refused.err


def test_a_demo_that_runs_is_not_deleted(start: Callable[..., Program]) -> None:
    demo = start("demo", "--rate", "1")
    demo.until("success=")
    result = run("demo", "--fresh")
    assert result.exit_code == 1
    assert f"another demo uses tickwork-demo.db (pid {demo.process.pid})" in result.stderr
    assert demo.end() == 0
    assert Fact.TASK_SUBMITTED in {
        event["kind"] for event in data("events", "--store", "sqlite:///tickwork-demo.db")["events"]
    }


def test_an_application_that_names_no_store_is_not_run(monkeypatch: pytest.MonkeyPatch, own_folder: Path) -> None:
    """Another process that imports it would use another store."""
    monkeypatch.delenv("TICKWORK_STORE")
    for command in ("up", "worker"):
        refused = run(command, "shop:app")
        assert refused.exit_code == 2
        assert "shop:app names no store" in refused.stderr
    assert not (own_folder / "tickwork.db").exists()


def test_a_submit_makes_no_file_that_nobody_named(monkeypatch: pytest.MonkeyPatch, own_folder: Path) -> None:
    monkeypatch.delenv("TICKWORK_STORE")
    refused = run("submit", "add")
    assert (refused.exit_code, "there is no SQLite file tickwork.db" in refused.stderr) == (3, True)
    assert run("submit", "add", "--store", "sqlite:///tickwork.db").exit_code == 0
    assert run("submit", "add").exit_code == 0, "now it is there"


# --- lifetimes, histories and lists


def test_a_task_shows_its_lifetimes_and_the_runs_before_its_last_one(own_folder: Path) -> None:
    (own_folder / "shaky.py").write_text(SHAKY)
    good(
        "submit",
        "shaky",
        "--id",
        "it",
        "--max-retry",
        "1",
        "--retention",
        "2h",
        "--dedup-key",
        "k",
        "--unique",
        "queued",
    )
    with_app = subprocess.run([sys.executable, "shaky.py"], capture_output=True, text=True, cwd=own_folder)
    assert with_app.returncode == 0, with_app.stderr
    shown = good("task", "it")
    assert "k, held while the task is queued" in shown
    assert re.search(r"retention +2h", shown)
    assert re.search(r"Runs before the last one\n.*attempt 1 failed after .*, on .*\n +ValueError: not yet", shown)
    (run_before,) = data("task", "it")["attempts"]
    assert (run_before["number"], run_before["end"]) == (1, "failed")
    assert "ValueError: not yet" in run_before["error"]


SHAKY = """
import asyncio
from tickwork import FixedDelay, Scheduler, TaskContext

app = Scheduler("sqlite:///tickwork.db", retry=FixedDelay(0.01))

@app.task
async def shaky(ctx: TaskContext) -> None:
    if ctx.attempt == 1:
        raise ValueError("not yet")

async def main() -> None:
    async with app:
        while (await app.get_task("it")).status != "success":
            await asyncio.sleep(0.01)

asyncio.run(main())
"""


def test_a_task_that_expires_is_submitted_and_shown() -> None:
    good("submit", "greet", "--id", "it", "--expires", "1h")
    assert re.search(r"expires +\S", good("task", "it"))
    assert run("submit", "greet", "--unique", "always").exit_code == 2
    assert "give dedup_key with it" in run("submit", "greet", "--unique", "queued").output


def test_tasks_are_listed_by_key_with_and_without_an_index() -> None:
    for number in range(3):
        good("submit", "greet", "--id", f"t{number}", "--key", f"k{number % 2}")
    assert "Tasks are indexed by type, queue and key now." in good("index", "on")
    assert "There is nothing to do: the index was on." in good("index", "on")
    assert [task["id"] for task in data("tasks", "--key", "k0")["tasks"]] == ["t2", "t0"]
    assert data("index", "off") == {"indexed": False, "changed": True}
    assert [task["id"] for task in data("tasks", "--key", "k1")["tasks"]] == ["t1"]
    assert run("index", "maybe").exit_code == 2
