"""The control plane: the one place where it is decided who calls and what they may do, for HTTP, gRPC, event streams
and the dashboard alike."""

from __future__ import annotations

import asyncio
import ipaddress
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tickwork.client.client import Client
from tickwork.errors import StoreError, StoreFull, TickworkError
from tickwork.host import user_at_host
from tickwork.observe.loggers import Log
from tickwork.server.bulk import BulkRuns
from tickwork.server.callers import EVERY, LEAST, Caller, Right, Role
from tickwork.server.calls import Call
from tickwork.server.masking import Mask
from tickwork.server.operations import Operation
from tickwork.server.problems import Refused, problem_of
from tickwork.server.quotas import Quotas
from tickwork.server.sessions import Sessions
from tickwork.server.settings import Settings, is_loopback
from tickwork.server.spaces import Space
from tickwork.server.throttle import Throttle
from tickwork.server.tokens import Tokens, caller_of
from tickwork.store.contract import NotPermitted
from tickwork.texts import shown

CLOSE_WITHIN = 5.0  # seconds
STREAMS_MAX = 1000
STREAMS_OF_ONE = 300
HOPS_MAX = 20  # of a request that came through proxies
UNKNOWN = "unknown"  # in the audit log: a change that may be done

OpenSpace = Callable[[str], Client]  # the client of a namespace


class Knock(Struct, frozen=True, kw_only=True):
    """What somebody brings along to be let in. `address` is that of the other end of the connection."""

    address: str
    bearer: str | None = None
    cookie: str | None = None
    headers: Mapping[str, str] = {}  # by names in lower case; the one that names a user came once


def _unseen(error: StoreError) -> Refused:
    """Whoever was not let in yet is not told what a store says: it names hosts and files."""
    problem = problem_of(error)
    return Refused(problem.status, problem.code, "the store cannot be asked who you are: try again soon")


def _address_in(hop: str) -> str | None:
    """The address of a hop, which may have a port, and brackets if it is of version 6."""
    text = hop.strip()
    for each in (text, text.rpartition(":")[0]):
        try:
            return str(ipaddress.ip_address(each.strip("[]")))
        except ValueError:
            continue
    return None


def _result_of(error: Exception) -> str:
    """What the audit log says of a change that has failed. Only what was refused was surely not done: a store that does
    not answer may have done it, or it was done and only what it led to could not be read."""
    if isinstance(error, StoreError) and not isinstance(error, StoreFull | NotPermitted):
        return UNKNOWN
    return problem_of(error).code if isinstance(error, TickworkError) else UNKNOWN


