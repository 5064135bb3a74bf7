"""Django's task framework, by the names of Django 6, wherever it comes from."""

from __future__ import annotations

from typing import Any

import django
from django.core.exceptions import ImproperlyConfigured

if django.VERSION >= (6, 0):
    from django.tasks import base, exceptions, signals, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.utils.json import normalize_json

    InvalidTask: Any = exceptions.InvalidTask
else:
    try:
        from django_tasks import base, exceptions, signals, task_backends
        from django_tasks.backends.base import BaseTaskBackend
        from django_tasks.utils import normalize_json
    except ImportError as error:
        raise ImproperlyConfigured(
            f"Django {django.get_version()} has no task framework, which came with Django 6: install the backport, "
            "django-tasks, and put django_tasks into INSTALLED_APPS"
        ) from error

    InvalidTask = exceptions.InvalidTaskError

Task: Any = base.Task
TaskContext: Any = base.TaskContext
TaskError: Any = base.TaskError
TaskResult: Any = base.TaskResult
TaskResultStatus: Any = base.TaskResultStatus
TaskResultDoesNotExist: Any = exceptions.TaskResultDoesNotExist

__all__ = [
    "BaseTaskBackend", "InvalidTask", "Task", "TaskContext", "TaskError", "TaskResult", "TaskResultDoesNotExist",
    "TaskResultStatus", "normalize_json", "signals", "task_backends",
]  # fmt: skip
