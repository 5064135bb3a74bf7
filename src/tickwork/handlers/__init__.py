"""Handlers: what their signatures say, the registry of them, their context and the options of tasks."""
