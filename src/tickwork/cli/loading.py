"""From `MODULE:APP` to the user's scheduler, with what the command line says set over its own options."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from functools import reduce
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

import click

import tickwork
from tickwork.cli import output
from tickwork.cli.session import DEFAULT_STORE, said, said_options
from tickwork.errors import ConfigError

if TYPE_CHECKING:
    from tickwork.scheduler import Scheduler


class BrokenModule(click.ClickException):
    """The user's own code raised when it was imported; the message is its traceback, and says it all."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        for line in output.clean_lines(self.message):
            click.echo(line, err=True)


def load_app(name: str | None, **options: Any) -> Scheduler:
    """Find the application, or make one without handlers, and set what was said over its options.

    A store must be named, so that every process that imports the application uses the same one.
    """
    from tickwork.config.loading import DEFAULT_FILE
    from tickwork.config.names import FILE_VARIABLE
    from tickwork.scheduler import Scheduler

    app = Scheduler() if name is None else find_app(name)
    if app._opened:
        raise ConfigError(
            f"{name} has used its store while it was imported, before its options were known; use it in a function of "
            'app.on_startup, in handlers, or under `if __name__ == "__main__":`'
        )
    file = said("config")
    named = file or app._config_file or os.environ.get(FILE_VARIABLE)
    if not named and os.path.exists(DEFAULT_FILE):
        file = DEFAULT_FILE
    app.configure(config=file, **said_options(), **options)
    if app.config.store is None:
        raise ConfigError(
            f"{name or 'this node'} names no store, so other processes could not reach its tasks. Name one that all of "
            f"them use: Scheduler({DEFAULT_STORE!r}) in the code, TICKWORK_STORE in the environment, or --store "
            f"{DEFAULT_STORE}; --store memory:// if this process is the only one"
        )
    return app


def find_app(name: str) -> Scheduler:
    from tickwork.scheduler import Scheduler

    module_name, _, attribute = name.partition(":")
    if module_name.endswith(".py") or os.sep in module_name:
        proper = module_name.removesuffix(".py").strip(f".{os.sep}").replace(os.sep, ".")
        raise ConfigError(f"{module_name!r} is a file; name the module instead: {proper}:{attribute or 'app'}")
    module = _import(module_name)
    try:
        found = reduce(getattr, (attribute or "app").split("."), module)
    except AttributeError:
        raise ConfigError(f"module {module_name!r} has no {attribute or 'app'!r}{_schedulers_in(module)}") from None
    if not isinstance(found, Scheduler):
        raise ConfigError(
            f"{module_name}:{attribute or 'app'} is a {type(found).__name__}, not a Scheduler{_schedulers_in(module)}"
        )
    return found


def _schedulers_in(module: ModuleType) -> str:
    from tickwork.scheduler import Scheduler

    names = [name for name, value in vars(module).items() if isinstance(value, Scheduler)]
    return f"; it has {' and '.join(f'{module.__name__}:{name}' for name in names)}" if names else ""


def _import(name: str) -> ModuleType:
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise BrokenModule(_own_traceback(error)) from None  # it is the module's own import that failed
        raise ConfigError(
            f"there is no module {error.name!r} in {os.getcwd()}, nor anywhere else that Python looks"
        ) from None
    except ConfigError as error:
        raise ConfigError(f"{_place_of(error)}{error}") from None
    except (ValueError, TypeError) as error:
        if name.strip(".") == name and name:
            raise BrokenModule(_own_traceback(error)) from None
        raise ConfigError(f"{name!r} is not the name of a module") from None
    except SystemExit as error:
        raise ConfigError(
            f"module {name!r} ended the program when it was imported (status {error.code}); "
            'put what it runs under `if __name__ == "__main__":`'
        ) from None
    except Exception as error:
        raise BrokenModule(_own_traceback(error)) from None


def _place_of(error: BaseException) -> str:
    """The last line of the user's code that led to an error which Tickwork itself has raised."""
    own = os.path.dirname(tickwork.__file__) + os.sep
    frames = traceback.extract_tb(error.__traceback__)
    places = [frame for frame in frames if not frame.filename.startswith((own, "<frozen", importlib.__file__))]
    return f"{places[-1].filename}, line {places[-1].lineno}: " if places else ""


def _own_traceback(error: BaseException) -> str:
    """The traceback from the user's code on: how we came there is no news to them."""
    trace = error.__traceback__
    while trace is not None and (
        trace.tb_frame.f_code.co_filename.startswith("<frozen importlib")
        or trace.tb_frame.f_code.co_filename in (__file__, importlib.__file__)
    ):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip()
