"""What the command `tickwork` prints, as far as it can be told without a store."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any, cast

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

import tickwork
from tickwork import Config, Page, QueueInfo, ScheduleInfo, Status, TaskInfo
from tickwork.cli import COMMANDS, HOMES, commands, flags, output, pages
from tickwork.cli.events import read_kinds
from tickwork.cli.output import Column, age, clean, clean_lines, clip, duration, json_text, table, width
from tickwork.cli.session import schema_versions, sqlite_path
from tickwork.client import checkup
from tickwork.client.checkup import Patient
from tickwork.clock import to_datetime
from tickwork.model.members import Leader, Worker
from tickwork.model.schedules import Misfire, Overlap
from tickwork.model.tasks import Band
from tickwork.store.contract import Finding, Pause, Stats

NOW = 1_800_000_000_000
THEN = to_datetime(NOW)


@pytest.mark.parametrize(
    "items", [[], [{"a": 1}], [{"a": [1, {}]}, {"b": "two\\nlines"}, {}]], ids=["none", "one", "three"]
)
def test_a_list_that_is_printed_item_by_item_is_one_document(
    items: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with output.json_list("things") as show:
        for item in items:
            show(item)
    printed = capsys.readouterr().out
    output.show_json({"things": items})
    assert printed == capsys.readouterr().out


# --- hostile texts


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;a new title\x07rest", "rest"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("\x1bPq#0\x1b\\rest", "rest"),
        ("\x1bcreset", "reset"),
        ("ding\x07dong\x00\x08\x7f", "dingdong"),
        ("one\r\ntwo\tthree", "one  two three"),
        ("right\u202eto left\u200b", "rightto left"),
        ("naïve 日本 🙂", "naïve 日本 🙂"),
        ("\x1b", ""),
    ],
)
def test_clean_leaves_nothing_a_terminal_would_obey(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(st.text())
def test_clean_texts_are_printable_and_stay_as_they_are(text: str) -> None:
    cleaned = clean(text)
    assert cleaned.isprintable()
    assert clean(cleaned) == cleaned


def test_lines_of_a_traceback_are_kept_apart() -> None:
    assert clean_lines("a\n\tb\x1b[2J\r\nc") == ["a", "    b", "c"]


@given(st.recursive(st.none() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_means_the_same_but_holds_nothing_hidden(value: Any) -> None:
    text = json_text(value, one_line=True)
    assert json.loads(text) == value
    assert text.isprintable()


def test_json_shows_what_hides_and_leaves_what_is_read() -> None:
    hidden = "\x7f\x9b\xad\u061c\u180e\u200b\u202e\u2060\u2064\u2066\ufeff\ufff9\U000e0041\U000e007f"
    text = json_text([f"a{hidden}b", "日本 é 🙂"])
    assert json.loads(text) == [f"a{hidden}b", "日本 é 🙂"]
    assert all(line.isprintable() for line in text.split("\n"))
    assert "\\u061c" in text
    assert "\\udb40\\udc41" in text
    assert "日本 é 🙂" in text


# --- widths and tables


def test_width_counts_columns() -> None:
    assert [width(text) for text in ("abc", "日本", "e\u0301", "🙂")] == [3, 4, 1, 2]


@given(st.text(), st.integers(0, 20))
def test_clip_never_exceeds_its_limit(text: str, limit: int) -> None:
    shown = clip(clean(text), limit)
    assert width(shown) <= limit
    assert width(clean(text)) > limit or shown == clean(text)


COLUMNS = (
    Column("ID"),
    Column("TYPE", least=6),
    Column("N", right=True, drop=2),
    Column("NOTE", least=5, drop=1),
)
ROWS = [("id-1", "a-very-long-type-name", 7, "all is well with this one"), ("id-2", "short", 12345, "")]


def plain(lines: list[str]) -> list[str]:
    return [click.unstyle(line) for line in lines]


def test_a_table_without_limit_shows_everything() -> None:
    head, first, second = plain(table(COLUMNS, ROWS))
    assert head == "ID    TYPE                       N  NOTE"
    assert first == "id-1  a-very-long-type-name      7  all is well with this one"
    assert second == "id-2  short                  12345"


@pytest.mark.parametrize("limit", range(14, 70))
def test_a_table_fits_its_terminal_and_never_cuts_an_id(limit: int) -> None:
    lines = plain(table(COLUMNS, ROWS, limit))
    assert max(width(line) for line in lines) <= limit
    assert [line[:4] for line in lines[1:]] == ["id-1", "id-2"]


def test_columns_that_matter_least_go_first() -> None:
    assert plain(table(COLUMNS, ROWS, 25))[0].split() == ["ID", "TYPE", "NOTE"]
    assert plain(table(COLUMNS, ROWS, 14))[0].split() == ["ID", "TYPE"]


def test_wide_characters_keep_columns_straight() -> None:
    lines = plain(table((Column("A"), Column("B")), [("日本", "x"), ("ab", "y")]))
    assert [width(line.rpartition(" ")[0]) for line in lines] == [5, 5, 5]


def test_cells_cannot_colour_themselves() -> None:
    lines = table((Column("A", color=lambda cell: "red"),), [("\x1b[32mgreen",)])
    assert lines[1] == click.style("green", fg="red")


# --- times


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0ms"), (0.0004, "0ms"), (0.85, "850ms"), (1, "1s"), (4.24, "4.2s"), (59.96, "1m"), (185, "3m05s"),
        (3600, "1h"), (7800, "2h10m"), (86_400, "1d"), (4 * 86_400 + 10_900, "4d3h"),
    ],
)  # fmt: skip
def test_durations_have_two_units_at_most(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_ages_are_whole_seconds() -> None:
    assert [age(THEN + timedelta(milliseconds=ahead), THEN) for ahead in (0, -12_300, 5_000, -400)] == [
        "now",
        "12s ago",
        "in 5s",
        "now",
    ]


def test_one_thing_is_not_many() -> None:
    assert [output.many(n, "task") for n in (0, 1, 1200)] == ["0 tasks", "1 task", "1,200 tasks"]


# --- flags, commands and names that must not drift apart


def test_every_option_has_a_flag_and_every_flag_a_text() -> None:
    @flags.config_flags
    def function(**options: Any) -> None: ...

    command = click.command()(function)
    names = {param.name for param in command.params}
    options = {field.name for field in fields(Config)}
    assert names == options - flags.ELSEWHERE
    assert set(flags.HELP) == names
    assert all(isinstance(param, flags.ConfigFlag) for param in command.params)
    assert set(command.make_context("x", []).params.values()) == {None}, "what was not said must not overrule anything"


def test_options_are_offered() -> None:
    from click.testing import CliRunner

    def help_of(*command: str) -> str:
        return CliRunner().invoke(commands, [*command, "--help"]).output

    for command in ("up", "worker"):
        shown = help_of(command)
        for name in ("concurrency", "labels", "weight", "address"):
            assert f"--{name} " in shown
    for words in (("submit",), ("schedules", "put")):
        for name in ("key", "requires", "target"):
            assert f"--{name} " in help_of(*words)


@pytest.mark.parametrize("name", list(HOMES))
def test_the_list_of_commands_says_what_their_help_says(name: str) -> None:
    module, text = HOMES[name]
    command: click.Command = getattr(import_module(f"tickwork.cli.{module}"), f"{name.replace('-', '_')}_command")
    assert command.name == name
    assert (command.help or "").partition("\n")[0] == text
    assert {"store", "namespace", "config", "json", "no_color"} <= {param.name for param in command.params}


def test_every_group_of_commands_takes_the_global_options_at_every_level() -> None:
    for name in ("dlq", "schedules", "queues"):
        group: click.Group = getattr(import_module(f"tickwork.cli.{HOMES[name][0]}"), f"{name}_command")
        for command in group.commands.values():
            assert "store" in {param.name for param in command.params}, command.name
            assert command.help


def test_no_command_is_listed_twice() -> None:
    assert len(HOMES) == sum(len(commands) for commands in COMMANDS.values())


def test_every_public_name_is_found_when_it_is_used() -> None:
    for name in tickwork.__all__:
        assert getattr(tickwork, name).__name__ == name
    assert sorted(tickwork.__all__) == tickwork.__all__
    with pytest.raises(AttributeError, match="no attribute 'Schedular'"):
        _ = tickwork.Schedular  # type: ignore[attr-defined]


# --- stores


def test_sqlite_urls_name_files() -> None:
    assert sqlite_path("sqlite:///a.db") == "a.db"
    assert sqlite_path("sqlite:////var/a.db") == "/var/a.db"
    assert sqlite_path("redis://localhost") is None


def test_a_file_of_somebody_else_is_only_read(tmp_path: Any) -> None:
    path = tmp_path / "other.db"
    path.touch()
    assert schema_versions(str(path)) == {}
    assert path.stat().st_size == 0


# --- doctor

HEALTHY = Patient(
    now=NOW,
    host_now=NOW,
    stats=Stats(statuses=dict.fromkeys(Status, 0), ready={}, parked={}, workers=1, dropped=0),
    workers=[
        Worker(id="w", queues=("default",), task_types=("send",), beat_at=NOW - 1000, expires_at=NOW + 29_000),
    ],
    queues=[QueueInfo(name="default", workers=1)],
    pauses=[],
    schedules=[],
    newest_event_at=NOW - 500,
    audit=[],
    audit_seconds=0.01,
    leader=Leader("n#1a2b", 3, NOW + 9000, 10_000),
)


def statuses(**counts: int) -> dict[Status, int]:
    return {**dict.fromkeys(Status, 0), **{Status(name): count for name, count in counts.items()}}


def schedule(**changes: Any) -> ScheduleInfo:
    moment = datetime.fromtimestamp(NOW / 1000, UTC)
    basis: dict[str, Any] = {
        "id": "nightly", "name": "nightly", "type": "send", "cron": "@daily", "timezone": "UTC", "description": "",
        "enabled": True, "overlap": Overlap.SKIP, "misfire": Misfire.LATEST, "on_exhausted": "continue",
        "executor": "local", "next_at": moment, "last_fire_at": None, "last_task_id": None, "last_status": "",
        "stopped": "", "created_at": moment, "updated_at": moment,
    }  # fmt: skip
    return ScheduleInfo(**{**basis, **changes})


def worst(patient: Patient) -> list[Finding]:
    return [finding for finding in checkup.check_patient(patient) if finding.level != "ok"]


def test_the_healthy_are_sent_home() -> None:
    assert worst(HEALTHY) == []


def with_stats(**changes: Any) -> Patient:
    return HEALTHY._replace(stats=replace(HEALTHY.stats, **changes))


@pytest.mark.parametrize(
    ("patient", "level", "words", "advice"),
    [
        (HEALTHY._replace(audit=["task x: no"]), "problem", "audit: task x: no", ""),
        (HEALTHY._replace(now=1000, host_now=1000), "problem", "the clock shows", "set it"),
        (HEALTHY._replace(newest_event_at=NOW + 60_000), "problem", "clock was set back", "NTP"),
        (HEALTHY._replace(host_now=NOW + 60_000), "warning", "apart", "NTP"),
        (HEALTHY._replace(workers=[]), "warning", "no worker is up", "tickwork up"),
        (
            HEALTHY._replace(workers=[], stats=replace(HEALTHY.stats, statuses=statuses(pending=2, ready=1))),
            "problem", "with 3 tasks waiting", "tickwork up",
        ),
        (
            HEALTHY._replace(workers=[replace(HEALTHY.workers[0], expires_at=NOW - 1)]),
            "problem", "no heartbeat for a whole lease: w", "takes their tasks back",
        ),
        (
            HEALTHY._replace(workers=[*HEALTHY.workers, Worker(id="old", lost_at=NOW - 5)]),
            "warning", "1 worker lost", "killed",
        ),
        (HEALTHY._replace(workers=[replace(HEALTHY.workers[0], leaked=2)]), "warning", "2 handlers asked", "cancelled"),
        (HEALTHY._replace(pauses=[Pause("queue", "default", NOW - 9000, "deploy")]), "warning", "9s: deploy", "resume"),
        (with_stats(parked={("default", "resize"): 4}), "problem", "4 tasks of type resize", "handler for it"),
        (
            HEALTHY._replace(
                queues=[*HEALTHY.queues, QueueInfo(name="mail")],
                stats=replace(HEALTHY.stats, ready={("mail", Band.HIGH): 2}),
            ),
            "problem", "2 tasks ready in queue mail", "--queues mail",
        ),
        (
            HEALTHY._replace(schedules=[schedule(next_at=datetime.fromtimestamp(NOW / 1000 - 90, UTC))]),
            "problem", "schedule nightly is 1m30s late", "log of node n, which leads",
        ),
        (
            HEALTHY._replace(
                schedules=[schedule(next_at=datetime.fromtimestamp(NOW / 1000 - 90, UTC))], leader=None
            ),
            "problem", "schedule nightly is 1m30s late", "--role scheduler",
        ),
        (HEALTHY._replace(leader=None), "problem", "no node leads: schedules do not run", "--role scheduler"),
        (
            HEALTHY._replace(leader=None, workers=[], schedules=[schedule()]),
            "problem", "no node leads", "tickwork up MODULE:APP",
        ),
        (HEALTHY._replace(schedules=[schedule(stopped="it died")]), "warning", "stopped: it died", "resume nightly"),
        (
            HEALTHY._replace(schedules=[schedule(id="sweep", type="gone")]),
            "warning", "schedule sweep fires tasks of type gone, which no worker", "tickwork schedules delete sweep",
        ),
        (with_stats(statuses=statuses(dead=1)), "warning", "1 dead letter", "dlq list"),
        (with_stats(dropped=3), "warning", "3 dead letters were dropped", "dlq_max"),
    ],
)  # fmt: skip
def test_each_illness_is_named_with_its_cure(patient: Patient, level: str, words: str, advice: str) -> None:
    found = worst(patient)
    assert [f for f in found if f.level == level and words in f.text and advice in f.advice], found


def test_what_is_paused_or_known_is_not_reported_as_unknown() -> None:
    parked = with_stats(parked={("default", "send"): 4})
    paused = with_stats(parked={("default", "resize"): 4})._replace(pauses=[Pause("type", "resize", NOW)])
    assert worst(parked) == []
    assert [finding.level for finding in worst(paused)] == ["warning"]


# --- options


def test_given_leaves_out_what_was_not_said() -> None:
    from tickwork.cli.options import given as said

    assert said(a=None, b={}, c=(), d=0, e="x") == {"d": 0, "e": "x"}


@pytest.mark.parametrize(
    ("make", "text", "value"),
    [
        ("Duration", "1h30m", 5400.0), ("Duration", "250ms", 0.25), ("PriorityLevel", "HIGH", 10),
        ("PriorityLevel", "7", 7), ("Json", '{"a": [1]}', {"a": [1]}),
    ],
)  # fmt: skip
def test_values_are_read(make: str, text: str, value: Any) -> None:
    kind: Callable[[], Any] = getattr(import_module("tickwork.cli.options"), make)
    assert kind().convert(text, None, None) == value


@pytest.mark.parametrize(
    ("make", "text", "words"),
    [("Duration", "soon", "not a duration"), ("PriorityLevel", "11", "1 to 10"), ("Json", "hello", "quotes")],
)
def test_values_that_cannot_be_read_say_what_would_do(make: str, text: str, words: str) -> None:
    kind: Callable[[], Any] = getattr(import_module("tickwork.cli.options"), make)
    with pytest.raises(click.BadParameter, match=words):
        kind().convert(text, None, None)


# --- pages


class Library:
    """Answers pages one after the other, as a store with many tasks that do not fit does."""

    def __init__(self, *pages: Page[TaskInfo]) -> None:
        self.pages = list(pages)
        self.cursors: list[str | None] = []

    async def list_tasks(self, *, cursor: str | None, **query: Any) -> Page[TaskInfo]:
        self.cursors.append(cursor)
        return self.pages.pop(0) if self.pages else Page([], "on")

    @property
    def _access(self) -> Any:
        return self

    async def open_store(self) -> Any:
        return self

    def now(self) -> int:
        return NOW


async def test_pages_without_a_find_are_passed_over() -> None:
    task: Any = object()
    library: Any = Library(Page([], "a"), Page([], "b"), Page([task], "c"))
    found = await pages.find(library, None)
    assert library.cursors == [None, "a", "b"]
    assert (found.page.items, found.page.cursor) == ([task], "c")


async def test_whoever_waits_is_told_how_far_the_search_went() -> None:
    library: Any = Library()
    found = await pages.find(library, "start")
    assert len(library.cursors) == pages.ROUNDS
    assert found.empty("no tasks") == "none among the first 500,000 tasks looked at"
    found = await pages.find(cast(Any, Library(Page([], None))), None)
    assert found.empty("no tasks") == "no tasks"


# --- times


def test_a_line_of_a_handler_is_shown_on_the_clock_of_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        line = "2026-11-15T20:00:00.250+00:00 INFO under way"
        assert output.log_line(line) == "2026-11-16 05:00:00.250 INFO under way"
        assert output.clock(THEN) == f"{datetime.fromtimestamp(NOW / 1000):%Y-%m-%d %H:%M:%S}.000"
        for odd in ("20:00:00 INFO of an older version", "INFO", "", "2026-11-15 no zone"):
            assert output.log_line(odd) == odd
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("task.sucess", "did you mean 'task.succeeded'?"),
        ("task.cancled", "did you mean 'task.cancelled'?"),
        ("wroker", "did you mean 'worker'?"),
        ("tsak.died", "did you mean 'task.died'?"),
    ],
)
def test_a_kind_that_is_misspelt_finds_its_own(kind: str, words: str) -> None:
    with pytest.raises(click.BadParameter, match=re.escape(words)):
        read_kinds(cast(Any, None), cast(Any, None), (kind,))
