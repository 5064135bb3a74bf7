"""`tests.suite.surroundings`: the suite as on another machine."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.suite import surroundings
from tests.suite.surroundings import FACTORS, TABLE, TREE, Refused, chosen
from tests.support.waiting import wait_until

IS_ROOT = os.geteuid() == 0
ALL, OWN_USER = "kathmandu-c", "kathmandu-de"
# Whatever Python the tests run on, another user may not be allowed to: a shell, he may.
SHOW = "; ".join(
    [
        "id -u; id -G",
        'echo "$TZ $LC_ALL $LANG $USER$LOGNAME$XDG_CACHE_HOME"',
        'echo "$HOME $TMPDIR"',
        'touch "$TMPDIR/x" "$HOME/x"',
    ]
)
LISTEN = """
import socket
for host, port in (("127.0.0.1", 8080), ("127.0.0.1", 9090), ("127.0.0.1", 0), ("::1", 0)):
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError:
        print(host, port)
"""


def start(*arguments: str, cwd: Path = Path("/")) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.suite.surroundings", *arguments],
        cwd=cwd, env={**os.environ, "PYTHONPATH": str(TREE), "USER": "ines", "XDG_CACHE_HOME": "/ines"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def run(*arguments: str, cwd: Path = Path("/")) -> tuple[int, list[str], str]:
    """Exit code, lines of the output that are not about the surroundings, and what was refused."""
    process = start(*arguments, cwd=cwd)
    out, err = process.communicate(timeout=60)
    heads = ("surroundings ", "again: ", "left out: ")
    return process.returncode, [line for line in out.splitlines() if not line.startswith(heads)], err


def values(name: str) -> list[str]:
    return [getattr(each, name) for each in TABLE]


class TestTable:
    def test_each_zone_meets_each_language(self) -> None:
        zones, languages = {"Asia/Kathmandu", "America/Chicago"}, {"C", "de_DE.UTF-8"}
        assert {(each.zone, each.language) for each in TABLE} == {(one, other) for one in zones for other in languages}

    @pytest.mark.parametrize("factor", ["user", "signals", "ports", "ipv6", "home"])
    def test_the_rest_is_now_unusual_and_now_as_it_is(self, factor: str) -> None:
        assert values(factor).count("") in range(1, len(TABLE) - 1)

    def test_no_folder_is_closed_to_root(self) -> None:
        assert all(each.user for each in TABLE if each.home)

    @pytest.mark.parametrize("one", FACTORS)
    @pytest.mark.parametrize("other", FACTORS)
    def test_any_two_meet(self, one: str, other: str) -> None:
        assert any(getattr(each, one) and getattr(each, other) for each in TABLE)

    def test_it_is_shown(self) -> None:
        lines = surroundings.table().splitlines()
        assert lines[0].split() == ["name", *FACTORS]
        assert (
            [line.split()[0] for line in lines[1:]]
            == values("name")
            == sorted(set(values("name")), key=values("name").index)
        )


class TestChoice:
    def test_a_seed_leads_to_the_same_each_time_and_seeds_lead_to_all(self) -> None:
        assert chosen(None, "b4b2bf6a0", None) == chosen(None, "b4b2bf6a0", None)
        assert {chosen(None, f"{seed:x}", None) for seed in range(32, 32 + len(TABLE))} == set(TABLE)

    def test_a_name_goes_before_a_seed_and_a_part_is_a_part(self) -> None:
        found = chosen(ALL, "1", "zone,home")
        assert (found.zone, found.home, found.user, found.signals) == ("Asia/Kathmandu", "unwritable", "", "")

    @pytest.mark.parametrize(
        ("name", "seed", "only", "why"),
        [
            ("lima", None, None, "no surroundings are named 'lima'; there are kathmandu-c, "),
            (None, "main", None, "'main' is no seed: it is a hexadecimal number"),
            (None, None, None, "name the surroundings, or give a --seed"),
            (ALL, None, "zone,zon", "zon is none of user, signals"),
        ],
    )
    def test_what_is_refused(self, name: str | None, seed: str | None, only: str | None, why: str) -> None:
        with pytest.raises(Refused, match=why):
            chosen(name, seed, only)

    def test_the_command_that_does_it_again(self) -> None:
        again = surroundings.repeated(TABLE[0], "zone", ["sh", "-c", "exit 1"])
        assert again == f"python -m tests.suite.surroundings {ALL} --only zone -- sh -c 'exit 1'"


class TestCommand:
    def test_another_user(self) -> None:
        code, lines, err = run(ALL, "--", "sh", "-c", SHOW)
        user, groups, told, folders = lines
        home, temporary = folders.split()
        assert (code, told) == (1, "Asia/Kathmandu C C ")
        assert f"{home}/x" in err
        assert f"{temporary}/x" not in err
        assert not Path(temporary).exists()
        if IS_ROOT:
            assert user == groups
            with pytest.raises(KeyError):
                pwd.getpwuid(int(user))
        else:
            assert int(user) == os.geteuid()

    def test_what_stays_as_it_is(self) -> None:
        code, lines, _ = run(OWN_USER, "--only", "zone", "--", "sh", "-c", 'id -u; echo "$TZ $HOME $USER"')
        assert (code, lines) == (0, [str(os.geteuid()), f"Asia/Kathmandu {os.environ['HOME']} ines"])

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
    def test_signals(self, number: signal.Signals) -> None:
        hit = ("sh", "-c", f"kill -{number} $$; echo alive")
        assert run(ALL, "--only", "signals", "--", *hit)[:2] == (0, ["alive"])
        assert run(ALL, "--only", "zone", "--", *hit)[:2] == (128 + number, [])

    def test_ports_and_ipv6(self) -> None:
        process = start(ALL, "--only", "ports,ipv6", "--", sys.executable, "-c", LISTEN)
        out, err = process.communicate(timeout=60)
        wanted = ["127.0.0.1 8080", "127.0.0.1 9090"]
        if "left out: ipv6" not in out:
            wanted.append("::1 0")
        assert [line for line in out.splitlines() if line in (*wanted, "127.0.0.1 0")] == wanted, out + err

    def test_a_language_that_can_be_had_is_had_and_another_is_told_of(self) -> None:
        process = start(OWN_USER, "--only", "language", "--", "locale")
        out, err = process.communicate(timeout=60)
        assert "LC_ALL=de_DE.UTF-8" in out.splitlines()
        assert ("Cannot set LC_ALL" in err) == ("left out: language: de_DE.UTF-8 is neither installed" in out)

    def test_its_exit_code(self) -> None:
        assert run(OWN_USER, "--", "sh", "-c", "exit 7")[0] == 7

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    async def test_it_takes_the_command_along(self, number: signal.Signals) -> None:
        process = start(OWN_USER, "--", "sh", "-c", "echo pid $$; sleep 300; :")
        assert process.stdout is not None
        pid = next(int(line.split()[1]) for line in process.stdout if line.startswith("pid "))
        process.send_signal(number)
        process.communicate(timeout=60)
        assert process.returncode == 130
        await wait_until(lambda: not _group_lives(pid))

    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            ([ALL], "give the command after --"),
            (["lima", "--", "true"], "no surroundings are named 'lima'"),
            ([ALL, "--", "./not-here"], "there is no ./not-here"),
        ],
    )
    def test_what_is_refused(self, arguments: Sequence[str], why: str) -> None:
        code, _, err = run(*arguments)
        assert (code, why in err) == (surroundings.REFUSED, True)

    @pytest.mark.skipif(not IS_ROOT, reason="only root can be another user")
    def test_what_another_user_may_not_read(self, tmp_path: Path) -> None:
        (tmp_path / "python").write_text("#!/bin/sh\n")
        (tmp_path / "python").chmod(0o700)
        code, _, err = run(ALL, "--", str(tmp_path / "python"))
        assert (code, "make the environment with a Python that others can read" in err) == (surroundings.REFUSED, True)
        tmp_path.chmod(0o700)
        code, _, err = run(ALL, "--", "true", cwd=tmp_path)
        assert (code, "no other user may enter" in err) == (surroundings.REFUSED, True)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
