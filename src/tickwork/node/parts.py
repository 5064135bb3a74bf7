"""The duties and services that a program has added to its node."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from tickwork.config import Config
from tickwork.errors import ConfigError
from tickwork.executors.registry import Executors
from tickwork.handlers.registry import Registry
from tickwork.node.duties import Duty
from tickwork.node.services import Service
from tickwork.texts import shown
from tickwork.worker.worker import Worker

STANDARD = ("take back", "reclaim", "promote", "fire schedules", "propagate", "prune", "stand in", "webhooks", "alerts",
            "probe", "know remote workers", "check health", "statistics", "watch limits")  # fmt: skip
WHO = ("leader", "all")


class OwnWorker(NamedTuple):
    """A worker beside those of the program: with handlers, queues and slots of its own. Its id is that of the node and
    this name."""

    name: str
    registry: Registry
    executors: Executors
    config: Config
    make: Callable[..., Worker] = Worker  # with the arguments of a `Worker`


class Parts:
    """In the order in which they were added."""

    def __init__(self) -> None:
        self.duties: list[Duty] = []
        self.services: list[Service] = []
        self.workers: list[OwnWorker] = []

    def copy(self) -> Parts:
        copy = Parts()
        copy.duties, copy.services, copy.workers = [*self.duties], [*self.services], [*self.workers]
        return copy

    def add_duty(self, duty: Duty) -> None:
        if not isinstance(duty, Duty):
            raise ConfigError(f"a duty must be given as a Duty, not {shown(duty)}")
        _check(f"duty {shown(duty.name)}", duty.name, (*STANDARD, *(other.name for other in self.duties)), run=duty.run)
        if not isinstance(duty.every, int | float) or not duty.every > 0:
            raise ConfigError(f"duty {duty.name!r}: every must be a number of seconds above 0, not {shown(duty.every)}")
        if duty.who not in WHO:
            raise ConfigError(f"duty {duty.name!r}: who must be one of {', '.join(WHO)}, not {shown(duty.who)}")
        self.duties.append(duty)

    def add_service(self, service: Service) -> None:
        if not isinstance(service, Service):
            raise ConfigError(f"a service must be given as a Service, not {shown(service)}")
        functions = {"run": service.run, "start": service.start, "stop": service.stop}
        given = {name: function for name, function in functions.items() if name == "run" or function is not None}
        _check(f"service {shown(service.name)}", service.name, tuple(other.name for other in self.services), **given)
        self.services.append(service)


def _check(what: str, name: Any, taken: tuple[str, ...], **functions: Any) -> None:
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{what}: its name must be a text of at least one character")
    if name in taken:
        raise ConfigError(f"there is a {what} already")
    for key, function in functions.items():
        call = getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
        if not inspect.iscoroutinefunction(function) and not inspect.iscoroutinefunction(call):
            raise ConfigError(f"{what}: {key} must be an async function")
