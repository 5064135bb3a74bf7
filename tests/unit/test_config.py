from __future__ import annotations

import functools
import inspect
import logging
import math
import operator
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import quote, unquote, urlsplit

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tickwork import Scheduler, config
from tickwork.backoff import CustomRetry, Duration, ExponentialBackoff, FixedDelay, LinearBackoff, RetryPolicy, Seconds
from tickwork.config import CHOICES, AlertRule, Config, options
from tickwork.config import yaml as written
from tickwork.config.checks import validate
from tickwork.config.endpoints import Endpoint
from tickwork.config.grpc import GrpcTarget
from tickwork.config.loading import Loaded, describe, in_words, load
from tickwork.config.names import OTHER_NAMES
from tickwork.config.urls import mask_url
from tickwork.config.webhooks import WebhookLike
from tickwork.errors import LONGEST_WAIT, ConfigError
from tickwork.model.policy import Durability, WhenCutOff
from tickwork.payload.codec import Serializer
from tickwork.texts import shown

WriteYaml = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteYaml:
    """Write `tickwork.yaml` in a working directory of its own."""
    monkeypatch.chdir(tmp_path)

    def write(text: str) -> Path:
        Path("tickwork.yaml").write_text(text, encoding="utf-8")
        return Path("tickwork.yaml")

    return write


def given_arguments(**arguments: Any) -> Config:
    return load(arguments, environ={}).config


def given_variables(**variables: str) -> Config:
    return load(environ={f"TICKWORK_{name}": value for name, value in variables.items()}).config


