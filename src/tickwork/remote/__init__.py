"""Remote workers: programs anywhere that run tasks when nodes call them over HTTP. `docs/remote-workers.md` shows how.

This is the side of the worker. It needs no store and no scheduler.
"""

from tickwork.remote.app import RemoteWorkerApp
from tickwork.remote.handlers import CallFailed, RemoteCall
from tickwork.remote.protocol import Completed, Later
from tickwork.remote.reporting import ReportRefused, report

__all__ = ["CallFailed", "Completed", "Later", "RemoteCall", "RemoteWorkerApp", "ReportRefused", "report"]
