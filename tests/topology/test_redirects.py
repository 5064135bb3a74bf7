"""Servers that send callers elsewhere, or answer nonsense: followed with care, told of, and given up in time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import hiredis
import pytest

from tests.support.hostile_http import listening
from tickwork.errors import ConfigError, StoreError, StoreUnavailable
from tickwork.store.redis.net.link import pack
from tickwork.store.redis.net.target import parse
from tickwork.store.redis.net.wire import REDIRECTS_MAX, Wire
from tickwork.store.redis.scripts import Script

PASSWORD = "pa55-w0rd"


class StandIn:
    """A server that answers as a function of the command says."""

    def __init__(self, answer: Callable[[list[bytes]], bytes]) -> None:
        self._answer = answer
        self.commands: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parser = hiredis.Reader()
        while data := await reader.read(65536):
            parser.feed(data)
            while (command := parser.gets()) is not False:
                self.commands.append(command[0])
                writer.write(b"+OK\r\n" if command[0] in (b"AUTH", b"ASKING") else self._answer(command))

    @property
    def asked(self) -> int:
        """Commands but those that every connection begins with."""
        return sum(command == b"GET" for command in self.commands)


@asynccontextmanager
async def stand_in(answer: Callable[[list[bytes]], bytes]) -> AsyncIterator[StandIn]:
    server = StandIn(answer)
    async with listening(server.serve) as server.port:
        yield server


@asynccontextmanager
async def wire_to(url: str, patience: float = 0.5, timeout: float = 1.0) -> AsyncIterator[Wire]:
    wire = Wire(parse(url), 2, patience, timeout)
    try:
        yield wire
    finally:
        await wire.close()


def slots(port: int, host: str = "127.0.0.1") -> bytes:
    """The answer to CLUSTER SLOTS: one node has all."""
    return b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$%d\r\n%b\r\n:%d\r\n" % (len(host), host.encode(), port)


@pytest.mark.parametrize("word", ["ASK", "MOVED"])
async def test_two_nodes_that_send_one_to_each_other_are_given_up_in_time(word: str) -> None:
    def naming(other: Callable[[], StandIn]) -> Callable[[list[bytes]], bytes]:
        def answer(command: list[bytes]) -> bytes:
            port = other().port
            return slots(port) if command[0] == b"CLUSTER" else f"-{word} 1 127.0.0.1:{port}\r\n".encode()

        return answer

    async with stand_in(naming(lambda: there)) as here, stand_in(naming(lambda: here)) as there:
        async with wire_to(f"redis+cluster://:{PASSWORD}@127.0.0.1:{here.port}") as wire:
            started = time.monotonic()
            with pytest.raises(StoreUnavailable, match=rf"{word} 1 127\.0\.0\.1"):
                await wire.call("key", "GET", "key")
            assert time.monotonic() - started < 4
        followed_at_once = REDIRECTS_MAX + 1
        pauses = 10  # from 20 ms on, each twice as long as the last, in half a second
        assert followed_at_once < here.asked + there.asked <= followed_at_once + pauses


async def test_a_slot_that_has_moved_is_followed_without_a_pause_though_the_old_owner_names_itself() -> None:
    """A heartbeat has no time for pauses, and gossip may take seconds to reach the node that is asked for the slots."""

    def old(command: list[bytes]) -> bytes:
        return slots(here.port) if command[0] == b"CLUSTER" else b"-MOVED 1 127.0.0.1:%d\r\n" % there.port

    def new(command: list[bytes]) -> bytes:
        return slots(there.port) if command[0] == b"CLUSTER" else b"$5\r\nthere\r\n"

    async with stand_in(old) as here, stand_in(new) as there:
        async with wire_to(f"redis+cluster://127.0.0.1:{here.port}", patience=0.0) as wire:
            assert await wire.call("key", "GET", "key") == b"there"
        assert (here.asked, there.asked) == (1, 1)


async def test_a_redirect_that_ends_is_followed() -> None:
    async with stand_in(lambda _: b"$5\r\nthere\r\n") as there:

        def answer(command: list[bytes]) -> bytes:
            return slots(here.port) if command[0] == b"CLUSTER" else b"-ASK 1 127.0.0.1:%d\r\n" % there.port

        async with stand_in(answer) as here, wire_to(f"redis+cluster://127.0.0.1:{here.port}") as wire:
            assert await wire.call("key", "GET", "key") == b"there"
            assert there.commands == [b"ASKING", b"GET"]


async def test_a_node_that_has_a_slot_again_is_greeted_again() -> None:
    """Its connection stood all the time, but another node has worked on the slot meanwhile."""

    def node(own: int) -> Callable[[list[bytes]], bytes]:
        def answer(command: list[bytes]) -> bytes:
            if command[0] == b"CLUSTER":
                return slots(nodes[owner].port)
            return b"+OK\r\n" if owner == own else b"-MOVED 1 127.0.0.1:%d\r\n" % nodes[owner].port

        return answer

    script = Script("some", "return 1")
    async with stand_in(node(0)) as first, stand_in(node(1)) as second:
        nodes, owner = (first, second), 0
        async with wire_to(f"redis+cluster://127.0.0.1:{first.port}") as wire:
            wire.greeting = lambda key: pack("GET", key)
            greetings = []
            for owning in (0, 0, 1, 1, 0, 0):
                owner = owning
                await wire.script(script, "key")
                greetings.append((first.asked, second.asked))
    assert greetings == [(1, 0), (1, 0), (1, 1), (1, 1), (2, 1), (2, 1)]


@pytest.mark.parametrize("word", ["ASK", "MOVED"])
async def test_only_a_cluster_may_send_one_elsewhere(word: str) -> None:
    async with stand_in(lambda _: b"$5\r\nthere\r\n") as there:
        redirect = f"-{word} 1 127.0.0.1:{there.port}\r\n".encode()
        async with (
            stand_in(lambda _: redirect) as here,
            wire_to(f"redis://:{PASSWORD}@127.0.0.1:{here.port}") as wire,
        ):
            with pytest.raises(StoreError, match=r"is a node of a cluster: name it by redis\+cluster://"):
                await wire.call("key", "GET", "key")
        assert there.commands == [], "the password must not go there"


@pytest.mark.parametrize(
    "redirect",
    [
        "MOVED",
        "MOVED 1",
        "MOVED 1 x",
        "MOVED 1 127.0.0.1:",
        "ASK",
        "ASK 1",
        "ASK 1 h:port",
        "ASK 1 h:0",
        "ASK 1 h:99999",
    ],
)
async def test_a_redirect_that_cannot_be_read_is_like_no_answer(redirect: str) -> None:
    def answer(command: list[bytes]) -> bytes:
        return slots(here.port) if command[0] == b"CLUSTER" else f"-{redirect}\r\n".encode()

    async with stand_in(answer) as here, wire_to(f"redis+cluster://127.0.0.1:{here.port}") as wire:
        with pytest.raises(StoreUnavailable, match="a redirect that cannot be read"):
            await wire.call("key", "GET", "key")
    async with stand_in(answer) as here, wire_to(f"redis://127.0.0.1:{here.port}") as wire:
        with pytest.raises(StoreError, match="is a node of a cluster"):
            await wire.call("key", "GET", "key")


@pytest.mark.parametrize(
    "reply",
    [
        b"*1\r\n:1\r\n",
        b"*1\r\n*1\r\n:1\r\n",
        b"*1\r\n*3\r\n:0\r\n:1\r\n:2\r\n",
        b"*1\r\n*3\r\n:0\r\n:99999\r\n*2\r\n$1\r\nh\r\n$1\r\nx\r\n",
        b":1\r\n",
        b"+OK\r\n",
    ],
)
async def test_slots_that_cannot_be_read_are_like_no_answer(reply: bytes) -> None:
    async with stand_in(lambda _: reply) as here, wire_to(f"redis+cluster://127.0.0.1:{here.port}") as wire:
        with pytest.raises(StoreUnavailable, match=r"CLUSTER SLOTS.*cannot be read|no node of the cluster has slot"):
            await wire.call("key", "GET", "key")


@pytest.mark.parametrize("reply", [b":1\r\n", b"*0\r\n", b"*2\r\n$1\r\nh\r\n$1\r\nx\r\n", b"*1\r\n:1\r\n"])
async def test_sentinels_that_answer_nonsense_are_like_none(reply: bytes) -> None:
    async with stand_in(lambda _: reply) as here, wire_to(f"redis+sentinel://127.0.0.1:{here.port}/tick") as wire:
        with pytest.raises(StoreUnavailable, match="no sentinel could name the master"):
            await wire.call("key", "GET", "key")


@pytest.mark.parametrize("header", [b"*2147483647\r\n", b"%2147483647\r\n", b"~100000000\r\n"])
async def test_a_reply_that_announces_more_than_anyone_asks_for_is_given_up_at_once(header: bytes) -> None:
    async with stand_in(lambda _: header) as here, wire_to(f"redis://127.0.0.1:{here.port}", patience=0.1) as wire:
        started = time.monotonic()
        with pytest.raises(StoreUnavailable, match="announces a reply of more than"):
            await wire.call("key", "GET", "key")
        assert time.monotonic() - started < 3, "making room for it, and giving that back, takes seconds"


async def test_a_long_text_that_looks_like_such_a_reply_is_none() -> None:
    text = b"*2147483647\r\n" * 20_000
    reply = b"$%d\r\n%b\r\n" % (len(text), text)
    async with stand_in(lambda _: reply) as here, wire_to(f"redis://127.0.0.1:{here.port}") as wire:
        assert await wire.call("key", "GET", "key") == text


# --- who may be named


def hosts_told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, str(record.args)) for record in caplog.records if "names the host" in record.msg]


async def test_hosts_that_a_server_names_are_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tickwork")
    async with stand_in(lambda _: b"$5\r\nthere\r\n") as there:

        def answer(command: list[bytes]) -> bytes:
            if command[0] == b"CLUSTER":
                return slots(here.port, "localhost")
            return b"-ASK 1 127.0.0.2:%d\r\n" % there.port

        async with stand_in(answer) as here, wire_to(f"redis+cluster://127.0.0.1:{here.port}", 0.1) as wire:
            for _ in range(2):
                with pytest.raises(StoreUnavailable):
                    await wire.call("key", "GET", "key")
    found = hosts_told(caplog)
    assert [level for level, _ in found] == ["INFO", "WARNING"], "at the start it is no news, later it is"
    assert "localhost" in found[0][1]
    assert "127.0.0.2" in found[1][1]


@pytest.mark.parametrize("allowed", ["127.0.0.0/8", "127.0.0.1", "localhost,127.0.0.1", "::1/128,127.0.0.1"])
async def test_a_host_that_is_allowed_is_used(allowed: str) -> None:
    def answer(command: list[bytes]) -> bytes:
        return slots(here.port) if command[0] == b"CLUSTER" else b"$2\r\nok\r\n"

    async with (
        stand_in(answer) as here,
        wire_to(f"redis+cluster://localhost:{here.port}?allow_hosts={allowed}") as wire,
    ):
        assert await wire.call("key", "GET", "key") == b"ok"


@pytest.mark.parametrize("allowed", ["10.0.0.0/8", ".example.org", "localhost"])
async def test_a_host_that_is_not_allowed_is_refused(allowed: str) -> None:
    answers: dict[bytes, Any] = {}
    async with stand_in(lambda _: b"$5\r\nthere\r\n") as there:
        answers[b"GET"] = b"-ASK 1 127.0.0.1:%d\r\n" % there.port
        async with stand_in(lambda command: answers[command[0]]) as here:
            url = f"redis+cluster://:{PASSWORD}@localhost:{here.port}?allow_hosts={allowed}"
            answers[b"CLUSTER"] = slots(here.port, "localhost")
            async with wire_to(url) as wire:
                with pytest.raises(StoreError, match=r"names the host 127\.0\.0\.1, which allow_hosts does not list"):
                    await wire.call("key", "GET", "key")
            answers[b"CLUSTER"] = slots(there.port)
            async with wire_to(url) as wire:
                with pytest.raises(StoreError, match=r"names the host 127\.0\.0\.1, which allow_hosts does not list"):
                    await wire.call("key", "GET", "key")
        assert there.commands == [], "the password must not go there"


@pytest.mark.parametrize("allowed", ["", "a b", "10.0.0.0/99", "http://x"])
def test_hosts_that_are_not_written_well_are_refused(allowed: str) -> None:
    with pytest.raises(ConfigError, match="allow_hosts"):
        parse(f"redis+cluster://h1?allow_hosts={allowed}")
