"""Bad input gets an error that says what is wrong and what to do, and nothing is lost."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from tests.integration.apps import Make, eventually, status_of, store_of
from tickwork import (
    ConfigError,
    CronError,
    FixedDelay,
    HandlerNotFound,
    PayloadError,
    ScheduleNotFound,
    Scheduler,
    Status,
    StoreError,
    StoreUnavailable,
    TaskNotFound,
    TickworkError,
)
from tickwork.store.sqlite.schema import VERSION
from tickwork.testing import drain, wait_for


@pytest.fixture
def app(make: Make, url: str) -> Scheduler:
    app = make(url)

    @app.task
    async def work(n: int = 0) -> int:
        return n

    return app


class Newer(FixedDelay, frozen=True, tag="newer"):
    """A strategy that only this process knows."""


SOON = datetime(2100, 1, 1, tzinfo=UTC)
NAIVE = datetime(2100, 1, 1)


class Placeless(tzinfo):
    """A zone that knows no offset: what has it is as naive as what has none."""

    def utcoffset(self, moment: datetime | None) -> None:
        return None

    dst = tzname = utcoffset


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"priority": 0}, r"priority must be a whole number from 1 \(low\) to 10 \(high\), not 0"),
    ({"priority": 11}, r"from 1 \(low\) to 10 \(high\), not 11"),
    ({"priority": -1}, "not -1"),
    ({"priority": True}, "not True"),
    ({"priority": 5.0}, r"not 5\.0"),
    ({"priority": "high"}, "not 'high'"),
    ({"delay": -1}, "delay must not be negative, nor longer than a century: -1"),
    ({"delay": timedelta(seconds=-1)}, "delay must not be negative"),
    ({"delay": float("nan")}, "delay must be a number of seconds or a timedelta, not nan"),
    ({"delay": float("inf")}, "not inf"),
    ({"delay": 1e12}, "nor longer than a century"),
    ({"delay": "5m"}, "delay must be a number of seconds or a timedelta, not '5m'"),
    ({"delay": True}, "not True"),
    ({"schedule_at": NAIVE}, r"schedule_at must know its zone, such as datetime\(2030, 1, 1, tzinfo=UTC\)"),
    ({"schedule_at": "2030-01-01"}, "schedule_at must be a datetime, not '2030-01-01'"),
    ({"schedule_at": 1893456000}, "schedule_at must be a datetime"),
    ({"schedule_at": datetime.max.replace(tzinfo=UTC)}, "schedule_at must be before the year 3000, not datetime"),
    ({"schedule_at": datetime(3000, 1, 1, tzinfo=UTC)}, "schedule_at must be before the year 3000"),
    ({"schedule_at": datetime(2100, 1, 1, tzinfo=Placeless())}, "schedule_at must know its zone"),
    ({"delay": 1, "schedule_at": SOON}, "give only one of delay and schedule_at"),
    ({"delay": 1, "cron": "@daily"}, "delay cannot be given together with cron"),
    ({"schedule_at": SOON, "cron": "@daily"}, "schedule_at cannot be given together with cron"),
    ({"dedup_key": "", "cron": "@daily"}, "dedup_key must be a text of 1 to 512 characters"),
    ({"depends_on": ["a"], "cron": "@daily"}, "depends_on cannot be given together with cron"),
    ({"cron": "61 * * * *"}, r"minute.*61"),
    ({"cron": "* * * *"}, r"5.*6"),
    ({"cron": "* 25 * * *"}, r"hour.*25"),
    ({"cron": "* * * * * * *"}, "fields"),
    ({"cron": ""}, "cron"),
    ({"cron": "0 0 30 2 *"}, "never comes: no month that it allows has such a day"),
    ({"cron": "0 0 31 4,6,9,11 *"}, "never comes"),
    ({"cron": "@dayly"}, "did you mean '@daily'"),
    ({"cron": "@daily", "timezone": "Europe/Berln"}, "Europe/Berln.*Europe/Berlin"),
    ({"cron": "@daily", "id": "a b"}, "a schedule's id must be 1 to 128"),
    ({"cron": "@daily", "overlap": "allow"}, "unknown option 'overlap'"),
    ({"max_retry": -1}, "max_retry must be a whole number from 0 on, not -1"),
    ({"max_retry": 1.5}, r"max_retry must be a whole number from 0 on, not 1\.5"),
    ({"retry": 5}, r"retry must be one of the retry strategies \(ExponentialBackoff, .*\), not 5"),
    ({"retry": Newer(1.0)}, r"retry must be one of the retry strategies \(.*\), not Newer"),
    ({"tags": {f"t{number}": "" for number in range(65)}}, "a task may have 64 tags, not 65"),
    ({"delay": 10**400}, "delay must not be negative, nor longer than a century"),
    ({"timeout": -1}, "timeout must not be negative"),
    ({"timeout": "30s"}, "timeout must be a number of seconds or a timedelta, not '30s'"),
    ({"dedup_key": ""}, "dedup_key must be a text of 1 to 512 characters"),
    ({"dedup_key": "x" * 513}, "dedup_key must be a text of 1 to 512 characters"),
    ({"dedup_key": 5}, "dedup_key must be a text"),
    ({"dedup_key": "\udcff"}, "dedup_key must be a text"),
    ({"dedup_key": "k", "dedup_ttl": 0}, "dedup_ttl must be longer than 0 seconds"),
    ({"dedup_key": "k", "dedup_ttl": -5}, "dedup_ttl must not be negative"),
    ({"key": ""}, "key must be a text of 1 to 512 characters"),
    ({"key": "\udcff"}, "key must be a text"),
    ({"id": "a b"}, "id must be 1 to 128 letters, digits or"),
    ({"id": ""}, "id must be 1 to 128"),
    ({"id": "x" * 129}, "id must be 1 to 128"),
    ({"id": "*work"}, "id must be 1 to 128"),
    ({"id": "a\n"}, "id must be 1 to 128"),
    ({"id": 5}, "id must be 1 to 128"),
    ({"queue": "a/b"}, "queue must be 1 to 128"),
    ({"tags": ["a"]}, "tags must be a mapping of names to texts"),
    ({"tags": {"a": 1}}, "tag 'a' must be a text of at most 256 characters, not 1"),
    ({"tags": {"a b": "x"}}, "a tag's name must be 1 to 128"),
    ({"tags": {"a": "x" * 257}}, "tag 'a' must be a text of at most 256"),
    ({"tags": {"a": "\udcff"}}, "tag 'a' must be a text"),
    ({"context": 5}, "context must be a mapping, not 5"),
    ({"context": {"a": 1j}}, "cannot encode"),
    ({"context": {"a": float("nan")}}, "nan cannot be written as JSON"),
    ({"depends_on": "one"}, "depends_on must be a list of tasks or task ids, not 'one'"),
    ({"depends_on": [5]}, "a dependency must be 1 to 128"),
    ({"target": "w1"}, "target: there is no worker 'w1'; known are none"),
    ({"requires": ["gpu"]}, "requires must be a mapping"),
    ({"id": "tickwork.webhook:crm:7"}, "ids that begin with tickwork. are for Tickwork's own tasks"),
    ({"requires": {"gpu": "a 100"}}, "requires: 'gpu' must be required with"),
    ({"requires": {str(n): "x" for n in range(9)}}, "requires holds 9 labels"),
    ({"executor": "magic"}, "unknown executor 'magic'; known are local"),
    ({"serializer": "morse"}, r"serializer 'morse' is not known here \(known: json, msgpack, protobuf\)"),
    ({"priorty": 5}, r"unknown option 'priorty'; did you mean 'priority'\?"),
    ({"wholly": 5}, "unknown option 'wholly'; known are .*context, "),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[str(options)[:50] for options, _ in REFUSED])
async def test_an_option_that_makes_no_sense(make: Make, options: dict[str, Any], message: str) -> None:
    app = make("memory://")

    @app.task
    async def work() -> None: ...

    with pytest.raises(TickworkError, match=message):
        await app.submit("work", None, **options)
    assert (await app.status()).tasks == {}
    assert (await app.schedules.list()).items == []


async def test_the_same_for_every_way_to_submit(app: Scheduler) -> None:
    """One check, whichever way a submission comes."""

    for call in (
        app.submit("work", 1, priority=11),
        app.submit_many("work", [1], priority=11),
        app.schedules.put("s", "work", 1, cron="@daily", priority=11),
    ):
        with pytest.raises(ConfigError, match="priority must be a whole number"):
            await call
    for name in ("id", "dedup_key", "cron"):
        with pytest.raises(ConfigError, match=f"submit_many cannot take {name}"):
            await app.submit_many("work", [1, 2], **{name: "x"})  # type: ignore[arg-type]
    with pytest.raises(PayloadError):
        await app.submit_many("work", [1, "two", 3])
    assert (await app.status()).tasks == {}, "all are checked before any is created"
    with pytest.raises(ConfigError, match=r"unknown option 'max_rety'; did you mean 'max_retry'\?"):

        @app.task(max_rety=3)  # type: ignore[call-overload, untyped-decorator]
        async def misspelt() -> None: ...


OF_HANDLERS: list[tuple[dict[str, Any], str]] = [
    ({"timeout": "30s"}, "timeout must be a number of seconds or a timedelta, not '30s'"),
    ({"max_retry": "3"}, "max_retry must be a whole number from 0 on, not '3'"),
    ({"max_retry": -1}, "max_retry must be a whole number from 0 on, not -1"),
    ({"retry": 5}, r"retry must be one of the retry strategies \(.*\), not 5"),
    ({"priority": 99}, r"from 1 \(low\) to 10 \(high\), not 99"),
    ({"queue": "a b"}, "queue must be 1 to 128"),
    ({"tags": [1]}, "tags must be a mapping of names to texts"),
    ({"context": {"a": 1j}}, "cannot encode"),
    ({"key": 5}, "key must be a text of 1 to 512 characters"),
    ({"executor": "magic"}, "unknown executor 'magic'"),
    ({"requires": {"gpu": 1}}, "requires: 'gpu' must be required with 1"),
    ({"serializer": "morse"}, r"serializer 'morse' is not known here \(known: json, msgpack, protobuf\)"),
    ({"max_retires": 3}, r"unknown option 'max_retires'; did you mean 'max_retry'\?"),
    ({"id": "x"}, "unknown option 'id'"),
]


@pytest.mark.parametrize(("options", "message"), OF_HANDLERS, ids=[str(options)[:50] for options, _ in OF_HANDLERS])
def test_an_option_of_a_handler_is_refused_where_it_is_said(options: dict[str, Any], message: str) -> None:
    app = Scheduler("memory://")

    async def work(n: int) -> None: ...

    with pytest.raises(ConfigError, match=message):
        app.task(**options)(work)
    with pytest.raises(ConfigError, match=message):
        app.registry.register("work", work, **options)
    assert app.registry.list() == []


OF_PERIODICS: list[tuple[dict[str, Any], str]] = [
    ({"overlp": "skip"}, r"unknown option 'overlp'; did you mean 'overlap'\?"),
    ({"overlap": "nope"}, "overlap must be one of skip, queue, allow, not 'nope'"),
    ({"misfire": "later"}, "misfire must be one of latest, skip, all, not 'later'"),
    ({"misfire_cap": 0}, "misfire_cap must be a whole number from 1 on, not 0"),
    ({"timeout": "30s"}, "timeout must be a number of seconds"),
    ({"id": "a" * 101}, "a schedule's id must be at most 100 characters"),
]


@pytest.mark.parametrize(("options", "message"), OF_PERIODICS, ids=[str(options)[:50] for options, _ in OF_PERIODICS])
def test_an_option_of_a_periodic_function_is_refused_where_it_is_said(options: dict[str, Any], message: str) -> None:
    app = Scheduler("memory://")
    with pytest.raises(ConfigError, match=message):

        @app.periodic("@daily", **options)
        async def work() -> None: ...

    assert (app.registry.list(), app.list_registered()) == ([], [])


def test_the_name_of_a_type_is_no_keyword() -> None:
    with pytest.raises(ConfigError, match=r"comes first and without a keyword: @app.task\('greet'\)"):
        Scheduler("memory://").task(name="greet")  # type: ignore[call-overload]


async def test_what_belongs_to_one_submission_is_no_option_of_a_type(make: Make) -> None:
    app = make("memory://")
    for name, value in {"cron": "@daily", "id": "x", "delay": 5, "dedup_key": "k"}.items():
        with pytest.raises(ConfigError, match=f"unknown option '{name}'"):
            app.task(**{name: value})  # type: ignore[call-overload]


async def test_a_function_that_is_no_task(make: Make) -> None:
    app = make("memory://")
    with pytest.raises(ConfigError, match=r"submit and call take the name of a type, or a function that app\.task"):
        await app.submit(lambda: None)  # type: ignore[arg-type]


async def test_a_schedule_that_makes_no_sense(app: Scheduler) -> None:
    for options, message in (
        ({"name": 5}, "name must be a text of 1 to 256 characters, not 5"),
        ({"enabled": "no"}, "enabled must be true or false, not 'no'"),
        ({"timezone": 5}, "a time zone is a name such as"),
        ({"timezone": "Nowhere"}, "unknown time zone 'Nowhere'"),
        ({"misfire_grace": -1}, "misfire_grace must not be negative"),
    ):
        for cron in ("@daily", None):
            with pytest.raises(ConfigError, match=message):
                await app.schedules.put("s", "work", 1, cron=cron, **options)
    assert (await app.schedules.list()).items == []


async def test_an_unknown_type(make: Make, file_url: str) -> None:
    alone = make("memory://")

    @alone.task
    async def known() -> None: ...

    with pytest.raises(HandlerNotFound, match=r"'strange' is registered here \(known: known\)"):
        await alone.submit("strange")
    with pytest.raises(HandlerNotFound):
        await alone.schedules.put("s", "strange", cron="@daily")
    shared = make(file_url)
    handle = await shared.submit("strange")  # another process may know it
    assert await status_of(shared, handle.id) is Status.READY
    for wrong in ("", "a b", "x" * 129, "a\n"):
        with pytest.raises(TickworkError, match="1 to 128 letters, digits"):
            await shared.submit(wrong)


async def test_a_duplicate_registration(make: Make) -> None:
    app = make("memory://")

    @app.task
    async def work() -> str:
        return "first"

    with pytest.raises(ConfigError, match="a handler for type 'work' is registered already; unregister it first"):

        @app.task("work")
        async def other() -> str:
            return "second"

    async with app:
        assert await (await work.submit()).result(10) == "first"


async def test_functions_of_one_definition_are_several(make: Make) -> None:
    app = make("memory://")

    def make_one(number: int) -> Callable[[], int]:
        def made() -> int:
            return number

        return made

    app.task(make_one(1))
    with pytest.raises(ConfigError, match="a handler for type 'made' is registered already"):
        app.task(make_one(2))
    app.task("nameless")(lambda: 1)
    with pytest.raises(ConfigError, match="'nameless' is registered already"):
        app.task("nameless")(lambda: 2)


CELL = """
import functools

