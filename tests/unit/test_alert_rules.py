"""Alert rules from one look to the next, and which rules a configuration has."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tickwork import AlertRule, ConfigError, Scheduler
from tickwork.config import OPERATORS, Config
from tickwork.config.alerts import BUILT_IN, METRICS, rules_in_force
from tickwork.config.checks import validate
from tickwork.model.alerts import AlertBook, RuleState, read_book, write_book
from tickwork.monitor.alerts import changes
from tickwork.monitor.judging import COMPARE, judge, next_look

RULE = AlertRule("busy", "tasks_running", 10, ">", 60)
EVERY = 30.0
START = 1_700_000_000_000


class Looks:
    """One rule, looked at again and again. Times are seconds."""

    def __init__(self, rule: AlertRule = RULE) -> None:
        self.rule = rule
        self.state: RuleState | None = None
        self.book = AlertBook()

    def at(self, second: float, value: float | None) -> str:
        """How the rule stands then, with `!` behind it if that is told."""
        now = START + round(1000 * second)
        state = judge(self.rule, self.book.rules.get("busy"), value, now, self.book.at, EVERY)
        after = AlertBook(rules={"busy": state}, at=now)
        told = changes(self.book, after)
        self.book = after
        return f"{state.state}!" if told else state.state


def test_a_rule_fires_when_its_condition_has_held_for_its_duration() -> None:
    looks = Looks()
    assert [looks.at(0, 10), looks.at(30, 11), looks.at(60, 11), looks.at(89.9, 11)] == ["ok", *["pending"] * 3]
    assert [looks.at(90, 11), looks.at(120, 11)] == ["firing!", "firing"]


def test_a_rule_whose_condition_stops_holding_begins_anew() -> None:
    looks = Looks()
    assert [looks.at(0, 11), looks.at(59, 10), looks.at(61, 11), looks.at(90, 11)] == [
        "pending", "ok", "pending", "pending",
    ]  # fmt: skip
    assert looks.at(121, 11) == "firing!"


def test_a_rule_without_a_duration_fires_at_the_first_look() -> None:
    looks = Looks(replace(RULE, duration=0.0))
    assert looks.at(0, 11) == "firing!"


def test_an_alert_is_over_when_its_condition_has_not_held_for_as_long() -> None:
    looks = Looks(replace(RULE, duration=60.0))
    looks.at(0, 11)
    assert [looks.at(60, 11), looks.at(90, 0), looks.at(149, 0)] == ["firing!", "firing", "firing"]
    assert [looks.at(150, 0), looks.at(180, 0)] == ["ok!", "ok"]


def test_a_value_that_swings_around_the_threshold_is_told_once() -> None:
    looks = Looks(replace(RULE, duration=0.0))
    found = [looks.at(10 * number, 9 + 2 * (number % 2)) for number in range(1, 100)]
    assert found == ["firing!", *["firing"] * 98]


def test_an_alert_without_a_duration_is_over_after_the_time_between_two_looks() -> None:
    looks = Looks(replace(RULE, duration=0.0))
    assert [looks.at(0, 11), looks.at(10, 0), looks.at(39.9, 0), looks.at(40, 0)] == [
        "firing!", "firing", "firing", "ok!",
    ]  # fmt: skip


def test_a_time_in_which_nobody_looked_does_not_count() -> None:
    """For some looks it may have held all the while; for longer nobody knows."""
    looks = Looks()
    assert [looks.at(0, 11), looks.at(119, 11)] == ["pending", "firing!"]
    looks = Looks()
    assert [looks.at(0, 11), looks.at(121, 11), looks.at(180, 11), looks.at(181, 11)] == [
        "pending", "pending", "pending", "firing!",
    ]  # fmt: skip
    assert [looks.at(200, 0), looks.at(400, 0), looks.at(459, 0), looks.at(460, 0)] == [
        "firing", "firing", "firing", "ok!",
    ]  # fmt: skip


def test_a_value_that_cannot_be_read_changes_nothing() -> None:
    looks = Looks()
    assert [looks.at(0, 11), looks.at(30, None), looks.at(60, None), looks.at(90, 11)] == [
        "pending", "pending", "pending", "firing!",
    ]  # fmt: skip
    assert looks.at(120, None) == "firing"


def test_a_clock_that_is_set_back_ends_no_alert_and_starts_none() -> None:
    looks = Looks()
    assert [looks.at(1000, 11), looks.at(0, 11), looks.at(30, 11), looks.at(59, 11)] == ["pending"] * 4
    assert looks.at(60, 11) == "firing!"
    assert [looks.at(10, 0), looks.at(-500, 0), looks.at(-471, 0)] == ["firing"] * 3


def test_a_rule_that_was_changed_begins_anew_unless_it_fires() -> None:
    looks = Looks()
    looks.at(0, 21)
    looks.rule = replace(RULE, threshold=20.0)
    assert [looks.at(60, 21), looks.at(119, 21), looks.at(120, 21)] == ["pending", "pending", "firing!"]
    looks.rule = RULE
    assert looks.at(130, 11) == "firing"
    looks.rule = replace(RULE, threshold=20.0)
    assert [looks.at(160, 11), looks.at(220, 11)] == ["firing", "ok!"]


def test_an_alert_whose_rule_is_gone_is_over() -> None:
    fires = AlertBook(rules={"busy": RuleState("tasks_running", ">", 10, 60, "firing")})
    (fact,) = changes(fires, AlertBook())
    assert (fact.kind, fact.id, fact.detail) == ("alert.resolved", "busy", "its rule is gone")
    pending = AlertBook(rules={"busy": RuleState("tasks_running", ">", 10, 60, "pending")})
    assert changes(pending, AlertBook()) == []


def test_what_is_told_names_the_value_and_the_rule() -> None:
    before = AlertBook(rules={"busy": RuleState("tasks_running", ">", 10, 60, "pending")})
    after = AlertBook(rules={"busy": RuleState("tasks_running", ">", 10, 60, "firing", value=12.5)})
    (fact,) = changes(before, after)
    assert fact.detail == "tasks_running is 12.5; busy fires when it is > 10 for 60 s"


def test_the_next_look_comes_when_a_duration_is_over() -> None:
    state = RuleState("tasks_running", ">", 10, 60, "pending", since=START)
    assert next_look(state, START + 50_000, EVERY) == 10
    assert next_look(replace(state, state="ok"), START, EVERY) == EVERY
    clear = replace(state, state="firing", clear_since=START, duration=0.0)
    assert next_look(clear, START + 5000, EVERY) == 25


def test_every_operator_is_known() -> None:
    assert set(COMPARE) == set(OPERATORS)
    for sign, numbers in {">": (2,), "<": (0,), ">=": (1, 2), "<=": (0, 1), "==": (1,)}.items():
        assert tuple(number for number in range(3) if COMPARE[sign](number, 1)) == numbers


def test_a_book_is_read_as_it_was_written() -> None:
    book = AlertBook(3, "me", START, {"busy": RuleState("tasks_running", ">", 10, 60, "firing", START, 12.5)}, 7)
    assert read_book(write_book(book)) == book
    assert read_book(None) == AlertBook()
    assert read_book("what a later version wrote") == AlertBook()


# --- which rules there are


def test_a_rule_of_the_same_name_takes_the_place_of_a_built_in_one() -> None:
    mine = AlertRule("no_online_workers", "workers_online", 3, "<", 10)
    other = AlertRule("mine", "tasks_pending", 1000, ">=")
    rules = rules_in_force(Config(alert_rules=(mine, other), alerts_off=("schedule_late",)))
    assert [rule.name for rule in rules] == [
        *(rule.name for rule in BUILT_IN if rule.name != "schedule_late"), "mine",
    ]  # fmt: skip
    assert {rule.name: rule for rule in rules}["no_online_workers"] == mine


def test_the_example_rules_are_built_in() -> None:
    rules = {rule.name: rule for rule in BUILT_IN}
    assert rules["high_task_failure_rate"] == AlertRule("high_task_failure_rate", "task_failure_rate", 0.1, ">", 300)
    assert rules["no_online_workers"] == AlertRule("no_online_workers", "workers_online", 1, "<", 60)
    validate(Config(alert_rules=BUILT_IN))
    assert {rule.metric for rule in BUILT_IN} <= METRICS.keys()


@pytest.mark.parametrize(
    ("metric", "told"),
    [("task_failure_rates", "did you mean 'task_failure_rate'?"), ("zzz", "known are task_failure_rate, ")],
)
def test_a_metric_that_is_not_known_is_refused(metric: str, told: str) -> None:
    with pytest.raises(ConfigError, match=r"alert_rules: .* hold the metric") as caught:
        Scheduler("memory://", alert_rules=[AlertRule("a", metric, 1, ">")])
    assert told in str(caught.value)


def test_a_rule_that_is_switched_off_must_be_known() -> None:
    with pytest.raises(ConfigError, match=r"alerts_off: .* did you mean 'schedule_late'\?"):
        Scheduler("memory://", alerts_off=["schedule_lat"])
    Scheduler("memory://", alert_rules=[AlertRule("mine", "tasks_running", 1, ">")], alerts_off=["mine"])
