"""The part of the contract that the package exports, on every store of its own."""

from tickwork.dispatch.assigning import HOLD, Assigner
from tickwork.dispatch.strategies import Strategies
from tickwork.model.members import Worker
from tickwork.observe.loggers import Log
from tickwork.testing.contract.assigning import *  # noqa: F403
from tickwork.testing.contract.bench import Bench


async def test_a_new_leader_gives_on_what_a_lost_worker_was_assigned(bench: Bench) -> None:
    """The leader that had assigned it was lost as well, so nobody else knows that it is to go back before its time."""
    await bench.store.members.beat(Worker(id="lost", assigned=("default",), task_types=("job",)))
    await bench.submit("it")
    await bench.assign("it", "lost", hold=100 * HOLD)
    await bench.pass_time(60)
    assert (await bench.store.tasks.reclaim(10)).lost_workers == ["lost"]
    await bench.store.members.beat(Worker(id="alive", assigned=("default",), task_types=("job",)))
    leader = Assigner(bench.store, Strategies().of("least_tasks"), Log.of(None, "leader"))
    await leader.work()
    assert (await bench.record("it")).worker_id == "alive"
