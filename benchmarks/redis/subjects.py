"""Who is measured, what each needs, and how much of each workload it gets."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from benchmarks.redis.peers.common import WARM


class Subject(Struct, frozen=True):
    """A library in an environment of its own, which `needs` fills. No needs: this environment, or Node's packages."""

    name: str
    module: str
    needs: tuple[str, ...] = ()
    variant: str = ""
    python: str = ""  # where ours is too old for it
    node: bool = False
    warm: int = WARM  # a compiler that works while the program runs wants thousands of tasks first
    # The share of a scenario's tasks that it gets, so that a slow subject takes no longer than a fast one; "" is for
    # every scenario that is not named.
    pace: Mapping[str, float] = {}

    def share(self, scenario: str) -> float:
        return self.pace.get(scenario, self.pace.get("", 1.0))


_FEWER = {"": 0.4, "latency": 1.0, "lateness": 1.0}
_ALL = (
    Subject("tickwork", "tickwork"),
    Subject("tickwork uvloop", "tickwork", variant="uvloop"),
    Subject("tickwork sqlite", "tickwork", variant="sqlite", pace={"": 0.5, "latency": 1, "lateness": 1}),
    Subject("saq", "saq", ("saq[redis,hiredis]==0.26.4", "typing-extensions"), pace=_FEWER),
    Subject("arq", "arq", ("arq==0.28.0", "hiredis"), pace={"": 0.2, "latency": 0.2, "lateness": 1}),
    Subject("taskiq", "taskiq", ("taskiq==0.13.0", "taskiq-redis==1.2.4", "hiredis"), pace=_FEWER),
    Subject("streaq", "streaq", ("streaq==7.2.0",), pace=_FEWER),
    Subject("ardiq", "ardiq", ("ardiq==1.2.0",), python="3.12"),
    Subject("repid", "repid", ("repid[redis]==2.1.4", "hiredis", "typing-extensions"), pace={"": 0.5, "latency": 1}),
    Subject("celery", "celery", ("celery[redis]==5.7.0", "hiredis"), pace={"": 0.2, "latency": 1, "lateness": 1}),
    Subject("celery solo", "celery", ("celery[redis]==5.7.0", "hiredis"), "solo", pace={"": 0.2}),
    Subject("dramatiq", "dramatiq", ("dramatiq[redis]==2.2.1", "hiredis"), pace=_FEWER),
    Subject("huey", "huey", ("huey==3.5.4", "redis", "hiredis"), pace={**_FEWER, "latency": 0.3}),
    Subject("rq", "rq", ("rq==2.12.0", "hiredis"), pace={"": 0.2, "drain.10": 0.03, "latency": 0.3, "lateness": 0.3}),
    Subject("rq simple", "rq", ("rq==2.12.0", "hiredis"), "simple", pace={"": 0.2, "latency": 1, "lateness": 1}),
    Subject("bullmq", "bullmq", ("bullmq@6.7.0", "ioredis@5"), node=True, warm=5_000),
)
SUBJECTS: dict[str, Subject] = {subject.name: subject for subject in _ALL}