def loud(function):
    @functools.wraps(function)
    async def call(*args, **kwargs):
        return (await function(*args, **kwargs)).upper()
    return call

@app.task
async def work(text: str) -> str:
    return text + " {version}"

@app.task
@loud
async def shout(text: str) -> str:
    return text + " {version}"

@app.periodic("{cron}")
async def sweep() -> None: ...

app.periodic("{cron}", payload="x", id="regular_work")(work)
"""


async def test_a_function_that_is_defined_again_takes_the_place_of_the_first(make: Make, url: str) -> None:
    """As when a cell of a notebook is run again, or a module is reloaded."""
    app = make(url)
    names = {"app": app, "__name__": "notebook"}
    exec(CELL.format(version="one", cron="@daily"), names)
    async with app:
        assert await (await app.submit("work", "a")).result(10) == "a one"
        exec(CELL.format(version="two", cron="@hourly"), names)
        assert await (await app.submit("work", "a")).result(10) == "a two"
        assert await (await app.submit("shout", "a")).result(10) == "A TWO"

        async def taken_over() -> bool:
            return {schedule.cron for schedule in await app.schedules.list()} == {"@hourly"}

        await eventually(taken_over)
    assert app.list_registered() == ["regular_work", "sweep"]


async def test_a_bad_definition_leaves_the_first_in_place(make: Make) -> None:
    app = make("memory://")
    names = {"app": app, "__name__": "notebook"}
    exec(CELL.format(version="one", cron="@daily"), names)
    first = app.registry.get("sweep")
    with pytest.raises(CronError):
        exec(CELL.format(version="two", cron="never"), names)
    assert app.registry.get("sweep") is first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lease_ttl": 5, "renew_interval": 10}, r"lease_ttl: 5.*must be longer than renew_interval \(10\)"),
        ({"lease_ttl": 10, "renew_interval": 10}, "must be longer than renew_interval"),
        ({"concurency": 3}, "concurency.*concurrency"),
        ({"lease_tll": 3}, "lease_tll.*lease_ttl"),
        ({"worker_count": 0}, "worker_count"),
        ({"concurrency": 0}, "concurrency"),
        ({"timezone": "Mars/Base"}, "Mars/Base"),
        ({"namespace": "a b"}, "namespace.*1 to 64"),
        ({"queues": []}, "queues"),
        ({"max_retry": -1}, "max_retry"),
        ({"serializer": "pickle"}, "serializer.*json, msgpack"),
        ({"log_level": "loud"}, "log_level"),
    ],
)
def test_an_option_of_the_scheduler_that_makes_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Scheduler("memory://", **options)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "postgres://user:geheim@host/db",
            r"'postgres://user:\*\*\*@host/db' is of no known kind; known are memory://",
        ),
        ("redsi://localhost/0", "no known kind; did you mean 'redis'"),
        ("memory", "no known kind"),
        ("sqlite://", r"named by sqlite:///relative.db or sqlite:////absolute.db"),
        ("sqlite:///", "named by sqlite:///relative.db"),
        ("sqlite://host/file", "named by sqlite:///relative.db"),
        ("/tmp/file.db", "no known kind"),
    ],
)
def test_a_store_url_that_names_nothing(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        Scheduler(url)
    assert "geheim" not in str(caught.value)


# --- files that cannot be opened


async def refused(path: Path | str, message: str, **options: Any) -> None:
    """Every way into the store gives the same clear error, and goes on doing so."""
    for use in (Scheduler.start, Scheduler.queue_stats, Scheduler.start):
        app = Scheduler(f"sqlite:///{path}", **options)
        for _ in range(2):
            with pytest.raises(StoreError, match=message) as caught:
                await use(app)
            assert str(path) in str(caught.value)
        await app.shutdown()


async def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    await refused(tmp_path / "none" / "tick.db", f"folder {tmp_path}/none does not exist")


async def test_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    await refused(tmp_path, "this is a folder, not a file")


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("dear diary, " * 100)
    await refused(tmp_path / "notes.txt", "file is not a database")
    assert (tmp_path / "notes.txt").read_text() == "dear diary, " * 100


async def test_a_file_of_another_schema_version(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "tick.db"
    app = make(f"sqlite:///{path}")
    await app.queue_stats()
    await app.close()
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE tickwork_schema SET version = 99")
    await refused(
        path, r"schema version 99, this Tickwork reads version \d+\. Use the Tickwork that wrote it, or another"
    )
    other = Scheduler(f"sqlite:///{path}", namespace="other")
    await other.queue_stats()  # another namespace of the same file is not touched by that
    await other.close()
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE tickwork_schema SET version = ? WHERE version = 99", (VERSION,))


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that users without rights may look into."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextlib.contextmanager
def without_rights() -> Iterator[None]:
    """Root may write everything, so be nobody for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


