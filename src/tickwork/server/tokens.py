"""Tokens: made once and shown once, kept as a hash, with a role, namespaces and an end.

They lie in a part of the store that the rights of workers do not reach (`control`), in the first namespace that a
server serves.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import time
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tickwork.clock import to_datetime
from tickwork.errors import ConfigError, StoreError, StoreUnavailable
from tickwork.handlers.options import count as whole_number
from tickwork.handlers.options import text as bounded_text
from tickwork.ids import is_name
from tickwork.observe.loggers import Log
from tickwork.server.callers import EVERY, Caller, Role
from tickwork.server.problems import Refused, not_found
from tickwork.store.contract import Store
from tickwork.texts import shown

KIND = "tokens"
MARK = "tw"  # begins every token, so that a leaked one is known by its form
TOKENS_MAX = 1000
FRESH = 2.0  # seconds for which a token that was looked up is good: revoking one holds within them
KNOWN_MAX = 10_000
USED_EVERY = 60_000  # milliseconds between two notes of the last use
LONGEST = 200  # characters of what may be a token
EXPIRES_MAX = 10 * 365 * 86_400


class Token(Struct, frozen=True, omit_defaults=True):
    """As it is stored: the hash of its secret part, and all else of it. Times are milliseconds, 0 is none."""

    id: str
    name: str
    digest: str
    role: Role
    namespaces: tuple[str, ...]
    made_by: str
    made_at: int
    expires_at: int = 0
    used_at: int = 0


class TokenInfo(Struct, frozen=True, kw_only=True):
    """A token as it is shown: all but its secret."""

    id: str
    name: str
    role: Role
    namespaces: list[str]
    made_by: str
    made_at: datetime
    expires_at: datetime | None
    used_at: datetime | None


class NewToken(Struct, frozen=True, kw_only=True):
    """A token that was just made. `token` is shown this once."""

    token: str
    info: TokenInfo


_decode = msgspec.json.Decoder(Token).decode


def _encode(token: Token) -> str:
    return msgspec.json.encode(token).decode()


def info_of(token: Token) -> TokenInfo:
    return TokenInfo(
        id=token.id,
        name=token.name,
        role=token.role,
        namespaces=list(token.namespaces),
        made_by=token.made_by,
        made_at=to_datetime(token.made_at),
        expires_at=to_datetime(token.expires_at) if token.expires_at else None,
        used_at=to_datetime(token.used_at) if token.used_at else None,
    )


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


class Tokens:
    """The tokens of a store."""

    def __init__(self, open_store: Callable[[], Awaitable[Store]], log: Log | None = None) -> None:
        self._open_store = open_store
        self._log = log or Log.of(None, "tokens")
        self._unreadable: set[str] = set()  # that were told
        self._known: dict[str, tuple[float, Token | None]] = {}
        self._any: tuple[float, bool] = (0.0, False)

    async def make(
        self,
        name: str,
        role: Role,
        maker: Caller,
        namespaces: Sequence[str] = (EVERY,),
        expires: float | None = None,
    ) -> NewToken:
        """A token may not grant more than its maker has."""
        self._check(name, role, maker, namespaces)
        store = await self._open_store()
        now = store.now()
        seconds = None if expires is None else whole_number("expires", round(expires), 1, EXPIRES_MAX)
        token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        token = Token(
            token_id, name, digest_of(secret), role, tuple(dict.fromkeys(namespaces)), maker.name, now,
            0 if seconds is None else now + seconds * 1000,
        )  # fmt: skip
        if not await store.control.swap(KIND, token_id, None, _encode(token), TOKENS_MAX):
            raise Refused(409, "too_many_tokens", f"there are {TOKENS_MAX:,} tokens already; revoke some first")
        self._any = (0.0, False)
        return NewToken(token=f"{MARK}_{token_id}_{secret}", info=info_of(token))

    def _check(self, name: str, role: Role, maker: Caller, namespaces: Sequence[str]) -> None:
        bounded_text("name", name, 100)
        if any(unicodedata.category(letter) == "Cc" for letter in name):
            raise ConfigError("the name of a token has no control characters: it stands in logs and on terminals")
        if not role.rights <= maker.role.rights:
            raise Refused(403, "more_than_you", f"a token of the role {role} may do more than you, {maker.role}")
        if not namespaces:
            raise ConfigError(f"a token is for at least one namespace; {EVERY} is all of them")
        for namespace in namespaces:
            if namespace != EVERY and not is_name(namespace):
                raise ConfigError(f"{shown(namespace)} is no name of a namespace")
            if EVERY not in maker.namespaces and namespace not in maker.namespaces:
                raise Refused(403, "more_than_you", f"you may not grant namespace {shown(namespace)}")

    async def infos(self) -> list[TokenInfo]:
        return [info_of(token) for token in await self._all()]

    async def _all(self) -> list[Token]:
        control = (await self._open_store()).control
        found: list[Token] = []
        after = ""
        while page := await control.page(KIND, after):
            read = [self._read(each.name, each.text) for each in page]
            found += [token for token in read if token is not None]
            after = page[-1].name
        return found

    def _read(self, token_id: str, text: str | None) -> Token | None:
        """None also for one that cannot be read, say of a newer version: it is as good as not there."""
        try:
            return None if text is None else _decode(text)
        except msgspec.MsgspecError as error:
            if token_id not in self._unreadable and len(self._unreadable) < TOKENS_MAX:
                self._unreadable.add(token_id)
                self._log.warning("token %s cannot be read, so it does not count: %s", token_id, error)
            return None

    async def any(self) -> bool:
        """Whether there is one that counts: without any, nobody can sign in."""
        at, known = self._any
        if time.monotonic() - at > FRESH:
            now = (await self._open_store()).now()
            known = any(not token.expires_at or token.expires_at > now for token in await self._all())
            self._any = (time.monotonic(), known)
        return known

    async def get(self, token_id: str) -> Token:
        return (await self._get(token_id))[0]

    async def _get(self, token_id: str) -> tuple[Token, str]:
        """With its text, which may hold more than this version knows."""
        text = await (await self._open_store()).control.get(KIND, token_id) if is_name(token_id) else None
        token = self._read(token_id, text)
        if token is None or text is None:
            raise not_found("token", token_id)
        return token, text

    async def revoke(self, token_id: str) -> TokenInfo:
        control = (await self._open_store()).control
        for _ in range(10):
            token, text = await self._get(token_id)
            if await control.swap(KIND, token_id, text, None):
                self._known.pop(token_id, None)
                return info_of(token)
        raise StoreUnavailable(f"token {token_id} is changed by others all the time")

    async def find(self, text: str) -> Token | None:
        """The token of this text, if it counts. A wrong one takes as long as one that is unknown."""
        parts = text.split("_", 2) if len(text) <= LONGEST else []
        if len(parts) != 3 or parts[0] != MARK or not is_name(parts[1]):
            return None
        token = await self.live(parts[1])
        expected = "" if token is None else token.digest
        return token if hmac.compare_digest(digest_of(parts[2]), expected) else None

    async def live(self, token_id: str) -> Token | None:
        """The token of this id unless it is revoked or over, as of some seconds ago at most."""
        at, token = self._known.get(token_id, (0.0, None))
        store = await self._open_store()
        if time.monotonic() - at > FRESH:
            text = await store.control.get(KIND, token_id)
            token = self._read(token_id, text)
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[token_id] = (time.monotonic(), token)
        if token is None or (token.expires_at and token.expires_at <= store.now()):
            return None
        return token

    async def note_use(self, token: Token) -> None:
        """Remember when it was used, to the minute. A store that is full can still be read, so that it cannot take
        this is no reason to refuse a question; it is tried again when the token is next looked up."""
        store = await self._open_store()
        now = store.now()
        if now - token.used_at < USED_EVERY:
            return
        used = replace(token, used_at=now)
        with contextlib.suppress(StoreError):
            if not await store.control.swap(KIND, token.id, _encode(token), _encode(used)):
                return
        self._known[token.id] = (time.monotonic(), used)


def caller_of(token: Token, address: str) -> Caller:
    return Caller(token.name, token.role, token.namespaces, "token", f"token {token.id}", address)
