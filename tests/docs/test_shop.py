"""The order service of `examples/shop`: its own tests, and all its processes as its page starts them, on two stores."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.docs.recipes import Program, ask, ask_until, command, workers_left
from tests.support.redis_store import empty_redis

pytestmark = pytest.mark.timeout(300)
SHOP = ROOT / "examples" / "shop"
PAGE = SHOP / "README.md"
DONE = {"charge": "success", "ship": "success", "mail": "success"}
CANCELLED = {"charge": "cancelled", "ship": "cancelled", "mail": "cancelled"}


def test_the_tests_of_the_shop_pass() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(SHOP)],
        cwd=ROOT, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr


def order(number: int, card: str, item: str = "lamp") -> dict[str, object]:
    return {"id": number, "item": item, "price": "49.90", "card": card, "email": "ada@example.org"}


@pytest.mark.skipif(sys.platform == "win32", reason="its processes fork, and are ended by SIGTERM")
@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_the_shop_at_work(kind: str, tmp_path: Path) -> None:
    shutil.copytree(SHOP, tmp_path / "shop")
    store = f"sqlite:///{tmp_path}/shop.db" if kind == "sqlite" else empty_redis()
    starts = ("uvicorn", "tickwork up", "tickwork worker", "flask")
    uvicorn, up, worker, flask = (command(PAGE, start) for start in starts)
    with (
        Program(uvicorn, tmp_path, store) as web,
        Program(up, tmp_path, store) as node,
        Program(worker, tmp_path, store) as workers,
        Program(flask, tmp_path, store) as caller,
    ):
        base = web.wait_for(r"running on (http://127\.0\.0\.1:\d+)")
        take_orders(base)
        export(base)
        invoices = caller.wait_for(r"Running on (http://127\.0\.0\.1:\d+)") + "/invoices"
        assert ask(f"{invoices}/1").startswith("invoice 1: 49.90 EUR")
        assert ask(f"{invoices}/3") == 409
        for program in (web, node, workers, caller):
            program.end()
    assert "charge-3 failed on attempt 1: CardDeclined('no money')" in node.said + workers.said
    assert workers_left(store) == 0


def take_orders(base: str) -> None:
    steps = ["charge-1", "ship-1", "mail-1"]
    assert ask(f"{base}/orders", "POST", order(1, "good")) == steps
    assert ask(f"{base}/orders", "POST", order(1, "good")) == steps
    ask(f"{base}/orders", "POST", order(2, "busy"))
    ask(f"{base}/orders", "POST", order(3, "declined"))
    ask(f"{base}/orders?pay_in=3600", "POST", order(4, "good"))
    assert ask(f"{base}/orders", "POST", {"id": "five"}) == 422
    assert ask(f"{base}/orders/4/why") == "It waits for charge-4, ship-4."
    assert ask(f"{base}/orders/4", "DELETE")["charge"] == "cancelled"
    assert ask(f"{base}/orders/5", "DELETE") == 404
    for number in (1, 2):
        assert ask_until(f"{base}/orders/{number}", "'mail': 'success'") == DONE
    assert ask_until(f"{base}/orders/3", "'mail': 'cancelled'") == CANCELLED | {"charge": "dead"}
    assert ask_until(f"{base}/orders/4", "'mail': 'cancelled'") == CANCELLED
    assert ask(f"{base}/orders/1", "DELETE") == 409


def export(base: str) -> None:
    task = ask(f"{base}/exports?rows=100", "POST")
    ask_until(f"{base}/exports/{task}", "'note': 'row ")
    done = {"status": "success", "progress": 1.0, "note": "row 100 of 100"}
    assert ask_until(f"{base}/exports/{task}", "success") == done