async def test_a_read_only_file(public_folder: Path) -> None:
    path = public_folder / "tick.db"
    app = Scheduler(f"sqlite:///{path}")
    handle = await app.submit("work", 1)
    await app.close()
    for file in public_folder.iterdir():
        file.chmod(0o444)
    public_folder.chmod(0o555)
    try:
        with without_rights():
            await refused(path, "(?i)read.?only")
    finally:
        public_folder.chmod(0o755)
        path.chmod(0o644)
    assert await status_of(app, handle.id) is Status.READY
    await app.close()


async def test_a_folder_that_may_not_be_written(public_folder: Path) -> None:
    public_folder.chmod(0o555)
    try:
        with without_rights():
            await refused(public_folder / "tick.db", "(?i)unable to open database file|may not be written|permission")
    finally:
        public_folder.chmod(0o755)


# --- a disk that fills up


async def limit_pages(app: Scheduler, pages: int) -> None:
    """SQLite's own limit on the size of a file: the next page that is needed is as if the disk were full."""
    store: Any = await store_of(app)
    await store.core.write.call(lambda: store.core.writer.db.execute(f"PRAGMA max_page_count = {pages}").fetchall())


async def test_a_full_disk_loses_nothing(make: Make, sqlite_url: str) -> None:
    app = make(sqlite_url)

    @app.task(max_retry=0)
    async def work(n: int) -> str:
        return "x" * n

    @app.task
    async def note(text: str) -> None: ...

    before = await app.submit("work", 10, delay=3600)
    await limit_pages(app, 1)  # no more than it has
    with pytest.raises(StoreUnavailable, match="full; nothing was changed, free some space and try again") as caught:
        await app.submit_many("note", ["y" * 50_000] * 100)
    assert "tick.db" in str(caught.value)
    tasks = (await app.status()).tasks
    assert await status_of(app, before.id) is Status.PENDING
    await limit_pages(app, 1_000_000)
    await app.submit("note", "y" * 50_000)
    assert (await app.status()).tasks["ready"] == tasks.get("ready", 0) + 1
    async with app:
        await drain(app)
        await app.run_now(before.id)
        assert await before.result(10) == "x" * 10
    assert await app.audit() == []


