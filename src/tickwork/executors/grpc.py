"""Tasks that are run by services in any language, over gRPC. The protocol is in `proto/`; docs/grpc-executor.md."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from tickwork.config.grpc import GrpcTarget, SecretText
from tickwork.errors import LONGEST_WAIT, Abort, ConfigError, ExecutorError
from tickwork.handlers.context import TaskContext
from tickwork.handlers.registry import Entry
from tickwork.model.info import TaskResult
from tickwork.outbound import call_headers
from tickwork.outbound.addresses import Address, Allowed
from tickwork.outbound.secrets import Secret
from tickwork.store.contract import Grant
from tickwork.texts import said, shown
from tickwork.timeouts import TimeLimit

if TYPE_CHECKING:
    from tickwork.executors.grpc_channels import Line
    from tickwork.executors.grpc_gen.executor_pb2 import ExecuteRequest

GRPC = "grpc"  # the name of the executor
NOT_INSTALLED = 'the executor grpc needs packages that are not installed here: pip install "tickwork[grpc]"'
CANCEL_TIME = 2.0  # seconds for telling a service that an attempt is over
_METADATA_NAME = re.compile(r"[a-z0-9_.-]{1,128}")
_METADATA_VALUE = re.compile(r"[ -~]{0,4096}")


class _Target:
    """A target whose settings were checked."""

    def __init__(self, name: str, settings: GrpcTarget, allowed: Allowed) -> None:
        self.name = name
        self.settings = settings
        self.address = _checked_address(settings, allowed)
        self.place = f"gRPC target {name!r} ({self.address.origin})"
        self._metadata = _checked_metadata(settings.metadata)
        self.line: Line | None = None  # while the executor is started

    def metadata(self) -> list[tuple[str, str]]:
        """With the secrets as they are in their files now, and with what goes along with every call of this run."""
        own = {
            name: value if isinstance(value, str) else value[0] + value[1].text()
            for name, value in self._metadata.items()
        }
        return list(call_headers.with_current(own).items())


class GrpcExecutor:
    """Calls `Execute` of the service that a task names as its target. Needs the extra `grpc` where tasks are run."""

    def __init__(self, targets: Mapping[str, GrpcTarget], allowed: Allowed, namespace: str) -> None:
        """Raises `ConfigError` for a target that cannot be used."""
        self._allowed = allowed
        self._namespace = namespace
        self._targets: dict[str, _Target] = {}
        self.types: dict[str, str] = {}  # task types and the targets that run them
        self._cancels: set[asyncio.Task[None]] = set()
        for name, settings in targets.items():
            try:
                self._targets[name] = _Target(name, settings, allowed)
            except ConfigError as error:
                raise ConfigError(f"grpc_targets: {name}: {error}") from None
            for kind in settings.types:
                if self.types.setdefault(kind, name) != name:
                    raise ConfigError(
                        f"grpc_targets: {name}: target {self.types[kind]!r} runs type {shown(kind)} already"
                    )

    @property
    def targets(self) -> list[str]:
        return sorted(self._targets)

    async def start(self) -> None:
        """Raises `ConfigError` if a package or a file of a certificate is missing. Connects to nobody yet."""
        try:
            from tickwork.executors.grpc_channels import Line
        except ImportError as error:
            raise ConfigError(f"{NOT_INSTALLED} ({error})") from None
        for target in self._targets.values():
            try:
                target.line = Line(target.settings, target.address, self._allowed)
            except ConfigError as error:
                raise ConfigError(f"grpc_targets: {target.name}: {error}") from None

    async def stop(self, grace: float) -> None:
        if self._cancels:
            await asyncio.wait(self._cancels, timeout=grace / 2)
        for target in self._targets.values():
            line, target.line = target.line, None
            if line is not None:
                await line.close()

    async def run(self, task: Grant, entry: Entry | None, context: TaskContext) -> TaskResult:
        target = self._chosen(task)
        request = self._request(task, context)
        size = request.ByteSize()
        if size > target.settings.request_limit:
            limit = target.settings.request_limit
            raise Abort(f"{target.place}: the request has {size:,} bytes, request_limit is {limit:,}")
        remaining = math.inf if context.remaining is None else context.remaining
        try:
            return await _call(target, request, min(target.settings.timeout, remaining))
        except asyncio.CancelledError:  # a timeout, a cancel, a lost lease, or a shutdown
            self._cancel_there(target, request)
            raise
        except TimeoutError:
            self._cancel_there(target, request)
            if target.settings.timeout < remaining:
                raise ExecutorError(f"{target.place}: no answer within {target.settings.timeout:g} s") from None
            raise ExecutorError(f"timed out after {task.spec.timeout:g} s") from None
        except (ConfigError, OSError) as error:
            raise ExecutorError(f"{target.place}: {said(str(error))}") from None

    def _chosen(self, task: Grant) -> _Target:
        name = task.spec.target or self.types.get(task.spec.type, "")
        if name not in self._targets:
            raise ExecutorError(f"no gRPC target {shown(name)} is configured here; known are {', '.join(self.targets)}")
        return self._targets[name]

    def _request(self, task: Grant, context: TaskContext) -> ExecuteRequest:
        from tickwork.executors.grpc_gen.executor_pb2 import ExecuteRequest

        spec = task.spec
        request = ExecuteRequest(
            task_id=spec.id,
            type=spec.type,
            payload=spec.payload,
            serializer=spec.serializer,
            attempt=task.attempt,
            token=context.token,
            tags=spec.tags,
            context=msgspec.json.encode(spec.context),
            idempotency_key=f"{spec.id}:{task.attempt}",
            namespace=self._namespace,
            queue=spec.queue,
        )
        if context.deadline is not None:
            request.deadline.FromDatetime(context.deadline)
        return request

    def _cancel_there(self, target: _Target, request: ExecuteRequest) -> None:
        """Beside the run, which ends now. The call itself is cancelled already."""
        if target.line is not None and target.line.has_cancel:
            cancel = asyncio.get_running_loop().create_task(_cancel(target, target.line, request))
            self._cancels.add(cancel)
            cancel.add_done_callback(self._cancels.discard)


async def _call(target: _Target, request: ExecuteRequest, limit: float) -> TaskResult:
    """Raises `TimeoutError` when there is no answer within the limit."""
    import grpc.aio

    from tickwork.executors.grpc_answers import of_response, of_status

    assert target.line is not None, "start() comes first"
    limit = min(limit, LONGEST_WAIT)
    with TimeLimit(limit) as time_limit:
        async with target.line.connection() as connection:
            left = time_limit.left
            try:
                response = await connection.stub.Execute(request, timeout=left, metadata=target.metadata())
            except grpc.aio.AioRpcError as error:
                code = error.code().name
                if code == "DEADLINE_EXCEEDED":
                    raise TimeoutError from None
                if code == "UNAVAILABLE":
                    target.line.not_reached()
                trailers = [(name, value) for name, value in error.trailing_metadata() or ()]
                raise of_status(target.place, code, error.details() or "", trailers) from None
            return of_response(target.place, response)


async def _cancel(target: _Target, line: Line, request: ExecuteRequest) -> None:
    """At best: a service that cannot be told now has seen the end of the call, or will see that nobody waits."""
    import grpc.aio

    from tickwork.executors.grpc_gen.executor_pb2 import CancelRequest

    same = {name: getattr(request, name) for name in ("task_id", "token", "idempotency_key", "attempt")}
    try:
        async with asyncio.timeout(CANCEL_TIME), line.connection() as connection:
            await connection.stub.Cancel(CancelRequest(**same), timeout=CANCEL_TIME, metadata=target.metadata())
    except grpc.aio.AioRpcError as error:
        line.has_cancel = error.code() is not grpc.StatusCode.UNIMPLEMENTED
    except (ConfigError, OSError):  # TimeoutError is an OSError
        pass


def _checked_address(settings: GrpcTarget, allowed: Allowed) -> Address:
    address = allowed.check(settings.address)
    if address.path != "/":
        raise ConfigError(f"address {shown(settings.address)} has a path, which gRPC does not know")
    if address.scheme == "http" and settings.tls != type(settings.tls)():
        raise ConfigError(f"tls goes with an address of https://, and {shown(settings.address)} is without TLS")
    for option in ("request_limit", "response_limit"):
        if not 1 <= getattr(settings, option) < 2**31:
            raise ConfigError(f"{option} must be from 1 to {2**31 - 1:,} bytes")
    if not 0 < settings.timeout <= LONGEST_WAIT:
        raise ConfigError(f"timeout must be above 0 seconds, not {settings.timeout:g}")
    return address


def _checked_metadata(given: Mapping[str, str | SecretText]) -> dict[str, str | tuple[str, Secret]]:
    metadata: dict[str, str | tuple[str, Secret]] = {}
    for name, value in given.items():
        if not _METADATA_NAME.fullmatch(name) or name.startswith("grpc-") or name.endswith("-bin"):
            raise ConfigError(
                f"metadata {shown(name)}: a name is small letters, digits and _ . -; it does not begin with grpc-, "
                "nor end with -bin"
            )
        if not _METADATA_VALUE.fullmatch(value if isinstance(value, str) else value.prefix):
            raise ConfigError(f"metadata {name!r}: a value is at most 4096 printable characters of ASCII")
        metadata[name] = value if isinstance(value, str) else (value.prefix, Secret(value.secret))
    return metadata
