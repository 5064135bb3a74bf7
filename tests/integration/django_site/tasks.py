from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import Any

import django
from django.db import connection

if django.VERSION >= (6, 0):
    from django.tasks import task
else:
    from django_tasks import task

from tickwork import Abort, FixedDelay

__all__ = ["task"]  # for the other module


class Broken(Exception):
    pass


@task
def add(a: int, b: int = 1) -> int:
    return a + b


@task()
async def add_async(a: int, b: int = 1) -> int:
    return a + b


@task(queue_name="mails", priority=7)
def send_mail(to: str) -> str:
    return f"sent to {to}"


@task
def fail(text: str) -> None:
    raise Broken(text)


@task
async def fail_async(text: str) -> None:
    raise ValueError(text)


@task(max_retry=2, retry=FixedDelay(0.01), takes_context=True)
def fail_twice(context: Any) -> list[Any]:
    if context.attempt < 3:
        raise Broken(f"attempt {context.attempt}")
    return [context.attempt, [error.exception_class_path for error in context.task_result.errors]]


@task(max_retry=5)
def give_up() -> None:
    raise Abort("it is of no use")


@task(max_retry=5, abort_on=Broken)
def fail_for_good(text: str) -> None:
    raise Broken(text)


@task(takes_context=True)
def told(context: Any, word: str) -> list[Any]:
    result = context.task_result
    return [word, result.id, str(result.status), result.kwargs, context.attempt, len(result.worker_ids)]


@task(takes_context=True)
async def told_async(context: Any, word: str) -> list[Any]:
    return [word, context.task_result.id, context.attempt]


@task
def where() -> list[Any]:
    return [os.getpid(), threading.current_thread() is threading.main_thread()]


@task
def no_json() -> object:
    return object()


@task
def query() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return id(connection.connection)


@task
async def query_async() -> int:
    from asgiref.sync import sync_to_async

    return await sync_to_async(query.func)()  # type: ignore[no-any-return]


@task
def slow(seconds: float) -> str:
    print("slow has begun", flush=True)
    time.sleep(seconds)
    return "done"


@task(timeout=0.2)
async def too_slow() -> None:
    await asyncio.sleep(60)