async def test_a_result_waits_for_the_disk(make: Make, sqlite_url: str) -> None:
    """An outcome that cannot be written is kept and sent again, and its lease with it: the handler runs once."""
    app = make(sqlite_url, lease_ttl=0.6, renew_interval=0.1, payload_limit=10_000_000)
    ran: list[int] = []

    @app.task
    async def work() -> str:
        ran.append(1)
        await limit_pages(app, 1)
        return "z" * 3_000_000

    async with app:
        store = await store_of(app)
        handle = await work.submit()
        worker = app._node.workers[0] if app._node else None
        assert worker is not None

        async def outlived() -> bool:
            record = await store.queries.get(handle.id)
            assert record is not None
            started = record.started_at
            return started is not None and worker._exchange._failures >= 2 and record.lease_until > started + 2000

        await eventually(outlived, what="its lease was renewed for several times its length")
        assert await status_of(app, handle.id) is Status.RUNNING
        await limit_pages(app, 1_000_000)
        info = await wait_for(app, handle.id, "success")
        assert (info.attempt, info.losses, ran) == (1, 0, [1])
        assert await handle.result(1) == "z" * 3_000_000


# --- what is too much

LONG = "A" * 1_000_000
ECHOED: list[dict[str, Any]] = [
    *(
        {option: LONG}
        for option in ("id", "queue", "priority", "delay", "schedule_at", "max_retry", "timeout", "retry")
    ),
    *({option: LONG} for option in ("dedup_key", "key", "tags", "context", "depends_on", "executor", "serializer")),
    *({"dedup_key": "k", "dedup_ttl": LONG}, {"tags": {"a": LONG}}, {"tags": {LONG: "a"}}, {"depends_on": [LONG]}),
    *({"durability": LONG}, {"cron": LONG}, {"cron": "@daily", "timezone": LONG}, {LONG: 1}, {"priority": [LONG] * 50}),
    *({"priority": 10**4000}, {"id": LONG.encode()}, {"tags": [LONG] * 1000}, {"delay": {"a": {"b": {"c": LONG}}}}),
]