class ControlPlane:
    def __init__(self, settings: Settings, client: Client, open_space: OpenSpace, log: Log | None = None) -> None:
        self.settings = settings
        self._open_space = open_space
        self.home = Space(client)
        self._spaces = {self.home.namespace: self.home}
        self.log = log or Log.of(client.config.logger, "server")
        self.tokens = Tokens(self.home.store, self.log)
        self.sessions = Sessions(self.home.store, self.tokens)
        self.throttle = Throttle()
        self.quotas = Quotas(settings.quota)
        self.bulk = BulkRuns()
        self._mask = Mask(settings.masked)
        self._streams: dict[str, int] = {}
        self._key: bytes | None = None
        self._owner = user_at_host()  # stands for all users of this machine

    async def key(self) -> bytes:
        """Signs what a caller has to bring back, such as previews. All servers of a store have the same."""
        if self._key is None:
            control = (await self.home.store()).control
            await control.swap("keys", "previews", None, os.urandom(32).hex())
            self._key = bytes.fromhex(await control.get("keys", "previews") or "")
        return self._key

    # --- who calls

    async def let_in(self, knock: Knock) -> Caller:
        """Who calls; raises `Refused` for somebody unknown, and if the store cannot say who it is."""
        try:
            return await self._find(knock)
        except StoreError as error:
            raise _unseen(error) from error

    async def _find(self, knock: Knock) -> Caller:
        if knock.bearer is not None:
            return await self._by_token(knock.bearer, knock)
        if knock.cookie is not None:
            caller = await self.sessions.find(knock.cookie, knock.address)
            if caller is not None:
                return caller
        caller = self._by_proxy(knock)
        if caller is not None:
            return caller
        # Whoever comes by a proxy is not somebody at this machine, even if the proxy is.
        if not self.settings.asks and is_loopback(knock.address) and not self.is_proxy(knock.address):
            return Caller(self._owner, Role.ADMIN, (EVERY,), "loopback", "", knock.address)
        raise Refused(401, "not_signed_in", "say who you are: a token in the header Authorization: Bearer TOKEN")

    async def _by_token(self, text: str, knock: Knock) -> Caller:
        """Only failures are slowed down: a token that counts gets in, whatever others at the same address do."""
        token = await self.tokens.find(text)
        if token is None:
            client = self._client_of(knock)
            self.throttle.check(client)
            self.throttle.failed(client)
            await self.refused(self.stranger(knock.address), "sign in", "", "bad_token")
            raise Refused(401, "bad_token", "this token is not known or has expired")
        await self.tokens.note_use(token)
        return caller_of(token, knock.address)

    def _client_of(self, knock: Knock) -> str:
        """By whose address failures are counted. Of the hops that a listed proxy names it is the last that is no such
        proxy, as a client may have written those before it; of anybody else the header is not believed."""
        if self.is_proxy(knock.address):
            hops = knock.headers.get("x-forwarded-for", "").rsplit(",", HOPS_MAX)
            for hop in reversed(hops):
                address = _address_in(hop)
                if address is None:
                    break
                if not self.is_proxy(address):
                    return address
        return knock.address

    def stranger(self, address: str) -> Caller:
        return Caller("unknown", Role.VIEWER, (), "token", "", address)

    def _by_proxy(self, knock: Knock) -> Caller | None:
        """The user that a proxy names, which is believed only if the connection is from one that is listed."""
        header = self.settings.user_header
        if header is None or not self.is_proxy(knock.address):
            return None
        user = knock.headers.get(header.lower(), "")
        role = self.settings.roles.get(user) or self.settings.roles.get(EVERY)
        if not user or not user.isprintable() or len(user) > 200 or role is None:
            return None
        return Caller(user, role, (EVERY,), "proxy", "", knock.address)

    def is_proxy(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in ipaddress.ip_network(each, strict=False) for each in self.settings.proxies)

    async def sign_in(self, token_text: str, knock: Knock) -> tuple[Caller, str]:
        """By a token; answers what the cookie of the session holds."""
        try:
            caller = await self._by_token(token_text, knock)
        except StoreError as error:
            raise _unseen(error) from error
        if not caller.role.may(Right.VIEW):
            await self.refused(caller, "sign in", "", "not_for_people")
            raise Refused(
                403, "not_for_people", f"a token of the role {caller.role} is for programs, not to sign in with"
            )
        secret = await self.sessions.begin(caller, caller.credential.removeprefix("token "))
        return replace(caller, via="session"), secret

    async def is_still_in(self, caller: Caller) -> bool:
        """Whether the token or session of a stream still counts. While the store cannot say, it does: whoever follows
        a stream looks again soon, and a store that cannot be read has nothing to tell meanwhile."""
        kind, _, name = caller.credential.partition(" ")
        try:
            if kind == "token":
                return await self.tokens.live(name) is not None
            return await self.sessions.is_alive(name) if kind == "session" else True
        except StoreError:
            return True

    # --- what they may do

    def space(self, namespace: str | None, caller: Caller) -> Space:
        wanted = namespace or self._default(caller)
        # A namespace that one may not see is as good as not there.
        if wanted not in self.settings.namespaces or not caller.may_see(wanted):
            raise Refused(404, "namespace_not_found", f"there is no namespace {shown(wanted)} here")
        if wanted not in self._spaces:
            self._spaces[wanted] = Space(self._open_space(wanted))
        return self._spaces[wanted]

    def _default(self, caller: Caller) -> str:
        seen = [each for each in self.settings.namespaces if caller.may_see(each)]
        return self.home.namespace if self.home.namespace in seen or not seen else seen[0]

    def namespaces_of(self, caller: Caller) -> list[str]:
        return [each for each in self.settings.namespaces if caller.may_see(each)]

    def check(self, operation: Operation, caller: Caller) -> None:
        if not caller.role.may(operation.right):
            need = LEAST[operation.right]
            raise Refused(403, "not_allowed", f"this needs the role {need}; you are {caller.name}, {caller.role}")

    async def admit(self, operation: Operation, caller: Caller, namespace: str | None) -> Space:
        """The namespace that is asked for, if the caller may do this there; a refusal is told in the audit log."""
        try:
            space = self.space(namespace, caller)
            self.check(operation, caller)
        except Refused as error:
            await self.refused(caller, operation.changes or operation.name, "", error.problem.code)
            raise
        return space

    def mask_for(self, caller: Caller) -> Mask:
        return Mask() if caller.sees_all else self._mask

    async def perform(
        self, operation: Operation, caller: Caller, namespace: str | None, arguments: Mapping[str, Any]
    ) -> Any:
        """Do what is asked, if the caller may; every change is told in the audit log, and so is every refusal."""
        call = Call(self, await self.admit(operation, caller, namespace), caller)
        try:
            answer = await operation.run(call, **arguments)
        except Exception as error:
            if operation.changes:
                await self._tell(operation, call, _result_of(error))
            raise
        if operation.changes:
            if operation.right not in (Right.SUBMIT, Right.WORK):
                call.space.forget()  # these are people; programs change things too often
            await self._tell(operation, call, "done")
        return answer

    async def _tell(self, operation: Operation, call: Call, result: str) -> None:
        # Tokens are of no namespace, whichever the request names: they are told where they are kept.
        audit = self.home.audit if operation.group == "tokens" else call.space.audit
        what = operation.changes
        if operation.right in (Right.SUBMIT, Right.WORK):
            await audit.gather("submits", call.caller, what, call.target, call.detail, result, call.count)
        elif result in ("done", UNKNOWN):
            await audit.change(call.caller, what, call.target, call.detail, result)
        else:
            await audit.gather("refusals", call.caller, what, call.target, call.detail, result)

    async def refused(self, caller: Caller, what: str, target: str, code: str) -> None:
        await self.home.audit.gather("refusals", caller, what, target, "", code)

    # --- streams

    def begin_stream(self, caller: Caller) -> str:
        """Count one more; raises `Refused` beyond the bounds. The answer is what `end_stream` takes."""
        owner = caller.owner
        if sum(self._streams.values()) >= STREAMS_MAX or self._streams.get(owner, 0) >= STREAMS_OF_ONE:
            raise Refused(429, "too_many_streams", "too many event streams are open; close some first")
        self._streams[owner] = self._streams.get(owner, 0) + 1
        return owner

    def end_stream(self, owner: str) -> None:
        self._streams[owner] -= 1
        if not self._streams[owner]:
            del self._streams[owner]

    async def close(self) -> None:
        """Within some seconds, also while the store cannot be reached; then what the audit log was still to be told is
        lost."""
        spaces, self._spaces = list(self._spaces.values()), {self.home.namespace: self.home}
        try:
            with suppress(TimeoutError, StoreError):
                async with asyncio.timeout(CLOSE_WITHIN):
                    await self.bulk.close()
                    for space in spaces:
                        await space.close()
        finally:
            for space in spaces:
                store = space.client._access.opened_store()
                if store is not None and space is not self.home:  # that one belongs to whoever has made this
                    await store.close()
