"""A program that uses a scheduler and then forks: `python -m tests.integration.child_forks CASE URL`.

It ends with status 0 when parent and child did what they should. A child that hangs is ended by SIGALRM.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from tests.integration.apps import FAST
from tickwork import Scheduler

PATIENCE = 20  # seconds for a child


def make(url: str, **options: Any) -> Scheduler:
    app = Scheduler(url, **{**FAST, **options})

    @app.task
    async def pid() -> int:
        return os.getpid()

    @app.task
    def in_thread() -> int:
        return os.getpid()

    return app


def in_child(work: Callable[[], object]) -> int:
    """Fork; the child does its work and ends without cleaning up, as those of multiprocessing do."""
    child = os.fork()
    if child:
        return child
    signal.alarm(PATIENCE)
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def end_well(*children: int) -> None:
    for child in children:
        _, status = os.waitpid(child, 0)
        assert status == 0, f"the child ended with {os.waitstatus_to_exitcode(status)}"


def sync_calls(app: Scheduler) -> None:
    app.sync.submit("pid", id="before")

    def work() -> None:
        app.sync.submit("pid", id="child")
        assert app.sync.get_task("before").id == "before"
        end_well(in_child(lambda: app.sync.submit("pid", id="grandchild")))

    end_well(in_child(work))
    app.sync.submit("pid", id="after")
    assert app.sync.status().tasks == {"ready": 4}


def async_calls(app: Scheduler) -> None:
    asyncio.run(_submit(app, "before"))
    end_well(in_child(lambda: asyncio.run(_submit(app, "child"))))
    asyncio.run(_submit(app, "after"))
    assert asyncio.run(app.status()).tasks == {"ready": 3}


def inside_a_loop(app: Scheduler) -> None:
    async def main() -> None:
        await _submit(app, "before")
        end_well(in_child(lambda: asyncio.run(_submit(app, "child"))))
        await _submit(app, "after")
        assert (await app.status()).tasks == {"ready": 3}

    asyncio.run(main())


async def _submit(app: Scheduler, task_id: str) -> None:
    await app.submit("pid", id=task_id)


def multiprocess(app: Scheduler) -> None:
    app.sync.submit("pid", id="before")
    processes = [
        multiprocessing.get_context("fork").Process(target=_submit_one, args=(app, number)) for number in range(3)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode == 0, process.exitcode
    assert app.sync.status().tasks == {"ready": 4}


def _submit_one(app: Scheduler, number: int) -> None:
    app.sync.submit("pid", id=f"child-{number}")


def busy_threads(app: Scheduler) -> None:
    """Whatever the other threads are in the middle of at the fork must not stop the child."""
    app.sync.submit("pid", id="before")
    stopped = threading.Event()
    counts = [0, 0, 0]

    def hammer(number: int) -> None:
        while not stopped.is_set():
            app.sync.submit("pid", id=f"thread-{number}-{counts[number]}")
            counts[number] += 1

    threads = [threading.Thread(target=hammer, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    forks = 15
    for fork in range(forks):
        end_well(in_child(lambda fork=fork: [app.sync.submit("pid", id=f"child-{fork}-{n}") for n in range(3)]))  # type: ignore[misc]
    stopped.set()
    for thread in threads:
        thread.join()
    assert app.sync.status().tasks == {"ready": 1 + sum(counts) + 3 * forks}
    assert app.sync.audit() == []


def node(app: Scheduler) -> None:
    """What runs in the parent does not run in the child, which may start a node of its own."""
    app.sync.start()
    name = app.id

    def work() -> None:
        status = app.sync.status()
        assert (status.running, status.is_leader) == (False, False)
        assert app.id != name, "two processes must not share a name"
        app.sync.start()
        assert app.sync.status().running
        assert {worker.id for worker in app.sync.list_workers() if worker.lost_at is None} == {name, app.id}
        while app.sync.submit("pid").result(10) != os.getpid():
            continue
        app.sync.shutdown()

    end_well(in_child(work))
    assert app.sync.status().running
    assert {app.sync.submit("pid").result(10) for _ in range(10)} == {os.getpid()}
    assert app.sync.submit("in_thread").result(10) == os.getpid()
    app.sync.shutdown()


def named_node(app: Scheduler) -> None:
    """A child that stops using the name does no harm to the parent that has it."""
    app.sync.start()
    end_well(in_child(lambda: app.sync.shutdown()))
    assert [worker.id for worker in app.sync.list_workers()] == [app.id]
    assert app.sync.submit("pid").result(10) == os.getpid()
    app.sync.shutdown()


def lock(app: Scheduler) -> None:
    """A lock that the parent holds is not the child's, neither to rely on nor to give back."""

    def work() -> None:
        assert not mine.held
        assert mine.release() is False
        mine.__exit__(None, None, None)
        assert app.sync.lock("one").acquire(timeout=0) is False
        assert mine.acquire(timeout=0) is False

    with app.sync.lock("one") as mine:
        end_well(in_child(work))
        mine.check()
    assert app.sync.lock("one").acquire(timeout=0) is True