@pytest.mark.parametrize(
    "options", ECHOED, ids=[f"{number}-{[*options][-1][:20]}" for number, options in enumerate(ECHOED)]
)
async def test_errors_repeat_little_of_what_they_refuse(make: Make, options: dict[str, Any]) -> None:
    app = make("memory://")

    @app.task
    async def work() -> None: ...

    with pytest.raises(TickworkError) as caught:
        await app.submit("work", None, **options)
    assert len(str(caught.value)) < 700


async def test_errors_repeat_little_of_names_and_ids(app: Scheduler) -> None:
    for call in (
        app.submit(LONG),
        app.get_task(LONG),
        app.cancel(LONG),
        app.schedules.get(LONG),
        app.schedules.put(LONG, "work", cron="@daily"),
        app.list_tasks(LONG),
        app.list_tasks(cursor=LONG),
        app.queues.pause(LONG),
    ):
        with pytest.raises(TickworkError) as caught:
            await call
        assert len(str(caught.value)) < 400
    with pytest.raises(ConfigError) as refused:
        app.registry.register(LONG, lambda: None)
    assert len(str(refused.value)) < 400


async def test_all_that_a_task_carries_counts_against_one_limit(make: Make, url: str) -> None:
    app = make(url, payload_limit=2000)

    @app.task
    async def work(text: str) -> None: ...

    many = [f"t{number}" for number in range(400)]
    for options in (
        {"context": {"x": "y" * 2000}},
        {"tags": {f"t{number}": "y" * 100 for number in range(20)}},
        {"context": {"x": "y" * 1200}, "tags": {"a": "y" * 250}, "key": "z" * 500},
        {"depends_on": many},
    ):
        with pytest.raises(PayloadError, match=r"is 211 bytes, and its context, tags, key and dependencies [\d,]+, "):
            await app.submit("work", "x" * 200, **options)
        with pytest.raises(PayloadError, match="the limit is 2,000; store it elsewhere"):
            await app.submit_many("work", ["x" * 200], **options)
    await app.submit_many("work", ["x" * 500, "x" * 900], context={"x": "y" * 1000})
    with pytest.raises(PayloadError, match="the limit is 2,000"):
        await app.submit_many("work", ["x" * 500, "x" * 1000], context={"x": "y" * 1000})

    @app.task(tags={f"t{number}": "y" * 100 for number in range(10)})
    async def tagged(text: str) -> None: ...

    await tagged.submit("x" * 500)
    await tagged.submit("x" * 500)
    with pytest.raises(PayloadError, match="is 1,011 bytes, and its context, tags"):
        await tagged.submit("x" * 1000)


