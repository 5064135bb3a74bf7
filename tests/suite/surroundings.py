"""Runs a command as it would run on another machine: for another user, in another zone, with ports taken, and so on.

    python -m tests.suite.surroundings kathmandu-c -- make test-quick
    python -m tests.suite.surroundings --seed $(git rev-parse HEAD) -- .venv/bin/python -m pytest tests/unit
    python -m tests.suite.surroundings kathmandu-c --only signals,zone -- ...   # which of them is to blame?

What this machine or this user does not permit is left out, with a line that says so.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from . import namespace

TREE = Path(__file__).parents[2]
IGNORED = (signal.SIGINT, signal.SIGHUP)  # what nohup, and a shell that puts a job into the background, set aside
PORTS = (8080, 9090)  # what the options name unless told otherwise
OF_THE_USER = ("USER", "LOGNAME", "LNAME", "USERNAME", "MAIL", "XDG_")
REFUSED = 2


class Surroundings(NamedTuple):
    """Where the suite runs. What is empty stays as it is on this machine."""

    name: str
    user: str = ""  # nameless: not root, and of a number that no name belongs to, as in a container
    signals: str = ""  # ignored: SIGINT and SIGHUP, from the start
    zone: str = ""
    language: str = ""
    ports: str = ""  # taken
    ipv6: str = ""  # none
    home: str = ""  # unwritable, which for root no folder is, so this comes with a user


FACTORS = Surroundings._fields[1:]

# A fault of one factor is seen in each line that has it, one of two factors where both meet: so each zone meets each
# language, and the first two lines have nearly all. The last two keep some things usual: with IPv6, a port that is
# taken for IPv4 is free for "localhost"; and root may write where others may not.
TABLE = (
    Surroundings("kathmandu-c", "nameless", "ignored", "Asia/Kathmandu", "C", "taken", "none", "unwritable"),
    Surroundings("chicago-de", "nameless", "", "America/Chicago", "de_DE.UTF-8", "taken", "none", "unwritable"),
    Surroundings("kathmandu-de", "", "ignored", "Asia/Kathmandu", "de_DE.UTF-8", "taken", "", ""),
    Surroundings("chicago-c", "nameless", "ignored", "America/Chicago", "C", "", "", "unwritable"),
)


class Refused(Exception):
    """Why the command cannot run here, and what to do."""


class Left(list[str]):
    """What was left out, and why."""


class Identity(TypedDict, total=False):
    user: int
    group: int
    extra_groups: Sequence[int]


def chosen(name: str | None, seed: str | None, only: str | None) -> Surroundings:
    """The surroundings of this name, or those that a seed leads to: the same each time."""
    if name is not None:
        found = next((each for each in TABLE if each.name == name), None)
        if found is None:
            raise Refused(f"no surroundings are named {name!r}; there are {', '.join(each.name for each in TABLE)}")
    elif seed is not None:
        try:
            found = TABLE[int(seed, 16) % len(TABLE)]
        except ValueError:
            raise Refused(f"{seed!r} is no seed: it is a hexadecimal number, such as the hash of a commit") from None
    else:
        raise Refused("name the surroundings, or give a --seed; --list shows them")
    return found if only is None else _narrowed(found, only.split(","))


def _narrowed(around: Surroundings, only: Sequence[str]) -> Surroundings:
    if unknown := set(only) - set(FACTORS):
        raise Refused(f"{', '.join(sorted(unknown))} is none of {', '.join(FACTORS)}")
    return around._replace(**{factor: "" for factor in FACTORS if factor not in only})


def table() -> str:
    rows = [("name", *FACTORS), *((each.name, *(value or "-" for value in each[1:])) for each in TABLE)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def repeated(around: Surroundings, only: str | None, command: Sequence[str]) -> str:
    """The one command that does it again."""
    narrowed = [] if only is None else ["--only", only]
    return shlex.join(["python", "-m", "tests.suite.surroundings", around.name, *narrowed, "--", *command])


def run(around: Surroundings, command: Sequence[str]) -> int:
    """The command's exit code, in these surroundings."""
    with contextlib.ExitStack() as ends:
        folder = Path(ends.enter_context(_folder()))
        left = Left()
        identity = _identity(around, left)
        environment = _environment(around, folder, identity, left)
        if around.ipv6 and (why := namespace.without_ipv6()):
            left.append(f"ipv6: it stays, as {why}")
        if around.ports:
            for port in PORTS:  # after the namespace, which has ports of its own
                ends.enter_context(_taken(port))
        for line in left:
            print(f"left out: {line}", flush=True)
        _check_tree(identity)
        return _ended(command, environment, identity, ignored=bool(around.signals))


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    """A short name, since the path of a Unix socket must fit into 107 bytes."""
    folder = tempfile.mkdtemp(prefix="tw-")
    try:
        Path(folder).chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _identity(around: Surroundings, left: Left) -> Identity:
    if not around.user:
        return {}
    if os.geteuid() != 0:
        left.append("user: it stays, as only root can be another; you are not root in any case")
        return {}
    number = _nameless()
    return {"user": number, "group": number, "extra_groups": ()}


