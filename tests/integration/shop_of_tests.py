"""An application as people write it: its scheduler is in the module, on a store that no test can reach."""

from __future__ import annotations

from tickwork import Scheduler

app = Scheduler("redis://127.0.0.1:1/0", shutdown_timeout=5)
MAILS: list[str] = []


@app.task
async def send_mail(to: str) -> None:
    MAILS.append(to)


async def sign_up(user: str) -> None:
    await send_mail.options(delay=3600).submit(user)


@app.task(run_in="process")
def double(n: int) -> int:
    return 2 * n


@app.task(run_in="process", max_retry=0)
def submit_in_child() -> None:
    send_mail.sync.submit("nobody")
