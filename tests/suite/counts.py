"""What a run may make and leave out: applications, servers, processes, skips. Counts, unlike seconds, are the same on
every machine, so that a suite which begins to do its set-up again for each test is noticed by them."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Generator, Sequence
from typing import Any

import pytest

from tests.suite.seed import tree_hash

SERVERS = ("redis-server", "valkey-server")
SHOWN = 4  # tests that the command for another run names

# About a tenth above what the sets make. Less is welcome; more wants a reason, and a new number in the same commit.
BOUNDS = {
    "test": {"applications": 6, "servers": 460, "processes": 1100, "skipped": 120},
    "ci": {"applications": 6, "servers": 470, "processes": 1100, "skipped": 120},
}
OF_TWO_CORES = 2  # where that was counted; each further core runs a process, which may have servers of its own
SERVERS_OF_ONE = 8

# The only reasons to skip. Those of other systems never come up in CI; those of missing programs may not.
FOREIGN = (
    "POSIX", "inotify", "forks", "needs fork", "nothing forks there", "there are no forks here",
    "needs a pseudo terminal",
    "a device of Linux", "reads /proc", "only Linux", "no signals for threads there", "these servers fork",
    "its processes fork", "elsewhere", "no signs are heard on this file system", "no wheel for this Python or machine",
    "no IPv6", "only root can be another user",
)  # fmt: skip
MISSING = (
    "no Redis server", "Redis server: install", "Redis server: pip", "no server here is built with TLS", "no Chromium",
    "no make here",
    "Node is not installed", "promtool is not here", "systemd-analyze is not here", "no ps here",
    "REDIS_SERVERS=wheels", "could not import",
)  # fmt: skip
BY_DESIGN = (
    "no claim can stand in this store", "only Redis has partitions", "two schedulers cannot share it",
    "this server has WAITAOF",
)  # fmt: skip

made: Counter[str] = Counter()


def _heard(event: str, args: tuple[Any, ...]) -> None:
    if event != "subprocess.Popen":
        return
    command = args[1] if isinstance(args[1], Sequence) and not isinstance(args[1], str) else [args[1]]
    starts_server = any(os.path.basename(os.fsdecode(word)) in SERVERS for word in command)
    made["servers" if starts_server else "processes"] += 1


sys.addaudithook(_heard)


def made_here() -> Counter[str]:
    """What this process has made."""
    application = sys.modules.get("tickwork.server.http.app")
    if application is not None:
        made["applications"] = application.routes.cache_info().misses
    return made


# --- skips


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not _may_be_skipped(reason):
            report.outcome = "failed"
            report.longrepr = f"skipped for a reason that tests/suite/counts.py does not list: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple) and not _may_be_skipped(report.longrepr[2]):
        report.outcome = "failed"
        report.longrepr = f"skipped for a reason that tests/suite/counts.py does not list: {report.longrepr[2]}"
    return report


def _may_be_skipped(reason: str) -> bool:
    return any(re.search(rf"\b{re.escape(each)}", reason) for each in (*FOREIGN, *MISSING, *BY_DESIGN))


# --- at the end


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.exitstatus == 0 and _exceeded(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    found = _counts(config)
    terminalreporter.write_line("made: " + ", ".join(f"{count} {name}" for name, count in found.items()))
    for name, most in _exceeded(config).items():
        line = f"{found[name]} {name}: tests/suite/counts.py allows {most}. What is made again and again?"
        terminalreporter.write_line(line, red=True)
    failed = [report.nodeid for kind in ("failed", "error") for report in terminalreporter.stats.get(kind, ())]
    if failed:
        which = [shlex.quote(each) for each in dict.fromkeys(failed)]
        names = " ".join(which) if len(which) <= SHOWN else "--last-failed"
        python = os.path.relpath(sys.executable)
        terminalreporter.write_line(f"again: TESTS_SEED={tree_hash()} {python} -m pytest {names}", bold=True)


def _exceeded(config: pytest.Config) -> dict[str, int]:
    """The bounds that do not hold. In a shuffled order tests that share a server are far apart, and more are made."""
    found, bounds = _counts(config), BOUNDS.get(config.option.tier or "", {})
    if config.getoption("shuffle", None) is not None:
        bounds = {name: most for name, most in bounds.items() if name == "skipped"}
    elif "servers" in bounds:
        more = max((os.cpu_count() or 1) - OF_TWO_CORES, 0) * SERVERS_OF_ONE
        bounds = {**bounds, "servers": bounds["servers"] + more}
    return {name: most for name, most in bounds.items() if found[name] > most}


def _counts(config: pytest.Config) -> dict[str, int]:
    reporter = config.pluginmanager.getplugin("terminalreporter")
    skipped = len(reporter.stats.get("skipped", ())) if reporter else 0
    found = made_here()
    return {name: found[name] for name in ("applications", "servers", "processes")} | {"skipped": skipped}
