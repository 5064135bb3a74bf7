"""Each recipe for a web framework, as on its page: real servers and workers, asked over HTTP and ended by SIGTERM."""

from __future__ import annotations

import sys
from pathlib import Path

import django
import pytest

from tests.docs.recipes import Program, ask, ask_until, command, workers_left, write_files
from tests.support.blocking import wait_until
from tests.support.redis_store import empty_redis

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="these servers fork, and are ended by SIGTERM")
UVICORN = r"running on (http://127\.0\.0\.1:\d+)"
GUNICORN = r"Listening at: (http://127\.0\.0\.1:\d+)"


def test_fastapi_with_a_worker_of_its_own(tmp_path: Path) -> None:
    write_files("fastapi.md", tmp_path)
    store = empty_redis()
    with (
        Program(command("fastapi.md", "uvicorn"), tmp_path, store) as web,
        Program(command("fastapi.md", "tickwork up"), tmp_path, store) as worker,
    ):
        base = web.wait_for(UVICORN)
        assert ask(f"{base}/orders/7?email=ada@example.org", "POST") == {"task": "order-7"}
        assert ask(f"{base}/orders/7?email=ada@example.org", "POST") == {"task": "order-7"}
        answer = ask_until(f"{base}/tasks/order-7", "success")
        assert answer == {"status": "success", "result": "order 7 confirmed to ada@example.org"}
        assert ask(f"{base}/tasks/order-8") == 404
        web.end()
        worker.end()
        assert "Application shutdown complete" in web.said
        assert "Task scheduler stopped" in worker.said
        assert workers_left(store) == 0


def test_starlette_with_a_worker_inside(tmp_path: Path) -> None:
    write_files("starlette.md", tmp_path)
    with Program(command("starlette.md", "uvicorn"), tmp_path, "") as web:
        base = web.wait_for(UVICORN)
        task = ask(f"{base}/orders/7", "POST")["task"]
        assert ask_until(f"{base}/tasks/{task}", "success")["result"] == "order 7 confirmed"
        web.end()
        assert "Application shutdown complete" in web.said
        assert workers_left(f"sqlite:///{tmp_path}/shop.db") == 0


def test_uvicorn_with_several_processes(tmp_path: Path) -> None:
    write_files("uvicorn.md", tmp_path)
    store = empty_redis()
    with Program(command("uvicorn.md", "uvicorn"), tmp_path, store) as web:
        base = web.wait_for(UVICORN)
        web.wait_for(r"(?s)startup complete.*startup complete")
        tasks = [ask(f"{base}/orders/{number}", "POST")["task"] for number in range(5)]
        ran_by = {ask_until(f"{base}/tasks/{task}", "success")["result"] for task in tasks}
        assert web.process.pid not in ran_by
        assert workers_left(store) == 2
        web.end()
        assert web.said.count("Application shutdown complete") == 2
        assert workers_left(store) == 0


def test_flask_in_threads_of_gunicorn(tmp_path: Path) -> None:
    write_files("flask.md", tmp_path)
    store = "sqlite:///shop.db"
    with (
        Program(command("flask.md", "gunicorn"), tmp_path, store) as web,
        Program(command("flask.md", "tickwork up"), tmp_path, store) as worker,
    ):
        base = web.wait_for(GUNICORN)
        task = ask(f"{base}/orders/7", "POST")["task"]
        assert ask_until(f"{base}/tasks/{task}", "success") == {"status": "success", "result": "order 7 confirmed"}
        assert ask(f"{base}/double/21") == {"result": 42}
        assert ask(f"{base}/tasks/nothing") == 404
        web.end()
        worker.end()
        assert workers_left(f"sqlite:///{tmp_path}/shop.db") == 0


@pytest.mark.parametrize("preload", [True, False])
def test_gunicorn_with_a_worker_in_each_process(tmp_path: Path, preload: bool) -> None:
    write_files("gunicorn.md", tmp_path)
    store = empty_redis()
    words = command("gunicorn.md", "gunicorn")
    assert "--preload" in words
    with Program([word for word in words if preload or word != "--preload"], tmp_path, store) as web:
        base = web.wait_for(GUNICORN)
        tasks = [ask(base, "POST") for _ in range(5)]
        ran_by = {ask_until(f"{base}/tasks/{task}", "success").split()[1] for task in tasks}
        assert str(web.process.pid) not in ran_by
        # A process that has just been forked does not hear SIGTERM yet, and would be killed when its grace is over.
        wait_until(lambda: workers_left(store) == 2, "both processes to run a node")
        web.end()
        assert workers_left(store) == 0


def test_django_with_a_worker_of_its_own(tmp_path: Path) -> None:
    replaced = {}
    if django.VERSION < (6, 0):  # as the page says
        replaced = {"django.tasks": "django_tasks", "INSTALLED_APPS = [": 'INSTALLED_APPS = ["django_tasks", '}
    write_files("django.md", tmp_path, replaced)
    with (
        Program(command("django.md", "gunicorn"), tmp_path, "") as web,
        Program(command("django.md", "python"), tmp_path, "") as worker,
    ):
        base = web.wait_for(GUNICORN)
        task = ask(f"{base}/tasks/new/7")["task"]
        answer = ask_until(f"{base}/tasks/{task}", "SUCCESSFUL")
        assert answer == {"status": "SUCCESSFUL", "result": "order 7 confirmed", "attempts": 1}
        assert ask(f"{base}/orders/8") == {}
        assert ask(f"{base}/tasks/nothing") == 404
        worker.wait_for(r"(?s)Task completed.*Task completed")  # also the one that was enqueued on commit
        web.end()
        worker.end()
        assert "Task scheduler stopped" in worker.said
        assert workers_left(f"sqlite:///{tmp_path}/tasks.db") == 0