def refusal(arguments: dict[str, Any] | None = None, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(arguments, environ=environ or {})
    return str(caught.value)


class TestDefaults:
    def test_are_those_of_the_design(self) -> None:
        assert msgspec.structs.asdict(Config()) == {
            "store": None,
            "namespace": "scheduler",
            "scheduler_id": None,
            "queues": ("default",),
            "worker_count": 1,
            "concurrency": 10,
            "task_types": None,
            "max_tasks_per_child": 0,
            "labels": {},
            "weight": 1,
            "address": "",
            "lease_ttl": 30,
            "renew_interval": 10,
            "leader_lease_ttl": 10,
            "leader_renew_interval": 3,
            "scan_interval": 1,
            "batch_size": 100,
            "max_retry": 3,
            "retry": ExponentialBackoff(1, 3600, 2.0, jitter=True),
            "timeout": 300,
            "max_losses": 3,
            "when_cut_off": "stop",
            "dedup": True,
            "dedup_ttl": 3600,
            "dlq": True,
            "dlq_max": 10_000,
            "rate_limit": None,
            "breaker": None,
            "dispatch": "pull",
            "load_balance_strategy": "least_tasks",
            "fair_queues": (),
            "partitions": 1,
            "durability": "memory",
            "payload_limit": 262_144,
            "version_grace": 3600,
            "retention": 604_800,
            "retention_max": 1_000_000,
            "cleanup_interval": 300,
            "shutdown_timeout": 30,
            "timezone": "UTC",
            "serializer": "json",
            "host": "127.0.0.1",
            "metrics": False,
            "metrics_port": 9090,
            "health": False,
            "health_port": 8080,
            "server": False,
            "server_port": 8080,
            "server_hosts": (),
            "server_namespaces": (),
            "server_tokens": False,
            "server_tls_cert": None,
            "server_tls_key": None,
            "server_socket": None,
            "server_mask": (),
            "server_proxies": (),
            "server_user_header": None,
            "server_roles": {},
            "server_grpc_port": None,
            "server_quota": {},
            "monitoring": False,
            "metrics_interval": 30,
            "health_check_interval": 60,
            "alert_rules": (),
            "alerts_off": (),
            "worker_timeout": 120,
            "endpoints": {},
            "allow_addresses": (),
            "secret_file": None,
            "webhooks": (),
            "callback_url": None,
            "call_limit": 1000,
            "grpc_targets": {},
            "lock_prefix": "task:lock:",
            "lock_ttl": None,
            "pool_size": 10,
            "store_timeout": None,
            "submit_timeout": 15,
            "events": True,
            "statistics": True,
            "logger": None,
            "log_level": None,
            "debug": False,
        }

    def test_pass_their_own_validation_without_a_warning(self) -> None:
        assert validate(Config()) == []

    def test_are_what_loading_nothing_gives(self) -> None:
        loaded = load(environ={})
        assert loaded.config == Config()
        assert set(loaded.origins.values()) == {"default"}
        assert set(loaded.origins) == set(Config.__struct_fields__)
        assert loaded.warnings == []

    def test_labels_are_not_shared_between_configurations(self) -> None:
        assert Config().labels is not Config().labels

    def test_a_config_cannot_be_changed(self) -> None:
        with pytest.raises(AttributeError):
            Config().concurrency = 5  # type: ignore[misc]


class TestLayers:
    def test_arguments_overrule_the_environment_which_overrules_the_file(self, write: WriteYaml) -> None:
        file = write("concurrency: 1\nbatch_size: 1\nweight: 1\n")
        environ = {"TICKWORK_BATCH_SIZE": "2", "TICKWORK_WEIGHT": "2"}
        loaded = load({"weight": 3}, file=file, environ=environ)
        assert (loaded.config.concurrency, loaded.config.batch_size, loaded.config.weight) == (1, 2, 3)
        assert loaded.origins["concurrency"] == "file tickwork.yaml"
        assert loaded.origins["batch_size"] == "environment TICKWORK_BATCH_SIZE"
        assert loaded.origins["weight"] == "argument"
        assert loaded.origins["namespace"] == "default"

    def test_a_value_equal_to_the_default_still_overrules(self) -> None:
        loaded = load({"concurrency": 10}, environ={"TICKWORK_CONCURRENCY": "99"})
        assert loaded.config.concurrency == 10
        assert loaded.origins["concurrency"] == "argument"

    def test_an_alias_in_one_layer_meets_the_option_in_another(self, write: WriteYaml) -> None:
        loaded = load(file=write("worker: {capacity: 4}"), environ={"TICKWORK_CONCURRENCY": "8"})
        assert loaded.config.concurrency == 8

    def test_the_process_environment_is_the_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TICKWORK_CONCURRENCY", "7")
        assert load().config.concurrency == 7

    def test_an_empty_variable_is_not_set(self) -> None:
        loaded = load(environ={"TICKWORK_CONCURRENCY": "", "TICKWORK_STORE": ""})
        assert loaded.origins["concurrency"] == "default"
        assert loaded.config.store is None

    def test_variables_of_others_are_left_alone(self) -> None:
        assert load(environ={"CONCURRENCY": "x", "NOT_TICKWORK_CONCURRENCY": "x", "TICKWORKS": "x"}).config == Config()

    def test_an_empty_line_of_a_file_is_not_set(self, write: WriteYaml) -> None:
        loaded = load(file=write("concurrency:\nmetrics:\nworker:\nredis: {password: }\nstore: ~\n"), environ={})
        assert loaded.config == Config()
        assert set(loaded.origins.values()) == {"default"}

    def test_none_as_an_argument_is_a_value_where_there_can_be_none(self) -> None:
        environ = {"TICKWORK_RATE_LIMIT": "10,20", "TICKWORK_TASK_TYPES": "a"}
        loaded = load({"rate_limit": None, "task_types": None}, environ=environ)
        assert loaded.config.rate_limit is None
        assert loaded.config.task_types is None
        assert loaded.origins["rate_limit"] == "argument"
        assert refusal({"concurrency": None}) == "concurrency: None (argument) is not a whole number"

    @pytest.mark.parametrize("name", ["store", "redis_addr", "redis_db", "redis_pass", "retry_delay"])
    def test_none_for_the_store_and_for_parts_is_nothing_given(self, name: str) -> None:
        environ = {"TICKWORK_STORE": "redis://h/0"}
        assert load({name: None}, environ=environ).config.store == "redis://h/0"

    def test_the_same_option_twice_in_one_layer_is_refused(self, write: WriteYaml) -> None:
        assert refusal({"capacity": 1, "concurrency": 1}) == (
            "capacity and concurrency are one option (argument); set only one of them"
        )
        text = refusal(environ={"TICKWORK_LEASE_TTL": "30", "TICKWORK_HEARTBEAT_TIMEOUT": "30"})
        assert "lease_ttl and heartbeat_timeout are one option" in text
        with pytest.raises(ConfigError, match=r"scheduler\.id and worker\.id are one option \(file tickwork\.yaml\)"):
            load(file=write("scheduler: {id: a}\nworker: {id: a}\n"), environ={})


class TestConfigObjects:
    ENVIRON: ClassVar = {"TICKWORK_CONCURRENCY": "33", "TICKWORK_STORE": "redis://h/0"}

    def test_a_config_is_whole(self) -> None:
        """What was left at its default cannot be told from what was set to it, so both count as set."""
        loaded = load(config=Config(concurrency=10, namespace="shop"), environ=self.ENVIRON)
        assert (loaded.config.concurrency, loaded.config.namespace) == (10, "shop")
        assert loaded.origins["concurrency"] == "config argument"

    def test_but_it_need_not_name_a_store(self) -> None:
        assert load(config=Config(), environ=self.ENVIRON).config.store == "redis://h/0"
        assert load(config=Config(store="memory://"), environ=self.ENVIRON).config.store == "memory://"

    def test_every_field_of_it_arrives(self) -> None:
        config = Config(
            retry=FixedDelay(3),
            rate_limit=(1, 2),
            labels={"zone": "eu"},
            alert_rules=(AlertRule("a", "tasks_running", 1, ">"),),
        )
        assert load(config=config, environ=self.ENVIRON).config == msgspec.structs.replace(config, store="redis://h/0")

    def test_arguments_overrule_it_like_a_file(self, write: WriteYaml) -> None:
        written = {"worker": {"concurrency": 5, "queues": ["a"]}}
        for source in ({"config": written}, {"config": Config(concurrency=5, queues=("a",))}):
            config = load({"worker_concurrency": 8}, environ=self.ENVIRON, **source).config
            assert (config.concurrency, config.queues) == (8, ("a",))

    def test_a_mapping_holds_what_is_in_it(self) -> None:
        config = load(config={"namespace": "shop"}, environ=self.ENVIRON).config
        assert (config.namespace, config.concurrency) == ("shop", 33)

    def test_other_things_are_no_config(self) -> None:
        for wrong in (5, ["a"], object()):
            with pytest.raises(ConfigError, match="config must be a file, a mapping or a Config, not"):
                Scheduler("memory://", config=wrong)  # type: ignore[arg-type]

    def test_a_scheduler_keeps_it_when_it_is_configured_further(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TICKWORK_CONCURRENCY", "33")
        app = Scheduler("memory://", config={"worker": {"concurrency": 5, "weight": 2}}, concurrency=8)
        app.configure(weight=3)
        assert (app.config.concurrency, app.config.weight) == (8, 3)
        app = Scheduler("memory://", config=Config(concurrency=10))
        app.configure(namespace="shop")
        assert (app.config.concurrency, app.config.namespace) == (10, "shop")


class TestWhichFile:
    def test_none_is_read_unless_asked_for(self, write: WriteYaml) -> None:
        write("concurrency: 5")
        assert load(environ={}).config.concurrency == 10
        assert load(environ={}, default_file=True).config.concurrency == 5

    def test_the_default_file_may_be_missing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert load(environ={}, default_file=True).config == Config()

    def test_a_variable_may_name_it(self, write: WriteYaml, tmp_path: Path) -> None:
        write("concurrency: 5")
        other = tmp_path / "other.yaml"
        other.write_text("concurrency: 6", encoding="utf-8")
        loaded = load(environ={"TICKWORK_CONFIG": str(other)}, default_file=True)
        assert loaded.config.concurrency == 6
        assert loaded.origins["concurrency"] == f"file {other}"

    def test_an_argument_overrules_the_variable(self, write: WriteYaml) -> None:
        loaded = load(file=str(write("concurrency: 5")), environ={"TICKWORK_CONFIG": "missing.yaml"})
        assert loaded.config.concurrency == 5

    @pytest.mark.parametrize("how", ["argument", "variable"])
    def test_a_named_file_must_exist(self, how: str, tmp_path: Path) -> None:
        missing = str(tmp_path / "missing.yaml")
        with pytest.raises(ConfigError, match=r"missing\.yaml: No such file"):
            load(file=missing if how == "argument" else None, environ={"TICKWORK_CONFIG": missing})


ALIASES = [
    ("worker_id", "w-1", "scheduler_id", "w-1"),
    ("worker_concurrency", "5", "concurrency", 5),
    ("capacity", "5", "concurrency", 5),
    ("max_concurrent_tasks", "5", "concurrency", 5),
    ("heartbeat_timeout", "45s", "lease_ttl", 45),
    ("heartbeat_interval", "5s", "renew_interval", 5),
    ("leader_lock_ttl", "12s", "leader_lease_ttl", 12),
    ("max_retries", "7", "max_retry", 7),
    ("task_retry_limit", "7", "max_retry", 7),
    ("retry_strategy", '{"type": "fixed", "seconds": 5}', "retry", FixedDelay(5)),
    ("default_timeout", "5m", "timeout", 300),
    ("task_timeout", "10m", "timeout", 600),
    ("deduplication", "off", "dedup", False),
    ("deduplication_ttl", "2h", "dedup_ttl", 7200),
    ("dlq_max_size", "5", "dlq_max", 5),
    ("circuit_breaker", "5,30s", "breaker", (5, 30)),
    ("enable_metrics", "true", "metrics", True),
    ("enable_health", "true", "health", True),
    ("enable_monitoring", "true", "monitoring", True),
    ("redis_password", "pw", "store", "redis://:pw@localhost:6379/0"),
]


class TestNames:
    @pytest.mark.parametrize(("alias", "text", "option", "value"), ALIASES)
    def test_an_alias_works_in_every_layer(
        self, write: WriteYaml, alias: str, text: str, option: str, value: object
    ) -> None:
        assert getattr(given_arguments(**{alias: text}), option) == value
        assert getattr(given_variables(**{alias.upper(): text}), option) == value
        assert getattr(load(file=write(f"{alias}: '{text}'"), environ={}).config, option) == value

    @pytest.mark.parametrize("option", Config.__struct_fields__)
    def test_every_option_is_known_by_its_own_name(self, option: str) -> None:
        assert load({option: getattr(Config(), option)}, environ={}).config == Config()

    @pytest.mark.parametrize(
        ("text", "option", "value"),
        [
            ("schedule: {leader_lock_ttl: 12s}", "leader_lease_ttl", 12),
            ("schedule: {leader_renew_interval: 2s}", "leader_renew_interval", 2),
            ("schedule: {scan_interval: 5s}", "scan_interval", 5),
            ("scheduler: {id: scheduler-1}", "scheduler_id", "scheduler-1"),
            ("scheduler: {scheduler_id: scheduler-1}", "scheduler_id", "scheduler-1"),
            ("scheduler: {load_balance_strategy: least_task}", "load_balance_strategy", "least_tasks"),
            ("leader: {lease_ttl: 20s}", "leader_lease_ttl", 20),
            ("leader: {renew_interval: 1s}", "leader_renew_interval", 1),
            ("worker: {id: worker-1}", "scheduler_id", "worker-1"),
            ("worker: {count: 2}", "worker_count", 2),
            ("worker: {concurrency: 2}", "concurrency", 2),
            ("worker: {heartbeat_interval: 5s}", "renew_interval", 5),
            ("worker: {heartbeat_timeout: 60s}", "lease_ttl", 60),
            ("worker: {max_concurrent_tasks: 2}", "concurrency", 2),
            ("worker: {queues: [a, b]}", "queues", ("a", "b")),
            ("worker: {worker_timeout: 1m}", "worker_timeout", 60),
            ("task: {default_timeout: 1m}", "timeout", 60),
            ("task: {timeout: 1m}", "timeout", 60),
            ("task: {max_retry: 5}", "max_retry", 5),
            ("task: {retry_delay: 5s}", "retry", ExponentialBackoff(base=5, multiplier=2)),
            ("redis: {addr: 'cache:6380'}", "store", "redis://cache:6380/0"),
            ("redis: {redis_addr: 'cache:6380'}", "store", "redis://cache:6380/0"),
            ("redis: {pool_size: 5}", "pool_size", 5),
            ("dedup: {enabled: false}", "dedup", False),
            ("deduplication: {enabled: true, default_ttl: 2h}", "dedup_ttl", 7200),
            ("dlq: {enabled: false}", "dlq", False),
            ("dlq: {max_size: 5}", "dlq_max", 5),
            ("dlq: false", "dlq", False),
            ("lock: {ttl: 15m}", "lock_ttl", 900),
            ("lock: {prefix: 'x:'}", "lock_prefix", "x:"),
            ("metrics: {enabled: true}", "metrics", True),
            ("metrics: {port: 9100}", "metrics_port", 9100),
            ("metrics: true", "metrics", True),
            ("health: {port: 8081}", "health_port", 8081),
            ("health: {check_interval: 5s}", "health_check_interval", 5),
            ("monitoring: {enabled: true}", "monitoring", True),
            ("monitoring: {metrics_interval: 5s}", "metrics_interval", 5),
            ("log: {level: DEBUG}", "log_level", "debug"),
        ],
    )
    def test_sections(self, write: WriteYaml, text: str, option: str, value: object) -> None:
        loaded = load(file=write(text), environ={})
        assert getattr(loaded.config, option) == value
        assert loaded.origins[option] == "file tickwork.yaml"

    def test_sections_may_be_given_as_arguments_too(self) -> None:
        assert given_arguments(dlq={"enabled": False, "max_size": 5}) == Config(dlq=False, dlq_max=5)

    def test_a_whole_nested_file(self, write: WriteYaml) -> None:
        file = write(
            """
            schedule:
              leader_lock_ttl: 10s
              leader_renew_interval: 3s
              scan_interval: 5s
            worker:
              heartbeat_interval: 10s
              heartbeat_timeout: 30s
              max_concurrent_tasks: 10
            task:
              default_timeout: 5m
              max_retry: 3
              retry_delay: 10s
              backoff_rate: 2.0
            redis:
              addr: "localhost:6379"
              password: ""
              db: 0
              pool_size: 10
            """
        )
        assert load(file=file, environ={}).config == Config(
            scan_interval=5, retry=ExponentialBackoff(base=10), store="redis://localhost:6379/0"
        )

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"concurency": 1}, "concurency: unknown option (argument); did you mean 'concurrency'?"),
            (
                {"worker": {"concurency": 1}},
                "worker.concurency: unknown option (argument); did you mean 'concurrency'?",
            ),
            ({"qqq": 1}, "qqq: unknown option (argument)"),
            ({"config": 1}, "config: unknown option (argument)"),
        ],
    )
    def test_an_unknown_argument_names_the_nearest(self, arguments: dict[str, Any], message: str) -> None:
        assert refusal(arguments).startswith(message)

    def test_an_unknown_variable_names_the_nearest(self) -> None:
        assert refusal(environ={"TICKWORK_LEASE_TLL": "5"}) == (
            "lease_tll: unknown option (environment TICKWORK_LEASE_TLL); did you mean 'lease_ttl'?"
        )

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("lease-ttl: 5", r"^lease-ttl: unknown option \(file tickwork\.yaml\); did you mean 'lease_ttl'\?$"),
            ("redis: {timeout: 5}", r"^redis\.timeout: unknown option \(file tickwork\.yaml\)"),
            ("1: 5", r"^1: unknown option \(file tickwork\.yaml\)"),
            ("worker: 5", r"^worker: is a section \(file tickwork\.yaml\); write options such as id below it$"),
            ("task: [a]", r"^task: is a section"),
        ],
    )
    def test_an_unknown_key_of_a_file_is_refused(self, write: WriteYaml, text: str, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            load(file=write(text), environ={})

    def test_an_option_is_not_known_in_a_foreign_section(self, write: WriteYaml) -> None:
        with pytest.raises(ConfigError, match=r"^redis\.concurrency: unknown option"):
            load(file=write("redis: {concurrency: 5}"), environ={})

    @pytest.mark.parametrize(
        "variables",
        [
            {
                "SERVICE_HOST": "10.0.0.1",
                "SERVICE_PORT": "8080",
                "SERVICE_PORT_HTTP": "8080",
                "PORT": "tcp://10.0.0.1:80",
            },
            {"PORT_8080_TCP": "tcp://10.0.0.1:80", "PORT_8080_TCP_ADDR": "10.0.0.1", "PORT_8080_TCP_PROTO": "tcp"},
            {"REDIS_SERVICE_HOST": "10.0.0.1", "REDIS_PORT": "tcp://10.0.0.1:6379", "REDIS_PORT_6379_TCP_PORT": "6379"},
            {"METRICS_PORT": "tcp://10.0.0.1:9090"},
        ],
    )
    def test_what_kubernetes_says_of_a_service_is_no_option(self, variables: dict[str, str]) -> None:
        assert given_variables(**variables) == Config()

    def test_a_port_of_ours_is_an_option(self) -> None:
        assert given_variables(METRICS_PORT="9191").metrics_port == 9191
        assert "redis_port: unknown option" in refusal(environ={"TICKWORK_REDIS_PORT": "6379"})


class TestNumbers:
    @pytest.mark.parametrize(("value", "number"), [(5, 5), ("5", 5), (" 5 ", 5), (5.0, 5), ("+5", 5), (1e6, 1_000_000)])
    def test_whole(self, value: object, number: int) -> None:
        concurrency = given_arguments(concurrency=value).concurrency
        assert concurrency == number
        assert type(concurrency) is int

    @pytest.mark.parametrize("value", ["ten", "5.5", 5.5, "0x10", "", "1_000", True, math.nan, math.inf, [5], "٥"])
    def test_not_whole(self, value: object) -> None:
        assert refusal({"concurrency": value}) == f"concurrency: {value!r} (argument) is not a whole number"

    def test_the_error_names_key_value_origin_and_what_is_expected(self, write: WriteYaml) -> None:
        assert refusal(environ={"TICKWORK_CONCURRENCY": "ten"}) == (
            "concurrency: 'ten' (environment TICKWORK_CONCURRENCY) is not a whole number"
        )
        with pytest.raises(ConfigError) as caught:
            load(file=write("worker: {max_concurrent_tasks: ten}"), environ={})
        assert str(caught.value) == ("worker.max_concurrent_tasks: 'ten' (file tickwork.yaml) is not a whole number")

    @pytest.mark.parametrize(
        ("value", "seconds"),
        [
            (10, 10),
            (0.5, 0.5),
            ("10", 10),
            ("1.5", 1.5),
            ("10s", 10),
            ("5m", 300),
            ("1h30m", 5400),
            ("1h 30m", 5400),
            ("250ms", 0.25),
            ("9ms", 0.009),
            ("1m500ms", 60.5),
            ("7d", 604_800),
            ("1d2h3m4s5ms", 93_784.005),
            ("1.5h", 5400),
            (" 10 s ", 10),
            (timedelta(minutes=2), 120),
        ],
    )
    def test_durations(self, value: object, seconds: float) -> None:
        assert given_arguments(retention=value).retention == seconds

    @pytest.mark.parametrize(
        "value",
        ["", " ", "s", "10x", "10 minutes", "30m1h", "5s5s", "-5s", "1:30", "5M", True, None, [10], math.nan, math.inf],
    )
    def test_not_durations(self, value: object) -> None:
        assert refusal({"retention": value}).startswith(f"retention: {value!r} (argument) is not a duration")

    @pytest.mark.parametrize("value", [True, 1, "true", "1", "yes", "on", "TRUE", " On "])
    def test_on(self, value: object) -> None:
        assert given_arguments(metrics=value).metrics is True

    @pytest.mark.parametrize("value", [False, 0, "false", "0", "no", "off", "False"])
    def test_off(self, value: object) -> None:
        assert given_arguments(dedup=value).dedup is False

    @pytest.mark.parametrize("value", ["maybe", 2, 1.0, "", None, []])
    def test_neither_on_nor_off(self, value: object) -> None:
        assert refusal({"metrics": value}) == f"metrics: {value!r} (argument) is not true or false"

    @pytest.mark.parametrize("name", ["timeout", "backoff_rate", "rate_limit"])
    def test_a_text_that_is_far_too_long_is_refused_at_once(self, name: str) -> None:
        for text in ("1" * 100_000 + "x", "1" * 100_000 + "e", "1 " * 50_000):
            started = time.process_time()
            refused = refusal({name: f"{text},1" if name == "rate_limit" else text})
            assert time.process_time() - started < 1
            assert f"has {len(text)} characters; a number or a duration has 64 at most" in refused


class TestTextAndLists:
    @pytest.mark.parametrize("value", [5, True, ["a"], None])
    def test_text_is_never_guessed(self, value: object) -> None:
        assert refusal({"namespace": value}) == f"namespace: {value!r} (argument) is not text; put it in quotes"

    @pytest.mark.parametrize("value", ["a,b", "a, b, ,", ["a", "b"], ("a", "b"), '["a", "b"]'])
    def test_lists(self, value: object) -> None:
        assert given_arguments(queues=value).queues == ("a", "b")

    def test_a_list_of_one(self) -> None:
        assert given_variables(TASK_TYPES="send_email").task_types == ("send_email",)

    def test_not_a_list(self) -> None:
        assert refusal({"queues": 5}) == "queues: 5 (argument) is not a list, such as a, b"
        assert refusal({"queues": {"a": "b"}}) == "queues: {'a': 'b'} (argument) is not a list, such as a, b"
        assert refusal({"queues": ["a", 5]}) == (
            "queues: ['a', 5] (argument) cannot be used: [1]: 5 is not text; put it in quotes"
        )
        assert "is not JSON" in refusal({"queues": '["a"'})

    @pytest.mark.parametrize(
        "value",
        ["zone=eu,gpu=yes", "zone = eu, gpu = yes, ", {"zone": "eu", "gpu": "yes"}, '{"zone": "eu", "gpu": "yes"}'],
    )
    def test_labels(self, value: object) -> None:
        assert given_arguments(labels=value).labels == {"zone": "eu", "gpu": "yes"}

    @pytest.mark.parametrize("value", ["zone", "zone=eu,gpu", {"gpu": True}, {1: "a"}, ["zone"], 5])
    def test_not_labels(self, value: object) -> None:
        assert refusal({"labels": value}).endswith("is not a mapping of text to text, such as zone=eu, gpu=yes")

    @pytest.mark.parametrize("value", ["mail=assigned, other=pull", {"mail": "assigned", "other": "pull"}])
    def test_dispatch_by_queue(self, value: object) -> None:
        assert given_arguments(dispatch=value).dispatch == {"mail": "assigned", "other": "pull"}

    def test_dispatch_for_all(self) -> None:
        assert given_variables(DISPATCH=" assigned ").dispatch == "assigned"
        assert "is not text" in refusal({"dispatch": 5})


class TestLimits:
    @pytest.mark.parametrize(
        "value",
        [
            "1000,2000",
            " 1000 , 2000",
            (1000, 2000),
            [1000, 2000],
            {"enabled": True, "rate": 1000, "burst": 2000},
            "[1000, 2000]",
        ],
    )
    def test_rate_limit(self, value: object) -> None:
        assert given_arguments(rate_limit=value).rate_limit == (1000.0, 2000)

    @pytest.mark.parametrize("value", ["5,30s", (5, 30), {"max_failures": 5, "timeout": "30s"}])
    def test_breaker(self, value: object) -> None:
        assert given_arguments(breaker=value).breaker == (5, 30.0)

    @pytest.mark.parametrize("value", [False, "off", " False ", {"enabled": False}, {"enabled": "no", "rate": 5}])
    def test_switched_off(self, value: object) -> None:
        loaded = load({"rate_limit": value}, environ={"TICKWORK_RATE_LIMIT": "10,20"})
        assert loaded.config.rate_limit is None

    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            (1000, "is not rate and burst, such as [10, 20]; false switches it off"),
            ("1000", "is not rate and burst, such as [10, 20]; false switches it off"),
            ([1, 2, 3], "is not rate and burst, such as [10, 20]; false switches it off"),
            (True, "is not rate and burst, such as [10, 20]; false switches it off"),
            ("10,x", "cannot be used: burst: 'x' is not a whole number"),
            ({"rate": 10}, "cannot be used: burst: None is not a whole number"),
            ({"rate": 10, "bust": 20}, "has an unknown field 'bust'; did you mean 'burst'?"),
            ({"enabled": "maybe"}, "cannot be used: enabled: 'maybe' is not true or false"),
        ],
    )
    def test_not_a_rate_limit(self, value: object, reason: str) -> None:
        assert refusal({"rate_limit": value}) == f"rate_limit: {value!r} (argument) {reason}"


