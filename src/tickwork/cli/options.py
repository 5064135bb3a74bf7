"""Options that many commands share: where the store is, how to print, and how values are written."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # not generic in older releases


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """`meta` is one for all levels of a command line, so an option may stand before or after the command's name."""
    if value:
        ctx.meta[f"tickwork.{param.name}"] = value


def keep_store(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """For an option or an argument that names the store."""
    from tickwork.config.urls import has_password

    if value:
        ctx.meta["tickwork.store"] = value
    if value and has_password(value):
        said = "--store" if isinstance(param, click.Option) else "STORE_URL"
        text = f"{said} has a password, which `ps` shows to everybody here: use ?password_file=FILE, or TICKWORK_STORE"
        click.echo(click.style("warning: ", fg="yellow") + text, err=True)


def _keep_color(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value or os.environ.get("NO_COLOR"):
        ctx.color = False
        ctx.meta["tickwork.no_color"] = True
    elif ctx.meta.get("tickwork.no_color"):
        ctx.color = False


def _global(*names: str, callback: Callable[..., None] = _keep, **attributes: Any) -> Callable[[F], F]:
    return click.option(*names, expose_value=False, callback=callback, **attributes)


_GLOBAL: tuple[Callable[[Any], Any], ...] = (
    _global(
        "--store",
        metavar="URL",
        callback=keep_store,
        help="The store: sqlite:///FILE, redis://HOST/DB, or memory:// for up and bench.",
    ),
    _global("--namespace", metavar="NAME", help="Keeps applications on one store apart."),
    _global("--config", metavar="FILE", help="A YAML file with options."),
    _global("--json", is_flag=True, help="Print JSON."),
    _global("--no-color", is_flag=True, callback=_keep_color, help="Print plain text; so does NO_COLOR=1."),
)


def global_options(function: F) -> F:
    for option in reversed(_GLOBAL):
        function = option(function)
    return function


class Duration(_ParamType):
    """Seconds, or a text such as 250ms, 10s, 1h30m."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from tickwork.config.values import read_seconds

        try:
            return read_seconds(value)
        except ValueError as error:
            self.fail(f"{value!r} {error}", param, ctx)


class PriorityLevel(_ParamType):
    """`high`, `normal`, `low`, or a number from 1 to 10."""

    name = "priority"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from tickwork.model.tasks import Priority

        text = str(value).strip()
        if text.upper() in Priority.__members__:
            return int(Priority[text.upper()])
        if text.isdecimal() and 1 <= int(text) <= 10:
            return int(text)
        return self.fail(f"{value!r} is not high, normal, low, or a number from 1 to 10", param, ctx)


class Json(_ParamType):
    """A JSON text; `-` reads it from standard input."""

    name = "json"

    def __init__(self, kind: type | None = None) -> None:
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        import msgspec

        if not isinstance(value, str):
            return value
        text = self._read(param, ctx) if value == "-" else value.removeprefix(NUMBER)
        try:
            found = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            hint = "" if text.lstrip()[:1] in ("{", "[", '"') else """; a text needs quotes of its own: '"text"'"""
            self.fail(f"not JSON: {error}{hint}", param, ctx)
        if self._kind is not None and not isinstance(found, self._kind):
            self.fail("not a JSON object", param, ctx)
        return found

    def _read(self, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return sys.stdin.buffer.read().decode()
        except UnicodeDecodeError as error:
            self.fail(f"standard input is not UTF-8: {error.reason} at byte {error.start:,}", param, ctx)


NUMBER = "\0"  # stands before a negative number on a command line, which no option can begin with
_NEGATIVE = re.compile(r"-\d[\d.eE+-]*")


class PayloadCommand(click.Command):
    """A command with a payload, which may be a negative number and is then no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with_value = {
            name
            for param in self.params
            if isinstance(param, click.Option) and not param.is_flag
            for name in param.opts
        }
        before = ""
        for index, arg in enumerate(args):
            if arg == "--":
                break
            if _NEGATIVE.fullmatch(arg) and before not in with_value:
                args[index] = NUMBER + arg
            before = arg
        return super().parse_args(ctx, args)


def payload_or_none_given(payload: Any) -> Any:
    """The argument PAYLOAD_JSON; leaving it out is not the same as `null`, as a handler may have defaults."""
    from tickwork.payload.parameters import MISSING

    left_out = click.get_current_context().get_parameter_source("payload") is click.core.ParameterSource.DEFAULT
    return MISSING if left_out else payload


def read_pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """`--tag k=v`, any number of times."""
    pairs = [value.partition("=") for value in values]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise click.BadParameter(f"{name!r} is not written as name=value", ctx, param)
    return {name: text for name, _, text in pairs}


def read_time(text: str, timezone: str | None, option: str = "--at") -> datetime:
    """The time that an option names, in the zone of --timezone if it has none of its own."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a time such as 2030-01-31T09:00+01:00", param_hint=option) from None
    if moment.tzinfo is None:
        if timezone is None:
            raise click.BadParameter(
                f"{text!r} names no zone; add Z or an offset such as +01:00, or give --timezone", param_hint=option
            )
        from tickwork.cron.zones import find_zone

        moment = moment.replace(tzinfo=find_zone(timezone).tz)
    return moment


tag_option = click.option(
    "--tag", "tags", metavar="NAME=VALUE", multiple=True, callback=read_pairs, help="A tag; may be given several times."
)
limit_option = click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many to show at most."
)
cursor_option = click.option("--cursor", metavar="CURSOR", help="Show the page after the one that printed this cursor.")


cascade_option = click.option(
    "--cascade/--no-cascade", default=None, help="Also run the tasks that were cancelled because of it."
)


def task_options(function: F) -> F:
    """What may be said of one task, and of every task of a schedule."""
    for option in reversed(
        (
            click.option("--priority", type=PriorityLevel(), help="high, normal, low, or 1 to 10."),
            click.option("--queue", metavar="NAME", help="The queue of the task.  [default: default]"),
            click.option("--max-retry", type=click.IntRange(0), help="Retries after the first attempt."),
            click.option("--timeout", type=Duration(), help="Time limit of one attempt; 0 means no limit."),
            click.option("--key", metavar="TEXT", help="Whom it concerns: tasks of a key can be kept on one worker."),
            click.option(
                "--requires",
                metavar="LABEL=VALUE",
                multiple=True,
                callback=read_pairs,
                help="A label that a worker must have; may be given several times.",
            ),
            click.option("--target", metavar="ID", help="The one worker that may run it."),
            click.option("--retention", type=Duration(), help="How long the task is kept after its end."),
            tag_option,
            click.option(
                "--context", type=Json(dict), metavar="JSON", help="A JSON object that the handler gets with the task."
            ),
        )
    ):
        function = option(function)
    return function


def given(**options: Any) -> dict[str, Any]:
    """Those that were said."""
    return {name: value for name, value in options.items() if value not in (None, {}, ())}
