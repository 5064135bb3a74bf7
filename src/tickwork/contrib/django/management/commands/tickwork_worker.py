"""`python manage.py tickwork_worker`: runs the Django tasks of a project."""

from __future__ import annotations

import importlib
import logging
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.utils.module_loading import autodiscover_modules

from tickwork import logs
from tickwork.contrib.django.backend import TickworkBackend
from tickwork.contrib.django.interface import task_backends
from tickwork.errors import TickworkError

ROLES = {"all": (True, True), "worker": (True, False), "scheduler": (False, True)}


class Command(BaseCommand):  # type: ignore[misc]
    help = "Run the tasks of this project until SIGTERM or Ctrl-C; a second one gives back what runs at once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--backend", default="default", help="the alias in TASKS; default: default")
        parser.add_argument("--queues", help="the queues to serve, with commas between; default: all of the backend")
        parser.add_argument(
            "--concurrency", type=int, help="how many tasks run at a time; default: 10, or as in OPTIONS"
        )
        parser.add_argument("--role", choices=list(ROLES), default="all",
                            help="run tasks and take part in leading, or one of them only; default: all")  # fmt: skip

    def handle(self, *_: Any, **options: Any) -> None:
        backend = _backend(options["backend"])
        autodiscover_modules("tasks")
        for module in backend.options.get("modules", ()):
            importlib.import_module(module)
        try:
            app = backend.app
            changed = {name: value for name in ("concurrency",) if (value := options[name]) is not None}
            if options["queues"]:
                changed["queues"] = tuple(name.strip() for name in options["queues"].split(","))
            app.configure(**changed)
        except (ImproperlyConfigured, TickworkError) as error:
            raise CommandError(str(error)) from error
        if not logging.getLogger().handlers and not logging.getLogger("tickwork").handlers:
            logs.set_up(app.config.log_level or "info")
        work, lead = ROLES[options["role"]]
        if work:
            queues, tasks = ", ".join(app.config.queues), ", ".join(app.registry.list())
            self.stderr.write(f"Tickwork on {app.url}, queues: {queues}, tasks: {tasks or 'none'}")
        try:
            app.run(work=work, lead=lead)
        except TickworkError as error:
            raise CommandError(str(error)) from error
        if app.exhausted:
            sys.exit(1)


def _backend(alias: str) -> TickworkBackend:
    if alias not in task_backends.settings:
        raise CommandError(f"TASKS has no backend {alias!r}; it has {', '.join(task_backends.settings)}")
    backend = task_backends[alias]
    if not isinstance(backend, TickworkBackend):
        raise CommandError(f"TASKS[{alias!r}] is a {type(backend).__name__}, not a TickworkBackend")
    return backend
