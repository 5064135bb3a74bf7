"""What stops an environment from being made is refused in a sentence, and the next call goes on from there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from requirements import environment
from requirements.environment import STAMP, Failed, Stop

Command = list[str]


class Commands:
    """Stands for all programs that would be started. An environment is made as a folder with a link to this Python."""

    def __init__(self) -> None:
        self.seen: list[Command] = []
        self.fail: Callable[[Command], list[str] | None] = lambda _: None

    def __call__(self, title: str, command: Command) -> None:
        self.seen.append(command)
        lines = self.fail(command)
        if lines is not None:
            raise Failed(lines)
        if "venv" in command:
            python = Path(command[-1], "bin", "python")
            python.parent.mkdir(parents=True)
            python.symlink_to(sys.executable)
            Path(command[-1], "pyvenv.cfg").touch()

    def installed(self) -> list[str]:
        """What was handed to pip and uv, files without their folder."""
        return [os.path.basename(each[each.index("-r") + 1]) for each in self.seen if "-r" in each]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    found = Commands()
    monkeypatch.setattr(environment, "run", found)
    monkeypatch.setattr(environment, "find_uv", lambda: "uv")
    monkeypatch.setitem(environment.SETS, "small", ("build.txt", "uv.txt"))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "a folder" / "venv")


def no_network(what: str) -> Callable[[Command], list[str] | None]:
    return lambda command: ["error: dns error"] if any(what in word for word in command) else None


def test_an_environment_is_made_once(commands: Commands, folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    environment.main(folder, "small")
    assert commands.installed() == ["build.txt", "uv.txt"]
    assert "is ready after" in capsys.readouterr().out
    commands.seen.clear()
    environment.main(folder, "small")
    assert commands.seen == []
    assert capsys.readouterr().out == ""


def test_a_second_call_goes_on_where_the_first_stopped(commands: Commands, folder: str) -> None:
    commands.fail = no_network("uv.txt")
    with pytest.raises(Stop, match=r"uv\.txt cannot be installed.*PIP_INDEX_URL.*The same command goes on"):
        environment.main(folder, "small")
    commands.seen.clear()
    commands.fail = lambda _: None
    environment.main(folder, "small")
    assert commands.installed() == ["uv.txt"]


def test_pip_installs_what_uv_cannot(commands: Commands, folder: str) -> None:
    commands.fail = lambda command: ["no such wheel"] if command[:2] == ["uv", "pip"] else None
    environment.main(folder, "small")
    assert [command[1:3] for command in commands.seen if command[0].endswith("python") and "pip" in command] == [
        ["-m", "pip"],
        ["-m", "pip"],
    ]


def test_pip_does_everything_without_uv(commands: Commands, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "find_uv", lambda: None)
    environment.main(folder, "small")
    assert all(command[0] != "uv" for command in commands.seen)
    assert commands.installed() == ["build.txt", "uv.txt"]


def test_uv_comes_from_its_wheel_and_pip_takes_over_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = Commands()
    monkeypatch.setattr(environment, "run", commands)
    monkeypatch.setattr(environment, "UV", str(tmp_path / "uv"))
    monkeypatch.setattr("shutil.which", lambda _: None)
    commands.fail = no_network("uv.txt")
    assert environment.find_uv() is None
    assert "pip is used" in capsys.readouterr().out
    commands.fail = lambda _: None
    assert environment.find_uv() == str(tmp_path / "uv" / "bin" / "uv")
    commands.seen.clear()
    assert environment.find_uv() == str(tmp_path / "uv" / "bin" / "uv")
    assert commands.seen == []
    monkeypatch.setenv("TESTS_INSTALLER", "pip")
    assert environment.find_uv() is None


def test_an_old_python_is_refused(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "OLDEST", (4, 0))
    with pytest.raises(Stop, match=r"is not Python 3\.11 or newer: install one, or name it: make PYTHON="):
        environment.main(folder, "small")


def test_a_python_without_venv_is_refused(commands: Commands, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "find_uv", lambda: None)
    commands.fail = lambda command: ["No module named ensurepip"] if "venv" in command else None
    with pytest.raises(Stop, match="apt install python3-venv"):
        environment.main(folder, "small")
    assert not Path(folder).exists()


@pytest.mark.parametrize("line", ["OSError: [Errno 28] No space left on device", "failed to write (os error 28)"])
def test_a_full_disk_is_named(line: str, commands: Commands, folder: str) -> None:
    commands.fail = lambda command: [line] if "build.txt" in command[-1] else None
    with pytest.raises(Stop, match="the disk is full"):
        environment.main(folder, "small")


def test_an_environment_of_another_commit_is_made_anew(
    commands: Commands, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.main(folder, "small")
    stamp = Path(folder, STAMP)
    done = json.loads(stamp.read_text())
    done["steps"]["uv.txt"] = "of another commit"
    stamp.write_text(json.dumps(done))
    commands.seen.clear()
    environment.main(folder, "small")
    assert commands.installed() == ["build.txt", "uv.txt"]
    assert "holds what another commit needs (uv.txt): it is made anew" in capsys.readouterr().out


def test_an_environment_that_was_moved_is_made_anew(
    commands: Commands, folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.main(folder, "small")
    moved = tmp_path / "moved"
    Path(folder).rename(moved)
    commands.seen.clear()
    environment.main(str(moved), "small")
    assert commands.installed() == ["build.txt", "uv.txt"]
    assert "was made at another place or with another Python" in capsys.readouterr().out


def test_a_broken_interpreter_is_replaced(commands: Commands, folder: str) -> None:
    commands.fail = no_network("uv.txt")
    with pytest.raises(Stop):
        environment.main(folder, "small")
    Path(folder, "bin", "python").unlink()
    Path(folder, "bin", "python").symlink_to("/nowhere/python")
    commands.seen.clear()
    commands.fail = lambda _: None
    environment.main(folder, "small")
    assert commands.installed() == ["build.txt", "uv.txt"]


def test_an_environment_that_was_made_in_another_way_is_made_anew(
    commands: Commands, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Plugins in it that are not in the lists would be loaded."""
    environment.main(folder, "small")
    Path(folder, STAMP).unlink()
    commands.seen.clear()
    environment.main(folder, "small")
    assert commands.installed() == ["build.txt", "uv.txt"]
    assert "was made in another way, or not finished: it is made anew" in capsys.readouterr().out


def test_a_folder_of_something_else_is_left_alone(commands: Commands, folder: str) -> None:
    Path(folder).mkdir(parents=True)
    Path(folder, "precious.txt").touch()
    with pytest.raises(Stop, match="is not an environment of Python: move it away"):
        environment.main(folder, "small")
    assert Path(folder, "precious.txt").exists()


def test_a_command_shows_that_it_is_alive(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(environment, "SHOWN_EVERY", 0.0)
    waits = "import sys, time; print('Collecting wheel', flush=True); time.sleep(0.5)"
    environment.run("dev.txt", [sys.executable, "-c", waits])
    assert "s  dev.txt: Collecting wheel" in capsys.readouterr().out


def test_what_a_command_printed_is_shown_if_it_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Failed):
        environment.run("dev.txt", [sys.executable, "-c", "print('no such package'); raise SystemExit(1)"])
    assert "    no such package" in capsys.readouterr().out


def test_a_refusal_has_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    command = [sys.executable, environment.__file__, str(tmp_path), "dev"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith(f"error: {tmp_path} is not an environment of Python")
    assert "Traceback" not in ran.stderr
