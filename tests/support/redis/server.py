"""One real server process, that tests start, kill, pause and ask."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hiredis

from tests.support.redis.binaries import default_binary
from tests.support.redis.client import Client
from tests.support.redis.process import HOST, Port, Started, at_exit, end, spawn, wait_for
from tests.support.redis.tls import TlsFiles, client_context

PORT_TRIES = 5
EMPTY = '""'
_LIVE: set[RedisServer] = set()


class RedisServer(Started):
    """A server on a loopback port of its own and in a folder of its own; `with` starts and stops it.

    `options` are lines of the configuration file, by directive. The file is written once: what CONFIG REWRITE or a
    sentinel wrote into it later holds after a restart. A `folder` that is passed in outlives the server.
    """

    host = HOST

    def __init__(
        self,
        binary: Path | None = None,
        options: Mapping[str, str] | None = None,
        *,
        password: str | None = None,
        tls: TlsFiles | None = None,
        folder: Path | None = None,
        sentinel: bool = False,
    ) -> None:
        self.binary = binary or default_binary()
        self.password = password
        self.folder = folder or Path(tempfile.mkdtemp(prefix="tickwork-redis-"))
        self._options = dict(options or {})
        self._tls = tls
        self._context = None if tls is None else client_context(tls)
        self._keep_folder = folder is not None
        self._sentinel = sentinel
        self._port: Port | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._paused = False
        self._log_start = 0
        _LIVE.add(self)

    @property
    def port(self) -> int:
        if self._port is None:
            raise RuntimeError("the server has not been started: it has no port")
        return self._port.number

    @property
    def url(self) -> str:
        scheme = "redis" if self._tls is None else "rediss"
        user = "" if self.password is None else f":{self.password}@"
        return f"{scheme}://{user}{self.host}:{self.port}/0"

    @property
    def pid(self) -> int:
        return self._live_process().pid

    @property
    def running(self) -> bool:
        """Whether it can answer: started, not dead, not paused."""
        return self._process is not None and self._process.poll() is None and not self._paused

    def start(self) -> None:
        """Start, or start again on the same port and in the same folder; return once it answers."""
        if self._process is not None and self._process.poll() is None:
            raise RuntimeError(f"the server on port {self.port} runs already")
        _LIVE.add(self)
        if self._port is not None:
            self._launch()
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for attempt in range(PORT_TRIES):
            self._port = Port()
            self._write_config(self._port.number)
            try:
                self._launch()
                return
            except RuntimeError as died:
                self._port.release()
                self._port = None
                if "in use" not in str(died) or attempt == PORT_TRIES - 1:
                    raise

    def wait_up(self, timeout: float = 20) -> None:
        """Return once this very process answers and has loaded its data."""
        wait_for(self._is_up, timeout, lambda: f"an answer on port {self.port}; its log ends:\n{self.log()}")

    def kill(self, sig: int = signal.SIGKILL) -> None:
        """End the process and wait until it is gone; `start` brings it back."""
        end(self._live_process(), sig)
        self._paused = False

    def pause(self) -> None:
        """Stop it where it is, connections open: it accepts bytes and answers none."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)
        self._paused = True

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        self._paused = False

    def stop(self) -> None:
        """End it for good and leave nothing behind."""
        if self._process is not None and self._process.poll() is None:
            end(self._process)
        self._process = None
        if self._port is not None:
            self._port.release()
            self._port = None
        if not self._keep_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        _LIVE.discard(self)

    def connect(self, timeout: float = 10) -> Client:
        return Client(self.host, self.port, password=self.password, tls=self._context, timeout=timeout)

    def command(self, *args: str | bytes | int | float) -> Any:
        """Run one command on a connection of its own."""
        with self.connect() as client:
            return client.call(*args)

    def info(self, section: str = "default") -> dict[str, str]:
        return parse_info(self.command("INFO", section))

    def log(self, size: int = 4000) -> str:
        """The end of what it has logged since it was last started."""
        log = self.folder / "server.log"
        return log.read_bytes()[self._log_start :][-size:].decode(errors="replace") if log.exists() else ""

    def _live_process(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError("the server does not run")
        return self._process

    def _launch(self) -> None:
        log = self.folder / "server.log"
        self._log_start = log.stat().st_size if log.exists() else 0
        mode = ["--sentinel"] if self._sentinel else []
        self._process = spawn([str(self.binary), str(self.folder / "server.conf"), *mode], self.folder, log)
        self.wait_up()

    def _is_up(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError(f"the server ended at once; its log ends:\n{self.log()}")
        try:
            info = self.info()
        except (OSError, hiredis.HiredisError):
            return False
        return info.get("process_id") == str(self._process.pid) and info.get("loading", "0") == "0"

    def _write_config(self, port: int) -> None:
        lines = {"bind": HOST, "port": str(port), "dir": f'"{self.folder}"', "protected-mode": "no"}
        if not self._sentinel:
            # Since 7.0 a primary waits 5 s for further replicas before it begins to copy.
            lines |= {"save": "", "appendonly": "no", "repl-diskless-sync-delay": "0"}
        if self._tls is not None:
            lines |= self._tls_lines(self._tls, port)
        if self.password is not None:
            lines["requirepass"] = f'"{self.password}"'
            if not self._sentinel:
                lines["masterauth"] = f'"{self.password}"'
        lines |= self._options
        text = "".join(f"{name} {value or EMPTY}\n" for name, value in lines.items())
        (self.folder / "server.conf").write_text(text)

    @staticmethod
    def _tls_lines(files: TlsFiles, port: int) -> dict[str, str]:
        return {
            "port": "0",
            "tls-port": str(port),
            "tls-ca-cert-file": f'"{files["ca"]}"',
            "tls-cert-file": f'"{files["server_cert"]}"',
            "tls-key-file": f'"{files["server_key"]}"',
            "tls-auth-clients": "yes",
        }


def parse_info(text: bytes) -> dict[str, str]:
    """`name:value` lines, as INFO and CLUSTER INFO give them."""
    pairs = (line.partition(":") for line in text.decode().splitlines() if ":" in line)
    return {name: value for name, _, value in pairs}


def _stop_all() -> None:
    for server in list(_LIVE):
        server.stop()


at_exit(_stop_all)
