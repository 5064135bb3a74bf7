"""The store and the database are named by the environment."""

from __future__ import annotations

import os
from typing import Any

import django

SECRET_KEY = "only for tests"
USE_TZ = True
INSTALLED_APPS = ["tickwork.contrib.django", "tests.integration.django_site"]
FRAMEWORK = "django.tasks"
if django.VERSION < (6, 0):
    FRAMEWORK = "django_tasks"
    INSTALLED_APPS.insert(0, FRAMEWORK)
# "file:" is a temporary database of SQLite. Unlike one in memory Django closes it.
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ.get("SITE_DB", "file:")}}
OPTIONS: dict[str, Any] = {
    "store": os.environ.get("SITE_STORE", "memory://"),
    "namespace": "site",
    "shutdown_timeout": 20,
    "modules": ["tests.integration.django_site.more"],
}
TASKS: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "tickwork.contrib.django.TickworkBackend",
        "QUEUES": ["default", "mails"],
        "OPTIONS": OPTIONS,
    },
    "immediate": {"BACKEND": f"{FRAMEWORK}.backends.immediate.ImmediateBackend"},
}
