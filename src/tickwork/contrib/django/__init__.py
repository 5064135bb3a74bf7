"""A backend for Django's task framework: `TASKS = {"default": {"BACKEND": "tickwork.contrib.django.TickworkBackend"}}`.

`django.tasks` is part of Django 6; for older ones the package `django-tasks` has the same interface.
"""

from tickwork.contrib.django.backend import TickworkBackend
from tickwork.contrib.django.declared import TickworkTask

__all__ = ["TickworkBackend", "TickworkTask"]