def parent_closes(app: Scheduler) -> None:
    """What the child was promised is kept, whatever the parent does with its own connections."""
    app.sync.submit("pid", id="before")
    read, write = os.pipe()
    opened, tell = os.pipe()

    def work() -> None:
        app.sync.submit("pid", id="first")
        os.write(tell, b"x")
        os.read(read, 1)
        for number in range(50):
            app.sync.submit("pid", id=f"child-{number}")

    child = in_child(work)
    os.read(opened, 1)
    app.sync.close()
    os.write(write, b"x")
    end_well(child)
    assert app.sync.status().tasks == {"ready": 52}
    assert app.sync.audit() == []


def tidy_end(app: Scheduler) -> None:
    """A child that ends as a program does, running all finalizers, leaves the parent and its output alone."""
    app.sync.start()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)
        app.sync.submit("pid", id="child")
        sys.exit(0)
    end_well(child)
    assert app.sync.submit("pid").result(10) == os.getpid()
    app.sync.shutdown()


def own_copy(app: Scheduler) -> None:
    """In memory each process goes on with its own copy of the tasks."""
    app.sync.submit("pid", id="before")

    def work() -> None:
        app.sync.submit("pid", id="child")
        assert app.sync.status().tasks == {"ready": 2}

    end_well(in_child(work))
    app.sync.start()
    end_well(in_child(lambda: app.sync.start()))
    assert app.sync.handle("before").id == "before"
    assert app.sync.submit("pid").result(10) == os.getpid()
    app.sync.shutdown()


def connections(app: Scheduler) -> None:
    """The child does not hold the connections of its parent open, of loops or of threads."""
    app.sync.start()
    alone = _sockets()
    for _ in range(3):
        app.sync.submit("pid")
    before = _sockets()
    assert before > alone, "a submit has a connection of its own"
    assert before
    end_well(in_child(lambda: _assert_none(before & _sockets())))
    app.sync.shutdown()


def _assert_none(found: set[str]) -> None:
    assert not found, found


def _sockets() -> set[str]:
    """The TCP connections of this process, by their inode."""
    with open("/proc/net/tcp") as file:
        tcp = {line.split()[9] for line in file.readlines()[1:]}
    ours = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # that of the listing itself
            continue
        if target.startswith("socket:["):
            ours.add(target[8:-1])
    return ours & tcp


CASES: dict[str, Callable[[Scheduler], None]] = {
    case.__name__: case
    for case in (
        sync_calls, async_calls, inside_a_loop, multiprocess, busy_threads, node, named_node, lock, parent_closes,
        tidy_end, connections, own_copy,
    )
}  # fmt: skip


def main() -> None:
    case, url = sys.argv[1:]
    options = {"scheduler_id": "the-one"} if case == "named_node" else {}
    began = time.monotonic()
    CASES[case](make(url, **options))
    print(f"ok after {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
