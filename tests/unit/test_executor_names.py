"""Which executors, and which targets of them, tasks may name."""

from __future__ import annotations

import pytest

from tickwork import ConfigError, Scheduler
from tickwork.handlers.executor_names import ExecutorNames


@pytest.fixture
def names() -> ExecutorNames:
    names = ExecutorNames()
    names.add("grpc", ["ship"], handled=(), targets=["stock", "mail"])
    names.add("own", [], handled=())
    return names


class TestTargets:
    def test_a_known_target_is_taken(self, names: ExecutorNames) -> None:
        names.check("grpc", "stock", "anything")

    def test_a_type_of_a_target_needs_no_target(self, names: ExecutorNames) -> None:
        names.check("grpc", None, "ship")

    def test_another_type_needs_one(self, names: ExecutorNames) -> None:
        with pytest.raises(ConfigError, match="executor 'grpc' needs a target; known are mail, stock"):
            names.check("grpc", None, "pack")

    def test_an_unknown_one_is_refused_with_those_that_are_known(self, names: ExecutorNames) -> None:
        with pytest.raises(ConfigError, match="executor 'grpc' has no target 'stok'; known are mail, stock"):
            names.check("grpc", "stok", "ship")

    def test_a_handler_may_leave_the_target_to_its_submissions(self, names: ExecutorNames) -> None:
        names.check_handler("pack", {"executor": "grpc"})
        with pytest.raises(ConfigError, match="has no target 'stok'"):
            names.check_handler("pack", {"executor": "grpc", "target": "stok"})

    @pytest.mark.parametrize("executor", ["local", "own"])
    def test_what_others_make_of_a_target_is_their_own_affair(self, names: ExecutorNames, executor: str) -> None:
        names.check(executor, "stock")

    def test_an_executor_that_is_taken_away_is_unknown_again(self, names: ExecutorNames) -> None:
        names.remove("grpc")
        assert names.run_by == {}
        with pytest.raises(ConfigError, match=r"unknown executor 'grpc'; known are local, own\. Configure its targets"):
            names.check("grpc", "stock")


async def test_a_program_that_only_submits_may_name_any_target() -> None:
    app = Scheduler("memory://")
    app.executors.register("grpc", None, types=["ship"])
    task = await app.submit("ship", executor="grpc", target="stock")
    assert (await task.info()).executor == "grpc"
    await app.close()


async def test_a_schedule_is_edited_with_both_in_view() -> None:
    app = Scheduler("memory://")
    app.executors.register("grpc", None, types=["ship"])
    await app.schedules.put("nightly", "ship", cron="0 3 * * *", executor="grpc", target="stock")
    await app.schedules.edit("nightly", target="mail", payload={"id": 7})
    with pytest.raises(ConfigError, match="there is no worker 'mail'"):
        await app.schedules.edit("nightly", executor="local")
    await app.close()