async def test_notes_and_messages_are_texts(app: Scheduler) -> None:
    handle = await app.submit("work", 1, delay=3600)
    for wrong in (1, b"x", None, ["a"], True):
        for call in (
            app.queues.pause("q", wrong),  # type: ignore[arg-type]
            app.queues.pause_type("t", wrong),  # type: ignore[arg-type]
            app.update_task_status(handle.id, "cancelled", wrong),  # type: ignore[arg-type]
        ):
            with pytest.raises(ConfigError, match=r"(note|message) must be a text, not"):
                await call
    await app.queues.pause("q", "a file \udcff")
    await app.queues.pause_type("t", "n" * 5000)
    await app.update_task_status(handle.id, "cancelled", "m" * 5_000_000)
    (paused,) = [queue for queue in await app.queues.list() if queue.paused]
    assert paused.note == "a file \\udcff"
    details = [event.detail for event in await app.events.read()]
    assert [len(detail) for detail in details] == [0, 13, 2000, 2000]
    assert details[2] == "n" * 1999 + "…"
    result = (await handle.info()).result
    assert result is not None
    assert result.message == "m" * 1999 + "…"


async def test_ids_and_cursors_of_another_type(app: Scheduler) -> None:
    for wrong in ("\ud800", "a b", "", "x" * 200):
        for ask in (
            app.get_task,
            app.cancel,
            app.retry,
            app.delete,
            app.explain,
            app.dlq.get,
            app.dlq.remove,
            app.dlq.retry,
        ):
            with pytest.raises(TaskNotFound):
                await ask(wrong)
        with pytest.raises(TaskNotFound):
            await app.handle(wrong).result(1)
        with pytest.raises(TaskNotFound):
            await app.events.read(task_id=wrong)
        for look in (app.schedules.get, app.schedules.pause, app.schedules.resume, app.schedules.delete):
            with pytest.raises(ScheduleNotFound):
                await look(wrong)
    odd: Any
    for odd in (5, None, b"x", ["a"]):
        for ask in (app.get_task, app.cancel, app.retry, app.delete, app.dlq.remove):
            with pytest.raises(ConfigError, match="the id of a task is a text, not"):
                await ask(odd)
        with pytest.raises(ConfigError, match="the id of a schedule is a text, not"):
            await app.schedules.get(odd)
        with pytest.raises(ConfigError, match="a worker's id must be"):
            await app.unregister_worker(odd)
    for odd in (5, b"1", ["1"], True):
        with pytest.raises(TickworkError, match="is not one that an earlier page gave"):
            await app.list_tasks(cursor=odd)
        with pytest.raises(TickworkError, match="is not one that an earlier page gave"):
            await app.dlq.list(cursor=odd)
        with pytest.raises(ConfigError, match="type must be a text"):
            await app.list_tasks(type=odd)
    for odd in ("5", None, 2.0, True):
        with pytest.raises(ConfigError, match="limit must be a whole number"):
            await app.list_tasks(limit=odd)
        with pytest.raises(ConfigError, match="after must be a whole number"):
            await app.events.read(after=odd)
    with pytest.raises(ConfigError, match="tags must be a mapping"):
        await app.list_tasks(tags=[1])  # type: ignore[arg-type]


