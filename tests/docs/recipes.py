"""Takes a recipe from its page and runs it: its files are the blocks with a title, its commands stand in `sh` blocks.

A server gets a free port of the loopback interface where the page says 8000, 8001 and so on.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.docs.pages import ROOT, blocks_of
from tickwork import Scheduler

PATIENCE = 60.0
_TITLED = re.compile(r'python title="([\w./-]+)"')
_OWN_TRACEBACK = re.compile(r"^(?!    Traceback).*Traceback", re.MULTILINE)  # those of failed tasks are set in


def write_files(page: str, folder: Path, replaced: dict[str, str] | None = None) -> None:
    """Save the files of a page, with what is to be read otherwise replaced; each of these texts must be there."""
    files = {
        found[1]: block.text
        for block in blocks_of(ROOT / "docs" / "recipes" / page)
        if (found := _TITLED.fullmatch(block.language))
    }
    assert files, f"{page} has no files"
    for old, new in (replaced or {}).items():
        assert any(old in text for text in files.values()), f"{page} does not say {old}"
        files = {name: text.replace(old, new) for name, text in files.items()}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def command(page: str | Path, first: str) -> list[str]:
    """The line of an `sh` block of the page that begins with this; the page is a recipe's name, or any file."""
    text = "".join(block.text for block in blocks_of(ROOT / "docs" / "recipes" / page) if block.language == "sh")
    (line,) = [line for line in text.splitlines() if line.startswith(first)]
    program, *rest = shlex.split(re.sub(r"\b800\d\b", "0", line))
    programs = {"python": [sys.executable], "tickwork": [sys.executable, "-m", "tickwork"]}
    return [*programs.get(program, [sys.executable, "-m", program]), *rest]


class Program:
    """A process of a recipe, and what it says; ended by SIGTERM, or killed if the test ends before."""

    def __init__(self, words: list[str], folder: Path, store: str) -> None:
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("TICKWORK_", "DJANGO_"))}
        environ |= {"TICKWORK_STORE": store, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(folder)}
        self.process = subprocess.Popen(
            words, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        self._lines: list[str] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.append(line)

    @property
    def said(self) -> str:
        return "".join(self._lines)

    def wait_for(self, pattern: str) -> str:
        """What the first group of the pattern stands for, once the process has said it."""
        deadline = time.monotonic() + PATIENCE
        while (found := re.search(pattern, self.said)) is None:
            ended = self.process.poll() is not None and not self._reading.is_alive()
            if ended or time.monotonic() > deadline:
                raise AssertionError(f"it did not say {pattern!r}:\n{self.said}")
            time.sleep(0.02)
        return found[1] if found.groups() else found[0]

    def end(self) -> None:
        """SIGTERM to the one process that was started, as a supervisor does it; it must end cleanly."""
        self.process.terminate()
        status = self.process.wait(PATIENCE)
        self._reading.join(PATIENCE)
        assert status in (0, -signal.SIGTERM), f"ended with {status}:\n{self.said}"  # uvicorn ends by the signal itself
        assert not _OWN_TRACEBACK.search(self.said), self.said
        assert "never awaited" not in self.said, self.said

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # its own session: the children too
            self.process.wait()
        self._reading.join(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        if error is not None:
            error.add_note(f"{' '.join(map(str, self.process.args))} said:\n{self.said}")  # type: ignore[arg-type]


def ask(url: str, method: str = "GET", body: object = None) -> Any:
    """The answer of a server: JSON where it is, else a text; what it refuses is answered with its status."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            text, kind = reply.read().decode(), reply.headers.get_content_type()
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    return json.loads(text) if kind == "application/json" else text


def ask_until(url: str, word: str) -> Any:
    """The first answer that has this word."""
    deadline = time.monotonic() + PATIENCE
    while word not in str(answer := ask(url)):
        assert time.monotonic() < deadline, f"{url} still answers {answer}"
        time.sleep(0.05)
    return answer


def workers_left(store: str) -> int:
    """How many workers are still members of the store: one that has ended well has left."""
    app = Scheduler(store)
    try:
        return len(app.sync.list_workers())
    finally:
        app.sync.close()
