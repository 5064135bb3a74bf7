"""Another web application, without an event loop. It waits for a result: `flask --app shop.flask_caller:web run`."""

from __future__ import annotations

from flask import Flask

from tickwork import ResultTimeout, TaskFailed

from .app import draw_invoice

web = Flask(__name__)


@web.get("/invoices/<int:order>")
def get_invoice(order: int) -> tuple[str, int]:
    try:
        return draw_invoice.sync.call(order, timeout=30), 200
    except TaskFailed as error:
        return str(error), 409
    except ResultTimeout as error:  # the task goes on; the text says what it waits for
        return str(error), 504