# --- queries


async def test_queries_that_make_no_sense(app: Scheduler) -> None:
    for limit in (0, -1, 1001):
        with pytest.raises(TickworkError, match=f"limit must be a whole number from 1 to 1,000, not {limit}"):
            await app.list_tasks(limit=limit)
    with pytest.raises(TickworkError, match="cursor 'abc' is not one that an earlier page gave"):
        await app.list_tasks(cursor="abc")
    with pytest.raises(ValueError, match="unknown status 'sleeping'; known are pending, "):
        await app.list_tasks("sleeping")
    with pytest.raises(ConfigError, match="queue must be 1 to 128"):
        await app.queues.pause("a b")
    assert (await app.list_tasks("completed")).items == []


async def test_listing(app: Scheduler) -> None:
    a = [(await app.submit("work", n, tags={"kind": "a", "n": str(n)})).id for n in range(5)]
    b = [(await app.submit("work", n, queue="b", tags={"kind": "b"}, delay=60)).id for n in range(3)]
    listed = [info.id for info in await app.list_tasks()]
    assert sorted(listed) == sorted(a + b) if app.url.startswith("redis") else listed == [*reversed(a + b)]
    assert {info.id for info in await app.list_tasks("pending")} == set(b)
    assert {info.id for info in await app.list_tasks(queue="b")} == set(b)
    assert {info.id for info in await app.list_tasks(tags={"kind": "a"})} == set(a)
    assert [info.id for info in await app.list_tasks(tags={"kind": "a", "n": "3"})] == [a[3]]
    assert (await app.list_tasks(type="other")).items == []
    first = await app.list_tasks("ready", limit=2)
    rest = await app.list_tasks("ready", limit=10, cursor=first.cursor)
    assert (len(first), len(rest), rest.cursor) == (2, 3, None)
    assert {info.id for info in [*first, *rest]} == set(a)


