"""The backend that Django makes for an alias of `TASKS`, once in each thread, and the scheduler that they share."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from tickwork.contrib.django.declared import DECLARED, TickworkTask
from tickwork.contrib.django.interface import (
    BaseTaskBackend,
    InvalidTask,
    TaskResultDoesNotExist,
    normalize_json,
    signals,
)
from tickwork.contrib.django.results import new_result, options_of, result_of
from tickwork.contrib.django.running import Runs, handler_of
from tickwork.errors import ConfigError, TaskNotFound
from tickwork.ids import is_name
from tickwork.scheduler import Scheduler

EXTRA_OPTIONS = ("modules",)  # of the backend itself, beside those of a Scheduler
DEFAULTS = {"max_retry": 0}  # a Django task runs once, unless its project says otherwise

_schedulers: dict[str, Scheduler] = {}
_making = threading.Lock()


class TickworkBackend(BaseTaskBackend):  # type: ignore[misc]
    """Django tasks on a store of Tickwork. `OPTIONS` are those of a `Scheduler`; `store` is the one that is needed.

    `modules` of `OPTIONS` names modules with tasks that a worker imports beside the `tasks` of installed applications.
    """

    task_class = TickworkTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    @property
    def app(self) -> Scheduler:
        """The scheduler of this alias, one for the whole process. Everything that Tickwork can do is there."""
        with _making:
            app = _schedulers.get(self.alias)
            if app is None:
                app = _schedulers[self.alias] = self._make()
                for task in DECLARED.of(self.alias):
                    _register(app, task, type(self))
        return app

    def _make(self) -> Scheduler:
        options = {name: value for name, value in self.options.items() if name not in EXTRA_OPTIONS}
        try:
            app = Scheduler(**{**DEFAULTS, "queues": tuple(sorted(self.queues)) or ("default",), **options})
        except (ConfigError, TypeError) as error:
            raise ImproperlyConfigured(f'TASKS[{self.alias!r}]["OPTIONS"]: {error}') from error
        if app.config.store is None:
            raise ImproperlyConfigured(
                f'TASKS[{self.alias!r}]["OPTIONS"] names no store, so a worker could not reach the tasks: add "store", '
                "such as redis://localhost:6379/0 or sqlite:///tasks.db, or set TICKWORK_STORE"
            )
        app.use(Runs(app))
        return app

    def validate_task(self, task: Any) -> None:
        """Django calls this for every task object that is made: so a process knows which tasks it has."""
        super().validate_task(task)
        for what, name in (("path", task.module_path), ("queue", task.queue_name)):
            if not is_name(name):
                raise InvalidTask(f"the {what} {name!r} must be 1 to 128 letters, digits or ._:@- for Tickwork")
        if DECLARED.add(self.alias, task) and self.alias in _schedulers:
            _register(_schedulers[self.alias], task, type(self))

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Returns when the store has the task. Raises `TypeError` for arguments that are no JSON."""
        self.validate_task(task)
        payload = {"args": normalize_json(list(args)), "kwargs": normalize_json(dict(kwargs))}
        handle = self.app.sync.submit(task.module_path, payload, **options_of(task))
        result = new_result(task, handle.id, args, kwargs)
        signals.task_enqueued.send(type(self), task_result=result)
        return result

    async def aenqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        self.validate_task(task)
        payload = {"args": normalize_json(list(args)), "kwargs": normalize_json(dict(kwargs))}
        handle = await self.app.submit(task.module_path, payload, **options_of(task))
        result = new_result(task, handle.id, args, kwargs)
        await signals.task_enqueued.asend(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> Any:
        try:
            return result_of(self.app.sync.get_task(str(result_id)), self.alias)
        except TaskNotFound as error:
            raise TaskResultDoesNotExist(str(error)) from error

    async def aget_result(self, result_id: str) -> Any:
        try:
            return result_of(await self.app.get_task(str(result_id)), self.alias)
        except TaskNotFound as error:
            raise TaskResultDoesNotExist(str(error)) from error

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        """What `manage.py check` says of the settings."""
        found = [
            checks.Error(
                f'TASKS[{self.alias!r}]["QUEUES"]: {name!r} cannot be the name of a queue, which has 1 to 128 letters, '
                "digits or ._:@-",
                id="tickwork.E002",
            )
            for name in sorted(self.queues, key=str)
            if not isinstance(name, str) or not is_name(name)
        ]
        try:
            self.app  # noqa: B018  making it checks the options
        except ImproperlyConfigured as error:
            found.append(checks.Error(str(error), id="tickwork.E001"))
        return found


def _register(app: Scheduler, task: Any, sender: type) -> None:
    """Known to the scheduler as a handler of the type that is the path of the function."""
    path = task.module_path
    if app.registry.has(path):
        app.registry.unregister(path)
    options = task.handler_options() if isinstance(task, TickworkTask) else {}
    try:
        app.registry.register(path, handler_of(task, sender), **options)
    except ConfigError as error:
        raise InvalidTask(f"task {path}: {error}") from error


def _forget(*, setting: str, **_: Any) -> None:
    """Settings change in tests: what was made by the old ones is closed."""
    if setting == "TASKS":
        with _making:
            before = list(_schedulers.values())
            _schedulers.clear()
        for app in before:
            app.sync.close()


setting_changed.connect(_forget, dispatch_uid="tickwork.contrib.django")
