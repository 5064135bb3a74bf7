"""The command `tickwork` and what is at the other end of its streams: real processes and a real shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TICKWORK = f"{sys.executable} -c 'from tickwork.cli import main; main()'"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TICKWORK_") or name in ("NO_COLOR", "COLUMNS")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TICKWORK_STORE", "sqlite:///tickwork.db")
    monkeypatch.chdir(tmp_path)


def shell(script: str, input: bytes = b"") -> subprocess.CompletedProcess[str]:
    command = ["bash", "-o", "pipefail", "-c", script.replace("tickwork ", f"{TICKWORK} ")]
    ran = subprocess.run(command, input=input, capture_output=True, timeout=60, check=False)
    return subprocess.CompletedProcess(command, ran.returncode, ran.stdout.decode(), ran.stderr.decode())


def test_a_payload_that_is_no_text_is_refused_in_a_line() -> None:
    ran = shell("tickwork submit add -", b'"\xff"')
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[0].endswith("standard input is not UTF-8: invalid start byte at byte 1")


@pytest.mark.parametrize("command", ["tasks", "config --json", "events", "--help"])
def test_a_closed_output_is_no_crash(command: str) -> None:
    shell("tickwork submit add --id one")
    ran = shell(f"tickwork {command} >&-")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_closed_error_output_is_no_crash() -> None:
    assert shell("tickwork tasks 2>&-").returncode == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("command", ["tasks", "config --json", "events"])
def test_a_full_disk_is_told_in_a_line(command: str) -> None:
    shell("tickwork submit add --id one")
    ran = shell(f"tickwork {command} > /dev/full")
    assert (ran.returncode, ran.stderr) == (1, "error: the output cannot be written: No space left on device\n")


def test_following_into_a_pipe_that_closes_is_no_error() -> None:
    shell("tickwork submit add --id one")
    ran = shell("(sleep 1; for n in 1 2 3 4 5; do tickwork submit add --id t$n >&2; done) & "
                "timeout -s INT 50 tickwork events --follow | head -1; status=$?; wait; exit $status")  # fmt: skip
    assert ran.returncode == 0
    assert len(ran.stdout.splitlines()) == 1
    assert ran.stderr == "".join(f"t{n}\n" for n in range(1, 6))
