"""What is kept of an exception: every reason, the user's own frames, and no more than fits."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from tickwork.observe.tracebacks import ERROR_MAX, describe, explained

ORDERS: dict[str, int] = {}


def caught(function: Callable[[], object]) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("it did not raise")


def plain() -> NoReturn:
    raise ValueError("bad input")


def chained() -> None:
    try:
        ORDERS["the missing key"]
    except KeyError as error:
        raise RuntimeError("could not load") from error


def in_passing() -> None:
    try:
        ORDERS["the missing key"]
    except KeyError:
        raise RuntimeError("could not load")  # noqa: B904


def hidden() -> None:
    try:
        ORDERS["the missing key"]
    except KeyError:
        raise RuntimeError("could not load") from None


def in_a_group() -> None:
    async def part(reason: str) -> None:
        raise ValueError(reason)

    async def all_parts() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(part("the real reason"))
            group.create_task(part("another reason"))

    asyncio.run(all_parts())


def test_the_first_line_says_what_and_the_rest_where() -> None:
    first, empty, *rest = describe(caught(plain)).splitlines()
    assert (first, empty) == ("ValueError: bad input", "")
    assert rest[0] == "Traceback (most recent call last):"
    assert any("in plain" in line for line in rest)
    assert rest[-1] == "ValueError: bad input"


def test_only_the_first_line_of_a_message_is_in_the_first_line() -> None:
    text = describe(ValueError("one\ntwo"))
    assert text.startswith("ValueError: one\n\n")
    assert "two" in text


@pytest.mark.parametrize(
    ("function", "link"),
    [(chained, "was the direct cause of"), (in_passing, "During handling of the above exception")],
)
def test_what_led_to_it_is_told(function: Callable[[], None], link: str) -> None:
    text = describe(caught(function))
    assert text.startswith("RuntimeError: could not load\n\n")
    assert "KeyError: 'the missing key'" in text
    assert link in text
    assert 'ORDERS["the missing key"]' in text, "with the line of code"


def test_what_was_hidden_on_purpose_stays_hidden() -> None:
    assert "the missing key" not in describe(caught(hidden))


def test_a_group_names_its_first_reason_and_holds_them_all() -> None:
    text = describe(caught(in_a_group))
    assert text.splitlines()[0] == (
        "ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions): ValueError: the real reason"
    )
    assert "ValueError: another reason" in text
    assert "raise ValueError(reason)" in text


def test_groups_in_groups_name_the_first_leaf() -> None:
    inner = ExceptionGroup("inner", [KeyError("leaf"), OSError("other")])
    text = describe(ExceptionGroup("outer", [inner]))
    assert text.splitlines()[0] == "ExceptionGroup: outer (1 sub-exception): KeyError: 'leaf'"


def test_notes_are_told() -> None:
    error = caught(plain)
    error.add_note("while importing row 7")
    assert "while importing row 7" in describe(error)


def test_a_reason_of_a_handler_is_followed_by_what_led_to_it() -> None:
    assert explained(caught(plain), "closed for today") == "closed for today"
    text = explained(caught(chained), "closed for today")
    assert text.startswith("closed for today\n\n")
    assert "KeyError: 'the missing key'" in text


# --- frames


def test_a_folder_of_the_users_called_tickwork_is_not_taken_for_the_package(tmp_path: Path) -> None:
    folder = tmp_path / "tickwork"
    folder.mkdir()
    (folder / "app.py").write_text("def broken():\n    raise ValueError('here')\n")
    spec = importlib.util.spec_from_file_location("app_of_a_user", folder / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert f'File "{folder / "app.py"}", line 2, in broken' in describe(caught(module.broken))


def test_frames_of_the_package_are_left_out_of_every_part() -> None:
    from tickwork.cron import Cron

    def broken() -> None:
        try:
            Cron("nonsense")
        except Exception as error:
            raise RuntimeError("no line") from error

    text = describe(caught(broken))
    assert "CronError" in text
    assert "in broken" in text
    assert "cron_parse.py" not in text


# --- size


def test_a_long_text_keeps_its_ends() -> None:
    text = describe(caught(lambda: exec("raise ValueError('start' + 'x' * 100_000 + 'end')")))
    assert len(text) <= ERROR_MAX
    assert text.startswith("ValueError: startxxx")
    assert text.endswith("xxxend")
    assert "characters are left out" in text


def test_the_root_cause_survives_the_cut() -> None:
    def deep(n: int) -> None:
        if n:
            exec(f"def level_{n}(go): go()\nlevel_{n}(lambda: deep({n - 1}))", {"deep": deep})
        else:
            raise KeyError("the root of it all")

    def layer(n: int) -> None:
        try:
            layer(n - 1) if n else deep(60)
        except Exception as error:
            raise RuntimeError(f"layer {n} " + "y" * 500) from error

    text = describe(caught(lambda: layer(30)))
    assert len(text) <= ERROR_MAX
    assert text.startswith("RuntimeError: layer 30")
    assert "the root cause: KeyError: 'the root of it all'" in text


def test_very_deep_and_circular_errors_have_an_end() -> None:
    def recurse(n: int) -> None:
        recurse(n + 1)

    assert describe(caught(lambda: recurse(0))).startswith("RecursionError: maximum recursion depth")
    one, two = ValueError("one"), ValueError("two" + "x" * 10_000)
    one.__context__, two.__context__ = two, one
    text = describe(one)
    assert text.startswith("ValueError: one")
    assert len(text) <= ERROR_MAX


# --- odd ones


class NoText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class NoNotes(Exception):
    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        raise RuntimeError("no notes")


@pytest.mark.parametrize(
    ("error", "first"),
    [
        (NoText(), "NoText: (its text cannot be shown)"),
        (NoNotes("odd"), "NoNotes: odd"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (FileNotFoundError(2, "gone", "name \udcff"), r"FileNotFoundError: [Errno 2] gone: 'name \udcff'"),
    ],
)
def test_odd_errors_have_a_text_too(error: BaseException, first: str) -> None:
    text = describe(error)
    assert text.splitlines()[0] == first
    text.encode()


def test_the_name_of_a_childs_main_module_is_that_of_the_parent() -> None:
    kind = type("Broken", (Exception,), {"__module__": "__mp_main__"})
    assert "__mp_main__" not in describe(kind("x"))
