"""Time limits of an event loop that is held up: what has arrived in time counts, however late it is read."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from tickwork.errors import StoreUnavailable
from tickwork.store.bounded import StoreTimeLimit, SubmitLimit
from tickwork.store.redis.net.link import Link
from tickwork.timeouts import FEW, NOTABLE, DueCall, TimeLimit, of_late

LIMIT = 0.02
HELD = 0.05  # more than the limit
LONG = 2 * NOTABLE


class Peer:
    """Answers one byte when asked to; `ask` waits for it on the event loop."""

    def __init__(self) -> None:
        self._here, self._there = socket.socketpair()
        self._here.setblocking(False)

    def answer(self, held: float = HELD) -> None:
        """And hold the loop up."""
        self._there.send(b"x")
        time.sleep(held)

    async def ask(self) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self._here, 1)

    async def ask_by_tasks(self) -> bytes:
        """As a store of several partitions does."""
        (found,) = await asyncio.gather(asyncio.ensure_future(self.ask()))
        return found

    def close(self) -> None:
        self._here.close()
        self._there.close()


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.close()


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    factory = pytest.importorskip("uvloop").new_event_loop if request.param == "uvloop" else None

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(work)

    return run


Run = Callable[[Coroutine[Any, Any, Any]], Any]
WAYS = ["ask", "ask_by_tasks"]


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_that_is_read_in_the_pass_in_which_the_time_is_over(run: Run, peer: Peer, way: str) -> None:
    async def work() -> bytes:
        with TimeLimit(LIMIT):
            asyncio.get_running_loop().call_later(LIMIT / 4, peer.answer)
            found: bytes = await getattr(peer, way)()
        return found

    assert run(work()) == b"x"


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_that_comes_after_the_loop_has_last_looked(run: Run, peer: Peer, way: str) -> None:
    """What holds the loop up is due in the same pass as the end of the time, and goes first."""

    async def work() -> bytes:
        loop = asyncio.get_running_loop()
        loop.call_later(LIMIT / 2, peer.answer)
        with TimeLimit(LIMIT):
            loop.call_soon(time.sleep, HELD)
            found: bytes = await getattr(peer, way)()
        return found

    assert run(work()) == b"x"


def test_several_answers_need_the_time_that_was_lost(run: Run, peer: Peer) -> None:
    """The second one comes only after the first was read, from a peer that answers at once."""
    other = Peer()

    async def work(limit: TimeLimit) -> bytes:
        loop = asyncio.get_running_loop()
        with limit:
            loop.call_later(LIMIT / 4, peer.answer, 2 * LONG)
            first = await peer.ask()
            loop.call_later(LIMIT, other.answer, 0)
            return first + await other.ask()

    assert run(work(StoreTimeLimit(LONG, "redis://x"))) == b"xx"
    assert run(work(TimeLimit(LONG, makes_up=True))) == b"xx"
    with pytest.raises(TimeoutError):
        run(work(TimeLimit(LONG)))
    other.close()


def test_a_peer_that_does_not_answer(run: Run, peer: Peer) -> None:
    async def work() -> float:
        limit = TimeLimit(LIMIT)
        with pytest.raises(TimeoutError), limit:
            await peer.ask()
        assert limit.expired
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()
        return limit.late

    assert run(work()) < 10


def test_the_time_that_was_lost_is_made_up_for_once(run: Run, peer: Peer) -> None:
    """Though the loop is held up again and again, as long as it goes on."""
    held: list[float] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()

        def hold_up() -> None:
            held.append(LONG)
            time.sleep(LONG)
            again.append(loop.call_later(0.001, hold_up))

        again = [loop.call_soon(hold_up)]
        text = r"did not answer within 0.02 s \(store_timeout\); this program's"
        with pytest.raises(StoreUnavailable, match=text), StoreTimeLimit(LIMIT, "redis://x"):
            await peer.ask()
        again[-1].cancel()

    run(work())
    assert len(held) < 40


def test_who_is_cancelled_from_outside_is_cancelled(run: Run, peer: Peer) -> None:
    async def ask() -> None:
        with TimeLimit(60):
            await peer.ask()

    async def work() -> None:
        task = asyncio.ensure_future(ask())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(work())


def test_who_is_cancelled_from_outside_as_the_time_ends_is_cancelled(run: Run, peer: Peer) -> None:
    limit = TimeLimit(0)

    async def ask() -> None:
        with limit:
            await peer.ask()

    async def work() -> None:
        task = asyncio.ensure_future(ask())
        while not limit.expired:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(work())


def test_limits_inside_limits(run: Run, peer: Peer) -> None:
    async def work() -> None:
        with pytest.raises(TimeoutError), TimeLimit(60) as outer, TimeLimit(LIMIT) as inner:
            await peer.ask()
        assert (outer.expired, inner.expired) == (False, True)
        with pytest.raises(StoreUnavailable), StoreTimeLimit(LIMIT, "redis://x"), TimeLimit(60):
            await peer.ask()

    run(work())


def test_an_error_of_the_block_is_its_own() -> None:
    async def work() -> None:
        with TimeLimit(60):
            raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        asyncio.run(work())


def test_only_a_task_can_have_a_limit() -> None:
    errors: list[str] = []

    async def work() -> None:
        def call() -> None:
            try:
                with TimeLimit(1):
                    pass
            except RuntimeError as error:
                errors.append(str(error))

        asyncio.get_running_loop().call_soon(call)
        await asyncio.sleep(0)

    asyncio.run(work())
    assert errors == ["a time limit needs a task that it can cancel"]


@pytest.mark.parametrize("option", ["store_timeout", "submit_timeout"])
def test_the_error_says_that_the_loop_was_late(peer: Peer, option: str) -> None:
    """The time of a submit is not that of its last part, but what the option says."""

    async def work() -> None:
        asyncio.get_running_loop().call_later(LIMIT / 4, time.sleep, LONG + HELD)
        if option == "store_timeout":
            with StoreTimeLimit(LIMIT, "redis://x"):
                await peer.ask()
        await SubmitLimit(5, "redis://x", time.monotonic() - 5 + LIMIT).run(peer.ask)

    with pytest.raises(StoreUnavailable) as raised:
        asyncio.run(work())
    stated = {"store_timeout": "0.02", "submit_timeout": "5"}[option]
    text = f"the store redis://x did not answer within {stated} s ({option}); this program's event loop was held up, "
    assert str(raised.value).startswith(text)


def test_a_loop_that_is_hardly_late_is_not_blamed() -> None:
    assert of_late(NOTABLE / 2) == ""
    assert of_late(1.25) == "; this program's event loop was held up, and looked for the answer 1.2 s late"


def test_a_call_that_is_due_comes_after_what_has_arrived(run: Run, peer: Peer) -> None:
    order: list[str] = []

    async def work() -> None:
        loop, due = asyncio.get_running_loop(), asyncio.Event()

        def on_due() -> None:
            order.append("due")
            due.set()

        DueCall(LIMIT, on_due)
        cancelled = DueCall(LIMIT, lambda: order.append("cancelled"))
        loop.call_later(LIMIT / 4, peer.answer)
        await peer.ask_by_tasks()
        order.append("answer")
        cancelled.cancel()
        await due.wait()

    run(work())
    assert order == ["answer", "due"]


@pytest.mark.parametrize("what", [TimeLimit, DueCall])
def test_passes_that_take_long_are_few(run: Run, peer: Peer, what: type) -> None:
    """A loop that is always busy would else put off the end of a run by a dozen of them."""
    held: list[float] = []

    async def work() -> None:
        loop, due = asyncio.get_running_loop(), asyncio.Event()

        def hold_up() -> None:
            time.sleep(0.07)
            held.append(0.07)
            loop.call_soon(hold_up) if not due.is_set() else None

        loop.call_soon(hold_up)
        if what is DueCall:
            DueCall(LIMIT, due.set)
            await due.wait()
        else:
            with pytest.raises(TimeoutError), TimeLimit(LIMIT):
                await peer.ask()
            due.set()

    run(work())
    assert len(held) <= FEW + 4


def test_an_answer_at_the_end_of_a_link_is_read_however_the_loop_was_held_up(run: Run) -> None:
    """By what it has read itself in the pass in which the watch is due."""

    class Other(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            time.sleep(4 * LONG)

    def answer(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(100)
            other.sendall(b"x")
            time.sleep(LONG)  # the loop is in the hands of the other protocol by now
            connection.sendall(b"+PONG\r\n")
            connection.recv(100)

    async def work() -> Any:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(Other, sock=here)
        link = Link(2 * LONG)
        await loop.create_connection(lambda: link, *server.getsockname())
        try:
            return await link.call("PING")
        finally:
            link.cut("the test is over")
            transport.close()
            await asyncio.sleep(0.01)  # uvloop waits for its connections when it is closed

    here, other = socket.socketpair()
    with other, socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=answer, args=(server,), daemon=True)
        answering.start()
        assert run(work()) == b"PONG"
        answering.join()
