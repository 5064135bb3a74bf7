"""Sessions of the dashboard: a cookie with a random id, which is kept hashed, with an idle and an absolute end."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tickwork.errors import StoreError
from tickwork.ids import is_name
from tickwork.server.callers import Caller, Role
from tickwork.server.problems import Refused
from tickwork.server.tokens import Tokens, digest_of
from tickwork.store.contract import Document, Store

KIND = "sessions"
COOKIE = "tickwork_session"
HOST_COOKIE = f"__Host-{COOKIE}"  # browsers take it only from this very host, over TLS, and for all of its paths
SESSIONS_MAX = 5000
SESSIONS_OF_ONE = 20  # of a token; beyond them the oldest ends
IDLE = 24 * 3_600_000  # milliseconds
WHOLE = 7 * 86_400_000
SEEN_EVERY = 300_000
FRESH = 2.0  # seconds, as of tokens
KNOWN_MAX = 10_000


def cookie_name(is_https: bool, root: str) -> str:
    """`root` is the path at which the application is mounted, if any."""
    return HOST_COOKIE if is_https and not root else COOKIE


class Session(Struct, frozen=True, omit_defaults=True):
    """`token_id` is that of the token it was begun with: it ends with that. Times are milliseconds."""

    name: str
    role: Role
    namespaces: tuple[str, ...]
    began_at: int
    seen_at: int
    token_id: str = ""


_decoder = msgspec.json.Decoder(Session)


def _decode(text: str) -> Session | None:
    """None for one that cannot be read, say of another version: whoever had it signs in again."""
    try:
        return _decoder.decode(text)
    except msgspec.MsgspecError:
        return None


def _name_of(secret: str) -> str:
    """It begins with the id of the token, so that the sessions of a token stand side by side."""
    token_id, dot, _ = secret.partition(".")
    return f"{token_id}{dot}{digest_of(secret)}" if dot else digest_of(secret)


def _encode(session: Session) -> str:
    return msgspec.json.encode(session).decode()


class Sessions:
    def __init__(self, open_store: Callable[[], Awaitable[Store]], tokens: Tokens) -> None:
        self._open_store = open_store
        self._tokens = tokens
        self._known: dict[str, tuple[float, Session | None]] = {}

    async def begin(self, caller: Caller, token_id: str) -> str:
        """A new id at every login; the answer is what the cookie holds."""
        store = await self._open_store()
        now = store.now()
        secret = f"{token_id}.{secrets.token_urlsafe(32)}"
        session = Session(caller.name, caller.role, caller.namespaces, now, now, token_id)
        name = _name_of(secret)
        if not await store.control.swap(KIND, name, None, _encode(session), SESSIONS_MAX):
            await self._forget_ended(store, now)
            if not await store.control.swap(KIND, name, None, _encode(session), SESSIONS_MAX):
                raise Refused(503, "too_many_sessions", "too many people are signed in; try again later")
        await self._end_oldest(store, token_id)
        return secret

    async def _end_oldest(self, store: Store, token_id: str) -> None:
        """So that one who signs in all the time keeps nobody else out. After the new one is there: of several logins
        at the same time the last one sees all."""
        found: list[tuple[int, Document]] = []
        after = f"{token_id}."
        while page := await store.control.page(KIND, after):
            own = [each for each in page if each.name.startswith(f"{token_id}.")]
            for each in own:
                session = _decode(each.text)
                found.append((0 if session is None else session.began_at, each))
            if len(own) < len(page):
                break
            after = page[-1].name
        found.sort(key=lambda each: each[0], reverse=True)
        for _, each in found[SESSIONS_OF_ONE:]:
            await store.control.swap(KIND, each.name, each.text, None)
            self._known.pop(each.name, None)

    async def _forget_ended(self, store: Store, now: int) -> None:
        after = ""
        while page := await store.control.page(KIND, after):
            for each in page:
                session = _decode(each.text)
                if session is None or not _is_alive(session, now) or not await self._has_token(session):
                    await store.control.swap(KIND, each.name, each.text, None)
            after = page[-1].name

    async def _has_token(self, session: Session) -> bool:
        return not session.token_id or await self._tokens.live(session.token_id) is not None

    async def find(self, secret: str, address: str) -> Caller | None:
        if not is_name(secret):
            return None
        name = _name_of(secret)
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
        if session is None or not _is_alive(session, now) or not await self._has_token(session):
            return None
        if now - session.seen_at > SEEN_EVERY:
            await self._note_use(store, name, session, now)
        return session

    async def _note_use(self, store: Store, name: str, session: Session, now: int) -> None:
        """As of a token: that it cannot be noted is no reason to refuse a question."""
        seen = replace(session, seen_at=now)
        with contextlib.suppress(StoreError):
            if not await store.control.swap(KIND, name, _encode(session), _encode(seen)):
                return
        self._known[name] = (time.monotonic(), seen)

    async def _read(self, store: Store, name: str) -> Session | None:
        text = await store.control.get(KIND, name)
        session = None if text is None else _decode(text)
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[name] = (time.monotonic(), session)
        return session

    async def end(self, secret: str) -> None:
        """Sign out, on the server too."""
        name = _name_of(secret)
        control = (await self._open_store()).control
        text = await control.get(KIND, name)
        if text is not None:
            await control.swap(KIND, name, text, None)
        self._known.pop(name, None)


def _is_alive(session: Session, now: int) -> bool:
    return now - session.seen_at < IDLE and now - session.began_at < WHOLE
