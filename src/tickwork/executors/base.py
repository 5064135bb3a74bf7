"""What an executor is: it runs tasks, in this process or anywhere else."""

from __future__ import annotations

from typing import Protocol

from tickwork.handlers.context import TaskContext
from tickwork.handlers.registry import Entry
from tickwork.model.info import TaskResult
from tickwork.store.contract import Grant


class EndedElsewhere(Exception):
    """Raised by an executor when somebody else has ended the run, with its token: there is no outcome to hand in."""


class Executor(Protocol):
    """Runs tasks that name it: `app.executors.register("name", executor)`, then `submit(..., executor="name")`.

    It may also have `async def start(self)`, awaited before the first task, and `async def stop(self, grace: float)`,
    awaited after the last one. Both run on the event loop of the node.
    """

    async def run(self, task: Grant, entry: Entry | None, context: TaskContext) -> TaskResult | bytes | None:
        """Run one attempt of a task and return its result: a `TaskResult`, encoded JSON, or None.

        `task.spec` is what was submitted, its payload still encoded. `entry` is the handler of the type, None if this
        program has none. Any exception is a failed attempt, and `Retry`, `Abort` and `Snooze` mean what they mean in a
        handler; `ExecutorError` keeps its text without a traceback. On a timeout, a cancel, a lost lease or a shutdown
        the coroutine is cancelled: it then has two seconds to stop the work, wherever that is, and to end.
        """