async def test_bad_cron_names_the_field_and_what_is_allowed(make: Make) -> None:
    app = make("memory://")

    @app.task
    async def work() -> None: ...

    for line, words in (
        ("60 * * * *", ("minute", "0", "59")),
        ("* 24 * * *", ("hour", "0", "23")),
        ("* * 32 * *", ("day-of-month", "1", "31")),
        ("* * * 13 *", ("month", "1", "12")),
        ("* * * * 8", ("day-of-week", "0", "7")),
        ("61 * * * * *", ("second", "0", "59")),
        ("*/0 * * * *", ("minute", "step")),
        ("5-1 * * * *", ("minute", "5-1")),
        ("x * * * *", ("minute", "x")),
    ):
        with pytest.raises(CronError) as caught:
            await app.submit("work", cron=line)
        text = str(caught.value)
        assert all(
            word in text.replace("day of month", "day-of-month").replace("day of week", "day-of-week") for word in words
        ), text


def test_what_handlers_do_when_they_are_cut_off_is_one_of_two() -> None:
    app = Scheduler("memory://")
    with pytest.raises(ConfigError, match="when_cut_off must be one of stop, run_on, not 'go_on'"):

        @app.task(when_cut_off="go_on")  # type: ignore[call-overload, untyped-decorator]
        async def work() -> None: ...

    with pytest.raises(ConfigError, match="when_cut_off"):
        Scheduler("memory://", when_cut_off="go_on")  # type: ignore[arg-type]