class TestRetry:
    @pytest.mark.parametrize(
        ("value", "strategy"),
        [
            (FixedDelay(5), FixedDelay(5)),
            ({"type": "fixed", "seconds": "5s"}, FixedDelay(5)),
            ({"type": "exponential", "base": "1s", "max": "1h", "multiplier": 3}, ExponentialBackoff(1, 3600, 3)),
            (
                {"base_delay": "2s", "max_delay": "1h", "multiplier": 2.0, "jitter": False},
                ExponentialBackoff(2, 3600, 2, False),
            ),
            ({"type": "linear", "base": "1s", "increment": "30s", "max": "5m"}, LinearBackoff(1, 30, 300)),
            ({"type": "custom", "delays": ["1s", "5s", 30, "1m"]}, CustomRetry([1, 5, 30, 60])),
            ({"type": "policy", "retry_delay": "5s"}, ExponentialBackoff(5)),
            ('{"type": "custom", "delays": "1s, 5s"}', CustomRetry([1, 5])),
        ],
    )
    def test_every_strategy_can_be_written(self, value: object, strategy: object) -> None:
        assert given_arguments(retry=value).retry == strategy

    @pytest.mark.parametrize(
        ("value", "reason"),
        [
            ("fast", "is not a mapping of fields to values"),
            (None, "is not a mapping of fields to values"),
            ({"type": "quick"}, "is of unknown type 'quick'; known are exponential, fixed, linear, custom, policy"),
            ({"type": "fixed"}, "cannot be used: Missing required argument 'seconds'"),
            ({"type": "fixed", "second": 5}, "has an unknown field 'second'; did you mean 'seconds'?"),
            ({"type": "fixed", "seconds": "soon"}, "cannot be used: seconds: 'soon' is not a duration"),
            ({"type": "fixed", "seconds": -5}, "cannot be used: FixedDelay.seconds: -5.0 is not a number of seconds"),
            (
                {"base": 1, "multiplier": 0},
                "cannot be used: ExponentialBackoff.multiplier: 0.0 is not a number above 0",
            ),
            ({"type": "custom", "delays": []}, "cannot be used: CustomRetry.delays: () is not a list of seconds"),
        ],
    )
    def test_what_is_no_strategy(self, value: object, reason: str) -> None:
        assert refusal({"retry": value}).startswith(f"retry: {value!r} (argument) {reason}")

    def test_delay_and_rate_build_an_exponential_one(self, write: WriteYaml) -> None:
        file = write("task: {retry_delay: 10s}")
        loaded = load(file=file, environ={"TICKWORK_BACKOFF_RATE": "3"})
        assert loaded.config.retry == ExponentialBackoff(base=10, max=3600, multiplier=3, jitter=True)
        assert loaded.origins["retry"] == "file tickwork.yaml, environment TICKWORK_BACKOFF_RATE"

    def test_a_rate_alone_keeps_the_usual_delay(self) -> None:
        assert given_arguments(backoff_rate=3).retry == ExponentialBackoff(base=10, multiplier=3)

    def test_a_strategy_and_its_parts_replace_each_other_by_layer(self) -> None:
        fixed = {"type": "fixed", "seconds": 5}
        assert load({"retry": fixed}, environ={"TICKWORK_RETRY_DELAY": "7"}).config.retry == FixedDelay(5)
        environ = {"TICKWORK_RETRY": '{"type": "fixed", "seconds": 5}'}
        assert load({"retry_delay": 7}, environ=environ).config.retry == ExponentialBackoff(base=7)
        assert refusal({"retry": fixed, "retry_delay": 7}) == (
            "retry (argument) and retry_delay (argument) exclude each other"
        )

    def test_bad_parts_name_their_origin(self) -> None:
        assert refusal({"backoff_rate": 0}) == (
            "backoff_rate (argument): RetryPolicy.backoff_rate: 0.0 is not a number above 0"
        )

    def test_a_policy_brings_its_number_of_retries(self) -> None:
        loaded = load({"retry": RetryPolicy(max_retries=7)}, environ={"TICKWORK_MAX_RETRY": "5"})
        assert (loaded.config.max_retry, loaded.config.retry) == (7, ExponentialBackoff(10))
        assert loaded.origins["max_retry"] == "argument"
        assert load(config=Config(retry=RetryPolicy(max_retries=7))).config.max_retry == 7

    def test_a_number_of_retries_is_not_given_beside_a_policy(self) -> None:
        assert refusal({"retry": RetryPolicy(max_retries=7), "max_retry": 5}) == (
            "max_retry (argument) and retry (argument), a policy that says the number of retries too, "
            "exclude each other"
        )

    def test_a_number_of_retries_given_above_a_policy_wins(self) -> None:
        environ = {"TICKWORK_RETRY": '{"type": "policy", "max_retries": 7}'}
        assert load({"max_retry": 5}, environ=environ).config.max_retry == 5
        assert load(environ=environ).config.max_retry == 7


