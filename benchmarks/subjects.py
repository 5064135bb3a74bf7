"""Who is measured on which store, what each needs, and how much of each workload it gets."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from benchmarks.peers.common import WARM

STORES = ("memory", "sqlite", "redis")


class Subject(Struct, frozen=True):
    """A library in an environment of its own, which `needs` fills. No needs: this environment, or Node's packages."""

    name: str
    module: str
    needs: tuple[str, ...] = ()
    variant: str = ""
    store: str = "redis"
    together: bool = False  # one process submits and works
    python: str = ""  # where ours is too old for it
    node: bool = False
    warm: int = WARM  # a compiler that works while the program runs wants thousands of tasks first
    # The share of a scenario's tasks that it gets, so that a slow subject takes no longer than a fast one; "" is for
    # every scenario that is not named.
    pace: Mapping[str, float] = {}
    environ: tuple[str, ...] = ()  # NAME=value, for its processes

    def share(self, scenario: str) -> float:
        return self.pace.get(scenario, self.pace.get("", 1.0))


_APSCHEDULER = ("apscheduler==3.11.3",)
_CELERY = ("celery[redis]==5.7.0", "hiredis")
_HUEY = ("huey==3.5.4", "redis", "hiredis")
_RQ = ("rq==2.12.0", "hiredis")
_FEWER = {"": 0.4, "latency": 1.0, "lateness": 1.0}
_DISK = {"": 0.3, "submit.one": 0.1, "submit.sync": 0.1, "latency": 1, "lateness": 1}
_HUEY_DISK = {"": 0.04, "submit.one": 0.08, "submit.sync": 0.08, "latency": 0.3, "lateness": 0.25}
_HUEY_NOSYNC = {"": 0.3, "roundtrip": 0.02, "latency": 0.3, "lateness": 0.5}


def _one_process(name: str, needs: tuple[str, ...], pace: Mapping[str, float], variant: str = "") -> Subject:
    """Named after its library, its store, and what is set otherwise than by default."""
    return Subject(name, name.split()[0], needs, variant, name.split()[1], together=True, pace=pace)


_ALL = (
    _one_process("tickwork memory", (), {}),
    _one_process("apscheduler memory", _APSCHEDULER, {}),
    _one_process("tickwork sqlite", (), {"submit.one": 0.4, "submit.sync": 0.4}),
    _one_process("tickwork sqlite disk", (), _DISK, "disk"),
    _one_process("huey sqlite", _HUEY, _HUEY_DISK),
    _one_process("huey sqlite nosync", _HUEY, _HUEY_NOSYNC, "nosync"),
    Subject("tickwork", "tickwork"),
    Subject("tickwork uvloop", "tickwork", variant="uvloop"),
    Subject("tickwork sqlite apart", "tickwork", store="sqlite", pace={"": 0.5, "latency": 1, "lateness": 1}),
    Subject("saq", "saq", ("saq[redis,hiredis]==0.26.4", "typing-extensions"), pace=_FEWER),
    Subject("arq", "arq", ("arq==0.28.0", "hiredis"), pace={"": 0.2, "latency": 0.2, "lateness": 1}),
    Subject("taskiq", "taskiq", ("taskiq==0.13.0", "taskiq-redis==1.2.4", "hiredis"), pace=_FEWER),
    Subject("streaq", "streaq", ("streaq==7.2.0",), pace=_FEWER),
    Subject("ardiq", "ardiq", ("ardiq==1.2.0",), python="3.12"),
    Subject("repid", "repid", ("repid[redis]==2.1.4", "hiredis", "typing-extensions"), pace={"": 0.5, "latency": 1}),
    Subject("celery", "celery", _CELERY, pace={"": 0.2, "latency": 1, "lateness": 1}),
    Subject("celery solo", "celery", _CELERY, "solo", pace={"": 0.2}),
    Subject("dramatiq", "dramatiq", ("dramatiq[redis]==2.2.1", "hiredis"), pace=_FEWER),
    Subject("huey", "huey", _HUEY, pace={**_FEWER, "latency": 0.3}),
    Subject("rq", "rq", _RQ, pace={"": 0.2, "drain.10": 0.03, "payload": 0.05, "latency": 0.3, "lateness": 0.3}),
    Subject("rq simple", "rq", _RQ, "simple", pace={"": 0.2, "latency": 1, "lateness": 1}),
    Subject("bullmq", "bullmq", ("bullmq@6.7.0", "ioredis@5"), node=True, warm=5_000),
)
SUBJECTS: dict[str, Subject] = {subject.name: subject for subject in _ALL}

_MEMORY = ("tickwork memory", "apscheduler memory")
_SQLITE = ("tickwork sqlite", "huey sqlite nosync")
_DRAINS = ("tickwork", "bullmq", "ardiq", "repid")
# Of each scenario those who come closest to the best: a run of these takes a fifth of the time.
CLOSEST: dict[str, tuple[str, ...]] = {
    "submit.one": (*_MEMORY, *_SQLITE, "tickwork sqlite apart", *_DRAINS, "huey"),
    "submit.sync": (*_SQLITE, "tickwork", "huey", "dramatiq"),
    "submit.100": _DRAINS,
    "submit.bulk": ("tickwork", "bullmq", "ardiq"),
    "drain.10": (*_DRAINS, "tickwork sqlite apart"),
    "drain.100": (*_DRAINS, "tickwork sqlite apart"),
    "io.2000": ("tickwork", "bullmq", "ardiq"),
    "payload": (*_DRAINS, "huey"),
    "through.bulk": (*_MEMORY, *_SQLITE),
    "roundtrip": _MEMORY,
    "latency": (*_DRAINS, "huey", "tickwork sqlite apart"),
    "lateness": ("tickwork", "celery", *_MEMORY),
    "idle": (*_DRAINS, "huey", "celery", "tickwork sqlite apart"),
}
