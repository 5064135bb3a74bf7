"""Runs the code on a page of the documentation, so that what the page says stays true.

A page is one program. Its blocks run in order, in one namespace, in a process and an empty folder of their own:

    python      is executed; top-level `await` is allowed, and all blocks that use it share one event loop
    text        right after a python block: what that block prints, `...` stands for anything
    console     lines that begin with `$ ` are run, the lines below each are what it prints; at `^C` it gets a Ctrl-C,
                and one that ends with ` &` runs beside the rest of the page and gets its Ctrl-C at the end

A python or yaml block that opens with a comment naming a file (`# hello.py`) is saved as that file instead, and a
python file is imported once to see that it can be. Blocks in other languages are for reading only; so are those with a
title, which are the files of a recipe (`recipes.py`). Where a page says `redis://localhost:6379/0` it gets a server of
its own.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import doctest
import importlib
import inspect
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = ("python", "console", "yaml")
COMMAND_TIMEOUT = 30.0
REDIS = "redis://localhost:6379/0"

_FILE = re.compile(r"# ([\w-]+\.(?:py|yaml))\n")
_checker = doctest.OutputChecker()
_background: list[subprocess.Popen[str]] = []


class Block(NamedTuple):
    """A fenced block; `line` is where its text begins, `output` the text block right below it."""

    language: str
    line: int
    text: str
    output: str | None = None


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    language, start, lines = "", 0, list[str]()
    fresh = False  # nothing but blank lines since the last block
    text = page.read_text().replace(REDIS, os.environ.get("DOCS_REDIS", REDIS))
    for number, line in enumerate(text.splitlines(), 1):
        if start:
            if line.rstrip() != "```":
                lines.append(line)
                continue
            text = "".join(f"{each}\n" for each in lines)
            if language == "text" and fresh and found and found[-1].language == "python":
                found[-1] = found[-1]._replace(output=text)
            else:
                found.append(Block(language, start, text))
            start, fresh = 0, True
        elif line.startswith("```"):
            language, start, lines = line[3:].strip(), number + 1, []
        elif line.strip():
            fresh = False
    if start:
        raise ValueError(f"{page.name}:{start - 1}: the block is never closed")
    return found


def empty_redis() -> str:
    from tests.support import redis_store  # not in the process that runs a page: there the tests are not importable

    return redis_store.empty_redis()


def run_page(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a page in an empty folder; its error output says what went wrong, and on which line of the page."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TICKWORK_")}
    environ |= {"PYTHONUNBUFFERED": "1", "TZ": "UTC"}  # as on the machine that the page was written on
    if REDIS in page.read_text():
        environ["DOCS_REDIS"] = empty_redis()
    environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environ.get('PATH', '')}"
    command = [sys.executable, "-W", "error", __file__, str(page)]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=100, check=False)


def main(page: Path) -> None:
    program = ModuleType("__main__")
    sys.modules["__main__"] = program
    sys.path[0] = os.getcwd()
    with _interrupting(_background), asyncio.Runner() as runner:
        for block in blocks_of(page):
            if block.language in RUN:
                try:
                    _run_block(block, page, program, runner)
                except BaseException as error:
                    error.add_note(f"in the block at {page.name}:{block.line}")
                    raise


def _run_block(block: Block, page: Path, program: ModuleType, runner: asyncio.Runner) -> None:
    if block.language == "console":
        for command, expected in _commands(block.text):
            _run_command(command, expected)
    elif named := _FILE.match(block.text):
        Path(named[1]).write_text(block.text)
        if named[1].endswith(".py"):
            importlib.invalidate_caches()
            importlib.import_module(named[1].removesuffix(".py"))
    elif block.language == "python":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            _execute(block, page, program, runner)
        if block.output is not None:
            _compare("the block", block.output, printed.getvalue())


def _execute(block: Block, page: Path, program: ModuleType, runner: asyncio.Runner) -> None:
    # Blank lines in front make the lines of a traceback those of the page.
    source = "\n" * (block.line - 1) + block.text
    code = compile(source, str(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    value = eval(code, vars(program))  # noqa: S307  the pages are our own
    if inspect.iscoroutine(value):
        runner.run(value)


@contextlib.contextmanager
def _interrupting(processes: list[subprocess.Popen[str]]) -> Iterator[None]:
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGINT)
        statuses = [process.wait(COMMAND_TIMEOUT) for process in processes]
    if any(statuses):
        raise AssertionError(f"the commands with & ended with status {statuses}")


def _commands(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def _run_command(command: str, expected: str) -> None:
    if command.endswith(" &"):
        _background.append(subprocess.Popen(shlex.split(command[:-2]), stdout=subprocess.DEVNULL, text=True))
        return
    before, interrupted, after = expected.partition("^C\n")
    words = ["sh", "-c", command] if re.search(r"[;&|<>$]", command) else shlex.split(command)
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    printed: list[str] = []
    reading = threading.Thread(target=lambda: printed.extend(iter(process.stdout.readline, "")))  # type: ignore[union-attr]
    reading.start()
    try:
        if interrupted:
            deadline = time.monotonic() + COMMAND_TIMEOUT
            while not _fits(before, "".join(printed)) and time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.02)
            _compare(command, before, "".join(printed))
            seen = len(printed)
            process.send_signal(signal.SIGINT)
        process.wait(COMMAND_TIMEOUT)
    finally:
        process.kill()
        process.wait()
        reading.join()
        process.stdout.close()  # type: ignore[union-attr]
    if interrupted:
        _compare(command, after, "".join(printed[seen:]))
    elif expected:
        _compare(command, expected, "".join(printed))
    if process.returncode != 0:
        raise AssertionError(f"{command}: ended with status {process.returncode}:\n{''.join(printed)}")


PROGRESS = re.compile(r"^[\d,]+ .* so far\n", re.MULTILINE)  # said by a command that takes more than a second


def _fits(expected: str, printed: str) -> bool:
    printed = PROGRESS.sub("", printed)
    return not expected or _checker.check_output(expected, printed, doctest.ELLIPSIS)


def _compare(what: str, expected: str, printed: str) -> None:
    if not _fits(expected, printed):
        raise AssertionError(f"{what} printed\n{printed}\ninstead of\n{expected}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
