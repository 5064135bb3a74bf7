"""A small Django project: settings, one application with tasks, and its `manage.py`."""
