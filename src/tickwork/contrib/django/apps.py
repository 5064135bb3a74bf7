"""The application of `INSTALLED_APPS` that brings the command `tickwork_worker`."""

from django.apps import AppConfig


class TickworkConfig(AppConfig):  # type: ignore[misc]  # Django has no types of its own
    name = "tickwork.contrib.django"
    label = "tickwork"
    verbose_name = "Tickwork"
