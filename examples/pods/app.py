"""What every pod runs: a scheduler, a worker, and three ways to run a task: here, over HTTP, over gRPC."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec
import yaml

from tickwork import Scheduler, TaskContext

HERE = Path(__file__).parent
STOCK = os.environ.get("STOCK", "http://127.0.0.1:8101")
MAIL = os.environ.get("MAIL", "http://127.0.0.1:8102")

app = Scheduler(
    config=HERE / "tickwork.yaml",
    allow_addresses=[STOCK, MAIL],
    endpoints={"stock": {"url": f"{STOCK}/warehouses/{{payload.warehouse}}/count", "types": ["count_stock"]}},
    grpc_targets={"mail": {"address": MAIL, "types": ["send_mail"]}},
)


@app.task
async def clean_up(days: int) -> str:
    return f"removed what was older than {days} days"


@app.task
async def work(number: int, context: TaskContext) -> int:
    """Something that takes a moment."""
    await asyncio.sleep(0.2)
    return number * number


class TaskConfig(msgspec.Struct, forbid_unknown_fields=True):
    """An entry of tasks.yaml."""

    id: str
    type: str
    cron: str
    payload: dict[str, object]
    timeout: float = 300  # seconds
    max_retry: int = 3
    enabled: bool = True


def task_configs() -> list[TaskConfig]:
    return msgspec.convert(yaml.safe_load((HERE / "tasks.yaml").read_text()), list[TaskConfig])