class TestDurations:
    @pytest.mark.parametrize("name", [name for name, kind in get_type_hints(Config).items() if kind is float])
    def test_a_duration_in_code_may_be_a_timedelta(self, name: str) -> None:
        given = {"renew_interval": 0.001, "leader_renew_interval": 0.001, name: timedelta(seconds=1.5)}
        assert getattr(load(given).config, name) == 1.5
        assert getattr(load(config=Config(**given)).config, name) == 1.5  # type: ignore[arg-type]


class TestRedisParts:
    @pytest.mark.parametrize(
        ("parts", "url"),
        [
            ({"redis_addr": "cache:6380"}, "redis://cache:6380/0"),
            ({"redis_addr": "cache"}, "redis://cache/0"),
            ({"redis_addr": "[::1]:6379"}, "redis://[::1]:6379/0"),
            ({"redis_db": 3}, "redis://localhost:6379/3"),
            ({"redis_addr": "c:1", "redis_db": "2", "redis_pass": "pw"}, "redis://:pw@c:1/2"),
            ({"redis_addr": "c:1", "redis_pass": ""}, "redis://c:1/0"),
            ({"redis_pass_file": "/run/a b"}, "redis://localhost:6379/0?password_file=/run/a%20b"),
            ({"redis": {"addr": "c:1", "password_file": "pw"}}, "redis://c:1/0?password_file=pw"),
        ],
    )
    def test_build_the_store(self, parts: dict[str, Any], url: str) -> None:
        assert given_arguments(**parts).store == url

    def test_any_password_survives_the_url(self) -> None:
        password = "p@ss:/?#[]%&= word"
        url = urlsplit(given_arguments(redis_addr="cache:6380", redis_pass=password).store or "")
        assert unquote(url.password or "") == password
        assert (url.hostname, url.port, url.path) == ("cache", 6380, "/0")

    def test_come_together_from_several_layers(self, write: WriteYaml) -> None:
        loaded = load(file=write("redis: {addr: 'c:1', db: 2}"), environ={"TICKWORK_REDIS_PASS": "pw"})
        assert loaded.config.store == "redis://:pw@c:1/2"
        assert loaded.origins["store"] == "file tickwork.yaml, environment TICKWORK_REDIS_PASS"

    def test_a_store_from_a_higher_layer_replaces_them(self, write: WriteYaml) -> None:
        loaded = load(file=write("redis: {addr: 'c:1', db: 2}"), environ={"TICKWORK_STORE": "memory://"})
        assert loaded.config.store == "memory://"
        assert loaded.origins["store"] == "environment TICKWORK_STORE"

    def test_an_address_from_a_higher_layer_replaces_a_store(self, write: WriteYaml) -> None:
        assert load({"redis_addr": "c:1"}, file=write("store: memory://"), environ={}).config.store == "redis://c:1/0"

    @pytest.mark.parametrize(
        ("arguments", "environ"),
        [
            ({"store": "redis://h/0", "redis_addr": "c:1"}, {}),
            ({"store": "redis://h/0", "redis_pass": "pw"}, {}),
            ({"redis_pass": "pw"}, {"TICKWORK_STORE": "redis://h/0"}),
            ({"redis_pass": "pw"}, {"TICKWORK_STORE": "redis://h/0", "TICKWORK_REDIS_ADDR": "c:1"}),
        ],
    )
    def test_are_never_silently_dropped(self, arguments: dict[str, Any], environ: dict[str, str]) -> None:
        text = refusal(arguments, environ)
        assert text.startswith("store (")
        assert text.endswith("exclude each other")

    def test_a_password_and_a_file_for_it_are_one_too_many(self) -> None:
        assert "there is a password and a file for it" in refusal({"redis_pass": "pw", "redis_pass_file": "file"})

    @pytest.mark.parametrize("secret", ["TICKWORK_REDIS_PASS", "TICKWORK_REDIS_PASS_FILE"])
    def test_a_password_is_not_sent_where_a_file_says_that_merely_lies_there(
        self, secret: str, write: WriteYaml, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = write("redis: {addr: 'evil.example:1'}")
        monkeypatch.chdir(path.parent)
        with pytest.raises(
            ConfigError, match=r"is not sent to redis\.addr of a file tickwork\.yaml that was only found"
        ):
            load(environ={secret: "pw"}, default_file=True)
        assert "evil.example" in str(load(environ={secret: "pw"}, file=path).config.store), "this one was named"
        safe = {secret: "pw", "TICKWORK_REDIS_ADDR": "c:1"}
        assert str(load(environ=safe, default_file=True).config.store).partition("?")[0].endswith("c:1/0")
        write("redis: {addr: 'c:1', password: pw}")
        assert load(environ={}, default_file=True).config.store == "redis://:pw@c:1/0"

    @pytest.mark.parametrize(
        "text", ["redis: {pass_file: /etc/passwd}", "store: redis://evil?pass%77ord_file=/etc/passwd"]
    )
    def test_a_file_that_merely_lies_there_cannot_have_another_one_sent(
        self, text: str, write: WriteYaml, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = write(text)
        monkeypatch.chdir(path.parent)
        with pytest.raises(
            ConfigError, match="was only found cannot name a password file; name the file with --config"
        ):
            load(environ={}, default_file=True)
        assert "etc" in str(load(environ={"TICKWORK_CONFIG": str(path)}).config.store)

    @pytest.mark.parametrize(
        "text",
        [
            "secret_file: /etc/hostname",
            "endpoints: {evil: {url: 'https://evil.example', headers: {X: {secret: 'file:/etc/hostname'}}}}",
            "endpoints: {evil: {url: 'https://evil.example', tls: {cert: /etc/hostname}}}",
            "grpc_targets: {evil: {address: 'https://evil.example', metadata: {x: {secret: 'file:/etc/hostname'}}}}",
        ],
    )
    def test_nor_can_it_name_a_secret_for_calls(
        self, text: str, write: WriteYaml, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = write(text)
        monkeypatch.chdir(path.parent)
        with pytest.raises(ConfigError, match=r"a file tickwork\.yaml that was only found cannot name"):
            load(environ={}, default_file=True)
        load(environ={}, file=path)

    @pytest.mark.parametrize("address", ["redis://cache:6379", "u:pw@cache", "a,b", "cache:port", "", "a b", "c/0"])
    def test_an_address_is_host_and_port(self, address: str) -> None:
        text = refusal({"redis_addr": address})
        assert text.endswith("is not host:port; a whole URL goes into store")
        assert "pw" not in text

    @pytest.mark.parametrize(("number", "reason"), [(-1, "redis_db -1 is negative"), ("x", "is not a whole number")])
    def test_a_database_is_a_number(self, number: object, reason: str) -> None:
        assert reason in refusal({"redis_db": number})


class TestAlertRules:
    RULES = (
        AlertRule("high_task_failure_rate", "task_failure_rate", 0.1, ">", 300),
        AlertRule("no_online_workers", "workers_online", 1, "<", 60),
    )

    def test_in_a_file(self, write: WriteYaml) -> None:
        file = write(
            """
            monitoring:
              alert_rules:
                - {name: high_task_failure_rate, metric: task_failure_rate, operator: ">", threshold: 0.1, duration: 5m}
                - {name: no_online_workers, metric: workers_online, operator: "<", threshold: 1, duration: 1m}
            """
        )
        assert load(file=file, environ={}).config.alert_rules == self.RULES

    def test_as_objects(self) -> None:
        assert given_arguments(alert_rules=list(self.RULES)).alert_rules == self.RULES

    def test_in_a_variable(self) -> None:
        text = msgspec.json.encode(self.RULES).decode()
        assert given_variables(ALERT_RULES=text).alert_rules == self.RULES

    @pytest.mark.parametrize(
        ("rule", "reason"),
        [
            ({"name": "a", "metric": "m", "threshold": 1}, "Missing required argument 'operator'"),
            ({"name": "a", "metrik": "m"}, "has an unknown field 'metrik'; did you mean 'metric'?"),
            ({"type": "fixed"}, "has an unknown field 'type'"),
            ({"name": "a", "metric": "m", "threshold": "many", "operator": ">"}, "threshold: 'many' is not a number"),
            ({"name": "a", "metric": "task_runing", "threshold": 1, "operator": ">"}, "did you mean 'tasks_running'?"),
            ({"name": "a", "metric": "m", "threshold": 1, "operator": "!="}, "hold the operator '!='"),
            ({"name": "a", "metric": "m", "threshold": 1, "operator": ">", "duration": -1}, "hold the duration -1"),
            ({"name": "", "metric": "m", "threshold": 1, "operator": ">"}, "must each have a name of its own"),
            ("a", "is not a mapping"),
        ],
    )
    def test_bad_rules(self, rule: object, reason: str) -> None:
        text = refusal({"alert_rules": [rule]})
        assert text.startswith("alert_rules: ")
        assert reason in text

    def test_two_of_one_name(self) -> None:
        assert "must each have a name of its own" in refusal({"alert_rules": [self.RULES[0], self.RULES[0]]})

    @pytest.mark.parametrize("threshold", [math.nan, math.inf, -math.inf])
    def test_a_threshold_is_a_number(self, threshold: float) -> None:
        with pytest.raises(ConfigError, match=f"hold the threshold {threshold}"):
            validate(Config(alert_rules=(AlertRule("a", "m", threshold, ">"),)))


class Codec:
    def encode(self, value: Any) -> bytes:
        raise NotImplementedError

    def decode(self, data: bytes) -> Any:
        raise NotImplementedError


class TestLiveObjects:
    def test_a_logger_can_be_given_as_an_argument(self) -> None:
        logger = logging.getLogger("shop")
        assert given_arguments(logger=logger).logger is logger
        assert given_arguments(custom_logger=logger).logger is logger

    def test_a_logger_is_what_can_be_called_as_one(self) -> None:
        assert "is not a logger" in refusal({"logger": object()})
        assert "is not a logger" in refusal({"logger": type("Half", (), {"warning": print})()})

    def test_but_not_written(self) -> None:
        text = "is not a logger, which has the methods debug, info, warning, error; it can only be given as an argument"
        assert refusal(environ={"TICKWORK_LOGGER": "shop"}).endswith(text)
        assert refusal({"logger": "shop"}).endswith(text)

    def test_a_serializer_is_an_object_or_a_name(self) -> None:
        codec = Codec()
        assert given_arguments(serializer=codec).serializer is codec
        assert given_variables(SERIALIZER="msgpack").serializer == "msgpack"

    @pytest.mark.parametrize("value", [5, None, [], b"json"])
    def test_anything_else_is_no_serializer(self, value: object) -> None:
        assert "is not a serializer, nor the name of one (json, msgpack, protobuf)" in refusal({"serializer": value})

    @pytest.mark.parametrize("name", ["json", "msgpack", "protobuf"])
    def test_every_serializer_that_is_built_in_can_be_the_default(self, name: str) -> None:
        assert Scheduler("memory://", serializer=name).registry.default_serializer.name == name

    def test_an_unknown_name_is_refused(self) -> None:
        assert (
            refusal({"serializer": "pickle"}) == "serializer: 'pickle' (argument) is not one of json, msgpack, protobuf"
        )


NOT_NEGATIVE = ("max_retry", "retention_max", "max_tasks_per_child", "metrics_port", "health_port", "server_port")
AT_LEAST_ONE = [
    "worker_count",
    "concurrency",
    "weight",
    "batch_size",
    "call_limit",
    "max_losses",
    "dlq_max",
    "partitions",
    "payload_limit",
    "pool_size",
]
ABOVE_ZERO = [
    "lease_ttl",
    "renew_interval",
    "leader_lease_ttl",
    "leader_renew_interval",
    "scan_interval",
    "dedup_ttl",
    "cleanup_interval",
    "metrics_interval",
    "health_check_interval",
    "worker_timeout",
    "lock_ttl",
    "store_timeout",
    "submit_timeout",
]
FROM_ZERO = ["timeout", "retention", "shutdown_timeout", "version_grace"]


class TestValidation:
    @pytest.mark.parametrize("option", AT_LEAST_ONE)
    def test_counts_start_at_one(self, option: str) -> None:
        assert getattr(given_arguments(**{option: 1}), option) == 1
        assert f"{option}: 0 (argument) must be 1 or more" in refusal({option: 0})

    @pytest.mark.parametrize("option", NOT_NEGATIVE)
    def test_other_counts_start_at_zero(self, option: str) -> None:
        assert getattr(given_arguments(**{option: 0}), option) == 0
        assert f"{option}: -1 (argument) must be 0 or more" in refusal({option: -1})

    @pytest.mark.parametrize("option", ["metrics_port", "health_port"])
    def test_ports_end_at_65535(self, option: str) -> None:
        assert getattr(given_arguments(**{option: 65_535}), option) == 65_535
        assert f"{option}: 65536 (argument) must be 65535 or less" in refusal({option: 65_536})

    @pytest.mark.parametrize("option", ABOVE_ZERO)
    def test_periods_are_above_zero(self, option: str) -> None:
        assert f"{option}: 0.0 (argument) must be above 0" in refusal({option: 0})

    @pytest.mark.parametrize("option", FROM_ZERO)
    def test_waits_may_be_zero(self, option: str) -> None:
        assert getattr(given_arguments(**{option: 0}), option) == 0

    @pytest.mark.parametrize("option", ABOVE_ZERO + FROM_ZERO)
    @pytest.mark.parametrize("bad", [-1.0, 1e12, math.inf, math.nan])
    def test_no_duration_is_negative_or_endless(self, option: str, bad: float) -> None:
        with pytest.raises(ConfigError, match=rf"(?m)^{option}: {bad!r} must be from 0 to".replace("+", r"\+")):
            validate(msgspec.structs.replace(Config(), **{option: bad}))

    def test_every_number_has_a_rule(self) -> None:
        numbers = {name for name, value in msgspec.structs.asdict(Config()).items() if type(value) in (int, float)}
        ruled = {*AT_LEAST_ONE, *ABOVE_ZERO, *FROM_ZERO, *NOT_NEGATIVE}
        assert numbers | {"lock_ttl", "store_timeout"} == ruled

    @pytest.mark.parametrize("lease_ttl", [5, 10])
    def test_a_lease_outlives_its_renewal(self, lease_ttl: int) -> None:
        assert refusal({"lease_ttl": lease_ttl}) == (
            f"lease_ttl: {float(lease_ttl)} (argument) must be longer than renew_interval (10)"
        )

    def test_a_tight_lease_is_a_warning(self) -> None:
        loaded = load({"lease_ttl": 14.9}, environ={})
        assert loaded.warnings == ["lease_ttl: 14.9 (argument) should be 1.5 times renew_interval (10) or more"]
        assert load({"lease_ttl": 15}, environ={}).warnings == []

    def test_a_leader_renews_well_before_its_lease_ends(self) -> None:
        assert refusal({"leader_renew_interval": 5}) == (
            "leader_renew_interval: 5.0 (argument) must be less than half of leader_lease_ttl (10)"
        )
        assert given_arguments(leader_renew_interval=4.9).leader_renew_interval == 4.9

    @pytest.mark.parametrize("name", ["a", "shop:prod.v1_x-2", "x" * 64])
    def test_namespaces(self, name: str) -> None:
        assert given_arguments(namespace=name).namespace == name

    @pytest.mark.parametrize("name", ["", "x" * 65, "a b", "{a}", "a/b", "a@b", "naïve", "a\n"])
    def test_bad_namespaces(self, name: str) -> None:
        assert refusal({"namespace": name}) == (
            f"namespace: {name!r} (argument) must be 1 to 64 letters, digits and . _ : -"
        )

    @pytest.mark.parametrize("option", ["queues", "task_types"])
    @pytest.mark.parametrize("name", ["", "x" * 129, "a b", "{a}", "a/b", "a\n"])
    def test_bad_names_in_lists(self, option: str, name: str) -> None:
        assert f"holds {shown(name)}; a name is 1 to 128" in refusal({option: ["fine", name]})

    @pytest.mark.parametrize("option", ["queues", "task_types"])
    @pytest.mark.parametrize("names", [[], ["a", "a"]])
    def test_lists_hold_each_name_once(self, option: str, names: list[str]) -> None:
        assert "must hold each name once, and at least one" in refusal({option: names})

    def test_good_names(self) -> None:
        names = ("mail", "a@b.c:d_e-f", "x" * 128)
        assert given_arguments(queues=names, task_types=names, scheduler_id=names[1]).queues == names

    @pytest.mark.parametrize("name", ["", "a b", "x" * 129])
    def test_bad_ids(self, name: str) -> None:
        assert refusal({"scheduler_id": name}).startswith(f"scheduler_id: {shown(name)} (argument) holds {shown(name)}")

    @pytest.mark.parametrize("address", ["a\nb", "\x1b[2J", "x" * 501, "\ud800"])
    def test_bad_addresses(self, address: str) -> None:
        assert refusal({"address": address}).endswith("must be a text of at most 500 characters in one line")

    @pytest.mark.parametrize("value", ["push", {"mail": "push"}, {"a b": "pull"}, {}])
    def test_bad_dispatch(self, value: object) -> None:
        assert refusal({"dispatch": value}).startswith(f"dispatch: {value!r} (argument) ")

    @pytest.mark.parametrize(
        ("option", "good"),
        [
            ("durability", ["memory", "disk", "replicated"]),
            ("log_level", ["debug", "info", "warning", "error", "critical"]),
        ],
    )
    def test_choices(self, option: str, good: list[str]) -> None:
        for value in good:
            assert getattr(given_arguments(**{option: value}), option) == value
        assert refusal({option: "other"}) == f"{option}: 'other' (argument) is not one of {', '.join(good)}"

    def test_a_strategy_is_a_name_since_programs_register_their_own(self) -> None:
        assert given_arguments(load_balance_strategy="nearest").load_balance_strategy == "nearest"
        text = refusal({"load_balance_strategy": "the nearest"})
        assert text == "load_balance_strategy: 'the nearest' (argument) must be the name of a strategy"

    def test_spellings_are_unified_wherever_a_config_is_made(self) -> None:
        assert Config(load_balance_strategy="least_task").load_balance_strategy == "least_tasks"
        assert Config(log_level="WARNING").log_level == "warning"

    def test_time_zones(self) -> None:
        assert given_arguments(timezone="Asia/Shanghai").timezone == "Asia/Shanghai"
        text = refusal({"timezone": "Asia/Shangai"})
        assert text.startswith("timezone: 'Asia/Shangai' (argument) cannot be used: ")
        assert "Asia/Shanghai" in text

    @pytest.mark.parametrize("zone", ["", "Europe", "../etc/passwd", "/etc/passwd", "a\0b"])
    def test_odd_time_zones(self, zone: str) -> None:
        assert refusal({"timezone": zone}).startswith("timezone: ")

    @pytest.mark.parametrize("pair", [(0, 5), (-1, 5), (5, 0), (math.nan, 5), (math.inf, 5)])
    def test_bad_rate_limits(self, pair: tuple[float, int]) -> None:
        with pytest.raises(ConfigError, match=r"^rate_limit: .* must be a rate above 0 and a burst of 1 or more"):
            validate(Config(rate_limit=pair))

    @pytest.mark.parametrize("pair", [(0, 5), (5, 0), (5, -1), (5, math.nan), (5, math.inf)])
    def test_bad_breakers(self, pair: tuple[int, float]) -> None:
        with pytest.raises(ConfigError, match=r"^breaker: .* must be 1 failure or more and a timeout above 0"):
            validate(Config(breaker=pair))

    def test_bounds_themselves_are_fine(self) -> None:
        rules = (AlertRule("a", "tasks_running", 1, ">", 0), AlertRule("b", "tasks_running", 1, ">", LONGEST_WAIT))
        config = Config(rate_limit=(0.1, 1), breaker=(1, LONGEST_WAIT), retention=LONGEST_WAIT, alert_rules=rules)
        assert validate(config) == validate(Config(breaker=(1, 0.5))) == []

    def test_an_empty_store_is_refused(self) -> None:
        assert refusal({"store": ""}) == "store: '' (argument) must be a URL"

    def test_all_problems_are_told_at_once(self) -> None:
        lines = refusal({"concurrency": 0, "namespace": "a b"}, {"TICKWORK_METRICS_PORT": "70000"}).splitlines()
        assert len(lines) == 3
        assert "metrics_port: 70000 (environment TICKWORK_METRICS_PORT) must be 65535 or less" in lines

    def test_origins_may_be_left_out(self) -> None:
        with pytest.raises(ConfigError, match=r"^concurrency: 0 must be 1 or more$"):
            validate(Config(concurrency=0))
        assert validate(Config(lease_ttl=12)) == ["lease_ttl: 12 should be 1.5 times renew_interval (10) or more"]


class TestSecrets:
    @pytest.mark.parametrize(
        ("url", "masked"),
        [
            ("redis://:secret@h:6379/0", "redis://:***@h:6379/0"),
            ("rediss://user:secret@h:6379/0", "rediss://user:***@h:6379/0"),
            ("redis://:s%40%2Fcret@h/0", "redis://:***@h/0"),
            ("redis://:s@c/r#e?t@h/0", "redis://:***@h/0"),
            ("redis://:s:e:cret@h/0", "redis://:***@h/0"),
            ("redis://secret@h/0", "redis://***@h/0"),
            ("redis+sentinel://:secret@a:1,b:2/service/0", "redis+sentinel://:***@a:1,b:2/service/0"),
            ("redis+cluster://:secret@a,:secret@b", "redis+cluster://:***@b"),
            ("redis://h/0?password=secret&db=1", "redis://h/0?password=***&db=1"),
            ("redis://h/0?db=1&sentinel_p%61ssword=secret", "redis://h/0?db=1&sentinel_p%61ssword=***"),
            ("redis://h/0?password=se@cret", "redis://***@cret"),
            ("redis://[::1:secret@h", "redis://[:***@h"),
            ("redis//:secret@h", "redis//:***@h"),
            ("user:secret@h", "user:***@h"),
            (":a://secret@h", ":***@h"),
            ("redis://h:6379/0", "redis://h:6379/0"),
            ("redis://h/0?client_name=shop", "redis://h/0?client_name=shop"),
            ("sqlite:////srv/me@work:x/tick.db", "sqlite:////srv/me@work:x/tick.db"),
            ("sqlite:///a?key=b.db", "sqlite:///a?key=b.db"),
            ("memory://", "memory://"),
            ("redis://h/0?password=a?b=c", "redis://h/0?password=***"),
            ("redis://h/0?a?password=b", "redis://h/0?a?password=***"),
            ("h&password=b", "h&password=***"),
            ("redis://user@h?password_file=pw", "redis://user@h?password_file=pw"),
            ("redis://user:secret@h?password_file=pw", "redis://user:***@h?password_file=pw"),
            ("redis://secret@h?sentinel_password_file=pw", "redis://***@h?sentinel_password_file=pw"),
            ("redis://h?password_file=/run/pw&ssl_keyfile=a.key", "redis://h?password_file=/run/pw&ssl_keyfile=a.key"),
            ("", ""),
        ],
    )
    def test_masking(self, url: str, masked: str) -> None:
        assert mask_url(url) == masked

    @given(st.text(min_size=1))
    def test_no_password_is_ever_seen(self, password: str) -> None:
        assert mask_url(f"redis://user:{password}@h:6379/0") == "redis://user:***@h:6379/0"
        assert mask_url(f"redis://:{quote(password, safe='')}@h:6379/0") == "redis://:***@h:6379/0"

    @pytest.mark.parametrize("text", ["?", "&", "a", "@", "?a=", "://", ":"])
    def test_masking_takes_as_long_as_the_url_is(self, text: str) -> None:
        started = time.process_time()
        mask_url(text * 200_000)
        assert time.process_time() - started < 2

    def test_a_config_does_not_show_its_password(self) -> None:
        text = repr(Config(store="redis://:hunter2@h/0"))
        assert "hunter2" not in text
        assert "store='redis://:***@h/0'" in text
        assert "concurrency=10" in text

    def test_errors_do_not_show_passwords(self, write: WriteYaml) -> None:
        assert refusal({"redis_pass": 1234}) == "redis_pass: *** (argument) is not text; put it in quotes"
        assert (
            refusal({"store": {"url": "redis://:secret@h"}}) == "store: a dict (argument) is not text; put it in quotes"
        )
        assert "secret" not in refusal({"redis_pasword": "secret"})
        for text in ("redis: {password: 01234}", "redis: redis://:01234@h", "pasword: 01234", "a: '01234"):
            with pytest.raises(ConfigError) as caught:
                load(file=write(text), environ={})
            assert "1234" not in str(caught.value)


class TestDescribe:
    def test_names_every_value_and_where_it_came_from(self) -> None:
        environ = {"TICKWORK_STORE": "redis://:secret@h/0", "TICKWORK_LABELS": "zone=eu"}
        rows = {name: (value, origin) for name, value, origin in describe(load({"queues": "a,b"}, environ=environ))}
        assert list(rows) == list(Config.__struct_fields__)
        assert rows["store"] == ("redis://:***@h/0", "environment TICKWORK_STORE")
        assert rows["labels"] == ({"zone": "eu"}, "environment TICKWORK_LABELS")
        assert rows["queues"] == (("a", "b"), "argument")
        assert rows["metrics"] == (False, "default")
        assert rows["task_types"] == (None, "default")
        assert rows["timezone"] == ("UTC", "default")

    def test_live_objects_are_named_by_their_class(self) -> None:
        loaded = load({"serializer": Codec(), "logger": logging.getLogger("shop")}, environ={})
        rows = {name: value for name, value, _ in describe(loaded)}
        assert (rows["serializer"], rows["logger"]) == ("Codec", "Logger")

    def test_what_is_shown_can_be_set(self) -> None:
        config = Config(
            queues=("a", "b"),
            labels={"zone": "eu"},
            retry=CustomRetry([1, 2]),
            rate_limit=(10, 20),
            breaker=(5, 30),
            dispatch={"a": "assigned"},
            alert_rules=(AlertRule("a", "tasks_running", 1, ">", 60),),
            metrics=True,
            timeout=1.5,
        )
        shown = describe(Loaded(config, dict.fromkeys(Config.__struct_fields__, "default"), []))
        environ = {f"TICKWORK_{name.upper()}": in_words(value) for name, value, _ in shown if value is not None}
        assert load(environ=environ).config == config


@pytest.mark.parametrize("depth", [65, 3000, 100_000])
@pytest.mark.parametrize("shape", ["a: {0}1{1}", "a:\n {2}1"])
def test_a_file_that_is_nested_too_deep(write: Callable[[str], Path], depth: int, shape: str) -> None:
    """Reading it would end the process, which no handler could prevent."""
    text = shape.format("[" * depth, "]" * depth, "- " * depth)
    with pytest.raises(ConfigError, match=r"^file tickwork\.yaml, line \d: it is nested more than 64 levels deep$"):
        load(file=str(write(text)), environ={})


def test_json_that_is_nested_too_deep() -> None:
    with pytest.raises(ConfigError, match="it is nested more than 64 levels deep") as caught:
        load(environ={"TICKWORK_RETRY": "[" * 100_000})
    assert len(str(caught.value)) < 400


def test_a_retry_strategy_of_ones_own() -> None:
    class Newer(FixedDelay, frozen=True, tag="newer"): ...

    with pytest.raises(ConfigError, match="is none of ExponentialBackoff, FixedDelay"):
        load({"retry": Newer(1.0)})


@pytest.fixture(params=["libyaml", "pure"])
def yaml_flavour(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    written._loader.cache_clear()
    if request.param == "pure":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    yield
    written._loader.cache_clear()


@pytest.mark.usefixtures("yaml_flavour")
class TestYaml:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("22:30", "22:30"),
            ("on", "on"),
            ("off", "off"),
            ("yes", "yes"),
            ("No", "No"),
            ("y", "y"),
            ("true", True),
            ("FALSE", False),
            ("010", 10),
            ("0o10", 8),
            ("0x1F", 31),
            ("-5", -5),
            ("+5", 5),
            ("1_000", "1_000"),
            ("0b11", "0b11"),
            ("1e3", 1000.0),
            ("1.5", 1.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("-.INF", -math.inf),
            ("2025-01-01", "2025-01-01"),
            ("2025-01-01T00:00:00Z", "2025-01-01T00:00:00Z"),
            ("~", None),
            ("null", None),
            ("", None),
            ("'null'", "null"),
            ("'5'", "5"),
            ("=", "="),
            ("[1, 'a', {b: c}]", [1, "a", {"b": "c"}]),
            ("é", "é"),
        ],
    )
    def test_is_read_by_the_1_2_rules(self, write: WriteYaml, text: str, value: object) -> None:
        read = written.read_yaml(write(f"key: {text}\n"))["key"]
        assert read == value
        assert type(read) is type(value)

    def test_not_a_number(self, write: WriteYaml) -> None:
        assert math.isnan(written.read_yaml(write("key: .nan"))["key"])

    def test_anchors_work(self, write: WriteYaml) -> None:
        assert written.read_yaml(write("a: &a {b: 1}\nc: *a")) == {"a": {"b": 1}, "c": {"b": 1}}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a: 1\nb: 2\na: 3\n", r"tickwork\.yaml, line 3: 'a' is given twice, first on line 1$"),
            ("a: 1\n'a': 3\n", r"line 2: 'a' is given twice, first on line 1$"),
            ("x:\n  a: 1\n  b: 2\n  a: 3\n", r"line 4: 'a' is given twice, first on line 2$"),
            ("l: [{a: 1, a: 1}]", r"line 1: 'a' is given twice"),
            ("1: a\n01: b\n", r"line 2: 1 is given twice"),
            ("a: 1\nb: [1\nc: 2\n", r"tickwork\.yaml, line [234]: "),
            ("a: !!python/object/apply:os.system [x]", r"line 1: could not determine a constructor"),
            ("a: 1\n---\nb: 1\n", r"line 2: but found another document"),
            ("? [1]\n: 2\n", r"unhashable key"),
            ("- a\n- b\n", r"holds a list; expected lines such as `name: value`"),
            ("text", r"holds a str; expected"),
            ("a: !!bool maybe", r"cannot be read as YAML"),
            ("a: !!int ten", r"cannot be read as YAML"),
            ("a: !!timestamp never", r"cannot be read as YAML"),
        ],
    )
    def test_mistakes_are_refused(self, write: WriteYaml, text: str, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            written.read_yaml(write(text))

    @pytest.mark.parametrize("data", [b"a: \xe9", b"\x00", b"\xff\xfe\x00"])
    def test_what_is_not_text_is_refused(self, tmp_path: Path, data: bytes) -> None:
        path = tmp_path / "bytes.yaml"
        path.write_bytes(data)
        with pytest.raises(ConfigError, match=r"bytes\.yaml: cannot be read as YAML"):
            written.read_yaml(path)

    @pytest.mark.parametrize("text", ["", "\n", "# only a remark\n", "---\n", "~"])
    def test_an_empty_file_sets_nothing(self, write: WriteYaml, text: str) -> None:
        assert written.read_yaml(write(text)) == {}

    def test_a_directory_is_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"^file "):
            written.read_yaml(tmp_path)


class TestArgumentsForTypeCheckers:
    """`Scheduler(**options)` is typed by hand; nothing may be missing there, and no type may differ."""

    NARROWER_OR_WIDER: ClassVar[dict[str, Any]] = {
        "serializer": str | Serializer,
        "durability": Durability,
        "when_cut_off": WhenCutOff,
        "webhooks": Sequence[WebhookLike],
        "endpoints": Mapping[str, Endpoint | Mapping[str, Any]],
        "grpc_targets": Mapping[str, GrpcTarget | Mapping[str, Any]],
    }

    @staticmethod
    def hints(kind: type) -> dict[str, Any]:
        return get_type_hints(kind, localns={"AlertRule": AlertRule})

    def wider(self, kind: Any) -> Any:
        """What may be given for a value of a type: a timedelta for seconds, any sequence or mapping."""
        if kind == Seconds:
            return Duration
        arguments = tuple(self.wider(each) for each in get_args(kind))
        if get_origin(kind) is tuple and arguments[-1] is Ellipsis:
            return Sequence[arguments[0]]  # type: ignore[valid-type]
        if get_origin(kind) is tuple:
            return tuple[arguments]  # type: ignore[valid-type]
        if get_origin(kind) is dict:
            return Mapping[arguments[0], arguments[1]]  # type: ignore[valid-type]
        return functools.reduce(operator.or_, arguments) if get_origin(kind) in (Union, UnionType) else kind

    def test_every_field_of_config_may_be_given(self) -> None:
        fields = get_type_hints(Config, include_extras=True)
        assert self.hints(options.ConfigOptions) == {
            name: self.NARROWER_OR_WIDER.get(name) or self.wider(kind) for name, kind in fields.items()
        }

    def test_choices_are_those_that_are_accepted(self) -> None:
        for name in ("durability", "when_cut_off"):
            assert {*get_args(self.NARROWER_OR_WIDER[name])} == {*CHOICES[name]}

    def test_other_names_have_the_types_of_what_they_mean(self) -> None:
        known, given = self.hints(options.ConfigOptions), self.hints(options.ChangedOptions)
        parts = given.keys() - known.keys() - OTHER_NAMES.keys()
        assert parts == config.readers.READERS.keys() - known.keys()
        assert given.keys() - known.keys() == parts | OTHER_NAMES.keys()
        for other, meant in OTHER_NAMES.items():
            assert given[other] == given[meant], other

    def test_a_scheduler_takes_all_but_its_own_parameters(self) -> None:
        own = {"store", "namespace"}
        assert own < inspect.signature(Scheduler).parameters.keys()
        changed = self.hints(options.ChangedOptions)
        assert self.hints(options.SchedulerOptions) == {name: changed[name] for name in changed.keys() - own}

    def test_a_config_holds_seconds_and_tuples_whatever_it_was_given(self) -> None:
        made = Config(timeout=timedelta(minutes=1), queues=["a", "b"], breaker=(3, timedelta(seconds=5)))
        assert (made.timeout, made.queues, made.breaker) == (60.0, ("a", "b"), (3, 5.0))
        rule = AlertRule("late", "queue_age_seconds", 5, ">", timedelta(seconds=3))
        assert rule.duration == 3.0
        app = Scheduler("memory://", config=Config(lease_ttl=timedelta(minutes=2), alert_rules=[rule]))
        assert (app.config.lease_ttl, app.config.alert_rules) == (120.0, (rule,))


def test_importing_does_not_load_pyyaml() -> None:
    code = "import sys, tickwork.config; print('yaml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
