"""Three kinds of handler: an object with a typed payload, a typed function, and a function with a plain mapping.

python examples/handlers.py
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from tickwork import Handler, PayloadError, Priority, Scheduler, TaskContext

app = Scheduler("memory://")


# --- send_email: an object, because it needs a mail server


@dataclass
class EmailPayload:
    to: str
    subject: str
    body: str = ""


@dataclass
class MailServer:
    """Stands for a connection that the program opens once."""

    sent: list[str] = field(default_factory=list)

    async def deliver(self, to: str, subject: str) -> None:
        await asyncio.sleep(0.01)
        self.sent.append(f"{subject} -> {to}")


class EmailHandler:
    def __init__(self, server: MailServer) -> None:
        self.server = server

    async def handle(self, ctx: TaskContext, payload: EmailPayload) -> str:
        ctx.logger.info("sending %r", payload.subject)
        await self.server.deliver(payload.to, payload.subject)
        return f"sent to {payload.to}"


# --- send_sms: a function; two parameters make an object with their names


@app.task(max_retry=5, timeout=30)
async def send_sms(phone: str, message: str) -> str:
    return f"{len(message)} characters to {phone}"


# --- daily_report: a mapping, where the shape is not known beforehand


@app.task
def daily_report(payload: dict[str, Any]) -> str:
    return f"{payload.get('type', 'unknown')} report with {len(payload)} settings"


async def main() -> None:
    server = MailServer()
    handler: Handler[EmailPayload] = EmailHandler(server)
    app.registry.register("send_email", handler, max_retry=5, timeout=30)

    async with app:
        print("handlers:", ", ".join(app.registry.list()))
        email = await app.submit("send_email", EmailPayload("ada@example.org", "Welcome"), priority=Priority.HIGH)
        sms = await send_sms.submit("+44 20 7946 0000", message="Your parcel is here")
        report = await app.submit("daily_report", {"type": "daily", "format": "pdf"})
        for handle in (email, sms, report):
            print(await handle.result(timeout=10))

        try:
            await app.submit("send_email", {"to": "ada@example.org", "subject": 7})
        except PayloadError as error:
            print("refused:", error)
    print("the server has:", server.sent)


if __name__ == "__main__":
    asyncio.run(main())
