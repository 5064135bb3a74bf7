"""Sessions of the dashboard: a cookie with a random id, which is kept hashed, with an idle and an absolute end."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tickwork.ids import is_name
from tickwork.server.callers import Caller, Role
from tickwork.server.problems import Refused
from tickwork.server.tokens import Tokens, digest_of
from tickwork.store.contract import Store

KIND = "sessions"
COOKIE = "tickwork_session"
SESSIONS_MAX = 5000
IDLE = 24 * 3_600_000  # milliseconds
WHOLE = 7 * 86_400_000
SEEN_EVERY = 300_000
FRESH = 2.0  # seconds, as of tokens
KNOWN_MAX = 10_000


class Session(Struct, frozen=True, omit_defaults=True):
    """`token_id` is that of the token it was begun with: it ends with that. Times are milliseconds."""

    name: str
    role: Role
    namespaces: tuple[str, ...]
    began_at: int
    seen_at: int
    token_id: str = ""


_decode = msgspec.json.Decoder(Session).decode


def _encode(session: Session) -> str:
    return msgspec.json.encode(session).decode()


class Sessions:
    def __init__(self, open_store: Callable[[], Awaitable[Store]], tokens: Tokens) -> None:
        self._open_store = open_store
        self._tokens = tokens
        self._known: dict[str, tuple[float, Session | None]] = {}

    async def begin(self, caller: Caller, token_id: str = "") -> str:
        """A new id at every login; the answer is what the cookie holds."""
        store = await self._open_store()
        now = store.now()
        secret = secrets.token_urlsafe(32)
        session = Session(caller.name, caller.role, caller.namespaces, now, now, token_id)
        name = digest_of(secret)
        if not await store.control.swap(KIND, name, None, _encode(session), SESSIONS_MAX):
            await self._forget_ended(store, now)
            if not await store.control.swap(KIND, name, None, _encode(session), SESSIONS_MAX):
                raise Refused(503, "too_many_sessions", "too many people are signed in; try again later")
        return secret

    async def _forget_ended(self, store: Store, now: int) -> None:
        after = ""
        while page := await store.control.page(KIND, after):
            for each in page:
                if not _is_alive(_decode(each.text), now):
                    await store.control.swap(KIND, each.name, each.text, None)
            after = page[-1].name

    async def find(self, secret: str, address: str) -> Caller | None:
        if not is_name(secret):
            return None
        name = digest_of(secret)
        session = await self._live(name)
        return None if session is None else Caller(
            session.name, session.role, session.namespaces, "session", f"session {name}", address
        )  # fmt: skip

    async def is_alive(self, name: str) -> bool:
        return await self._live(name) is not None

    async def _live(self, name: str) -> Session | None:
        store = await self._open_store()
        at, session = self._known.get(name, (0.0, None))
        if time.monotonic() - at > FRESH:
            session = await self._read(store, name)
        now = store.now()
        if session is None or not _is_alive(session, now):
            return None
        if session.token_id and await self._tokens.live(session.token_id) is None:
            return None
        if now - session.seen_at > SEEN_EVERY:
            seen = replace(session, seen_at=now)
            if await store.control.swap(KIND, name, _encode(session), _encode(seen)):
                self._known[name] = (time.monotonic(), seen)
        return session

    async def _read(self, store: Store, name: str) -> Session | None:
        text = await store.control.get(KIND, name)
        session = None if text is None else _decode(text)
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[name] = (time.monotonic(), session)
        return session

    async def end(self, secret: str) -> None:
        """Sign out, on the server too."""
        name = digest_of(secret)
        control = (await self._open_store()).control
        text = await control.get(KIND, name)
        if text is not None:
            await control.swap(KIND, name, text, None)
        self._known.pop(name, None)


def _is_alive(session: Session, now: int) -> bool:
    return now - session.seen_at < IDLE and now - session.began_at < WHOLE