def _nameless() -> int:
    """The number of a user and of a group that have no name. One range above those of systems and of people."""
    import grp
    import pwd

    named = {each.pw_uid for each in pwd.getpwall()} | {each.gr_gid for each in grp.getgrall()}
    return next(number for number in range(61_184, 65_000) if number not in named)


def _environment(around: Surroundings, folder: Path, identity: Identity, left: Left) -> dict[str, str]:
    environment = dict(os.environ)
    if identity or around.home:
        environment = {name: value for name, value in environment.items() if not name.startswith(OF_THE_USER)}
        temporary = _owned(folder / "t", identity, 0o700)
        environment["TMPDIR"] = str(temporary)
        environment["PYTHONPYCACHEPREFIX"] = str(_owned(folder / "c", identity, 0o700))  # the tree may be closed to it
        environment["HOME"] = str(_owned(folder / "home", identity, 0o555 if around.home else 0o700))
    if around.home and not identity and os.geteuid() == 0:
        left.append("home: it can be written to, as you are root")
    if around.zone:
        environment["TZ"] = around.zone
    if around.language:
        environment = {name: value for name, value in environment.items() if not name.startswith("LC_")}
        environment |= {"LANG": around.language, "LC_ALL": around.language} | _locale(around.language, folder, left)
        environment.pop("LANGUAGE", None)
    return environment


def _owned(path: Path, identity: Identity, mode: int) -> Path:
    path.mkdir()
    if identity:
        os.chown(path, identity["user"], identity["group"])
    path.chmod(mode)
    return path


def _locale(name: str, folder: Path, left: Left) -> dict[str, str]:
    """What programs need to find it. Where it is neither installed nor can be made, they are asked for it all the same,
    as they are after a login from a machine that has it, and go on in C."""
    language, _, encoding = name.partition(".")
    if not encoding:
        return {}  # C is in every library
    spelled = {name.lower(), f"{language}.{encoding.replace('-', '')}".lower()}
    if spelled & set(_output("locale", "-a").lower().split()):
        return {}
    made = folder / "locales"
    made.mkdir()
    _output("localedef", "-i", language, "-f", encoding, str(made / name))
    if (made / name).exists():
        return {"LOCPATH": str(made)}
    left.append(f"language: {name} is neither installed nor can be made here, so programs that ask for it go on in C")
    return {}


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


@contextlib.contextmanager
def _taken(port: int) -> Iterator[None]:
    """By one that takes calls and never answers."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # taken by another, which is as good
            holder.bind(("127.0.0.1", port))
            holder.listen()
        yield


def _check_tree(identity: Identity) -> None:
    """A folder on the way here may be closed to others, as that of root is."""
    if not identity:
        return
    here = Path.cwd().resolve()
    for each in (*reversed(here.parents), here):
        if not each.stat().st_mode & stat.S_IXOTH:
            raise Refused(f"no other user may enter {each}: have the tree where others can read it, such as below /tmp")


def _ended(command: Sequence[str], environment: dict[str, str], identity: Identity, *, ignored: bool) -> int:
    """The exit code of the command. It has a session of its own, so what asks this process to end is handed on."""
    asked = False
    process: subprocess.Popen[bytes] | None = None

    def stop(*_: object) -> None:
        nonlocal asked
        asked = True
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)

    def handle() -> None:  # in the new process, whatever this one has inherited itself
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN if ignored else signal.SIG_DFL)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        process = subprocess.Popen(
            command, env=environment, start_new_session=True, umask=0o022, preexec_fn=handle, **identity
        )
        if asked:
            stop()
        code = process.wait()
    except PermissionError:
        raise Refused(
            f"no other user may run {command[0]} -> {os.path.realpath(shutil.which(command[0]) or command[0])}: "
            "make the environment with a Python that others can read, such as /usr/bin/python3"
        ) from None
    except FileNotFoundError:
        raise Refused(f"there is no {command[0]}") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 130 if asked else code if code >= 0 else 128 - code


def _arguments(arguments: Sequence[str]) -> Any:
    parser = argparse.ArgumentParser(prog="python -m tests.suite.surroundings", description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", help="one of --list")
    parser.add_argument("--seed", metavar="HEX", help="chooses one: the same for the same seed")
    parser.add_argument("--only", metavar="FACTORS", help=f"some of {','.join(FACTORS)}; the rest stays as it is")
    parser.add_argument("--list", action="store_true", help="show the surroundings")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    until = arguments.index("--") if "--" in arguments else len(arguments)
    asked, command = _arguments(arguments[:until]), arguments[until + 1 :]
    if asked.list:
        print(table())
        return 0
    try:
        around = chosen(asked.name, asked.seed, asked.only)
        if not command:
            raise Refused("give the command after --")
        shown = ", ".join(f"{factor} {value}" for factor, value in zip(FACTORS, around[1:], strict=True) if value)
        print(f"surroundings {around.name}: {shown}\nagain: {repeated(around, asked.only, command)}", flush=True)
        return run(around, command)
    except Refused as refused:
        print(f"surroundings: {refused}", file=sys.stderr)
        return REFUSED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
