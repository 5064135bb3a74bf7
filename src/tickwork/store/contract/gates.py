"""Gates: limits, breakers and switches that hold for all workers together.

A gate is a name and a rule. A worker that was granted a task asks the gates of that task to let it through before it
runs it. Whoever is refused gives the task back (`Held`), and the gate remembers that it waits. The rules come with each
question; the store keeps only what they are applied to, and forgets a gate at which nothing happens any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

Reason = Literal["shut", "open", "full", "rate"]
RunVerdict = Literal["ok", "failed", "none"]

RESERVED = 5000  # milliseconds for which room at a gate is kept for a task that was woken
LOOK_AGAIN = 1000  # milliseconds after which `wake` looks at a gate whose rate was spent
HORIZON = 5000  # milliseconds for which those who wait for a rate are told their times ahead; others are woken
WAKE_MAX = 1000  # tasks that one call wakes at most
ORDER_MAX = 2**52  # an `Ask.order` is smaller


class Gate(Struct, frozen=True):
    """What a task must pass. What is 0 is not limited."""

    name: str  # such as `type:mail`
    rate: float = 0.0  # runs that may begin in a millisecond
    burst: int = 1  # runs that may begin at once after a pause
    slots: int = 0  # runs at a time
    failures: int = 0  # in a row, after which nothing is let through
    timeout: int = 0  # milliseconds until one is let through again, to try
    shut: bool = False  # nothing is let through
    cost: int = 1  # tokens that are drawn; more than the burst are drawn when as many are there, and owed


class Ask(Struct, frozen=True):
    """A task that asks to be let through. Without an id it only draws from the rate, and does not wait."""

    id: str
    gates: tuple[Gate, ...]
    order: int = 0  # among those who wait at a gate, smaller ones come first


class Refusal(Struct, frozen=True):
    """Which gate did not let it through, and why. `shut`: by its rule; `open`: after too many failures, or while one is
    let through to try; `full`: as many run as may; `rate`: as many have begun as may."""

    gate: str
    reason: Reason
    wait: int | None  # milliseconds after which it is to ask again by itself; None: it is woken
    waiting: int  # how many wait at the gate, with this one


class Left(Struct, frozen=True):
    """A task that was let through runs no more. `failed` counts against the gates with `failures`."""

    id: str
    gates: tuple[str, ...]
    verdict: RunVerdict = "ok"


class Woken(Struct, frozen=True):
    """A task that waited at a gate and may ask again now."""

    id: str
    gate: str


class GateState(Struct, frozen=True):
    """How it is at a gate now. `tokens` is what is left of its rate, as far as it is known; `open_until` is 0 unless it
    is open after failures; `probe` is the task that was let through to try."""

    name: str
    tokens: float | None = None
    inside: int = 0
    waiting: int = 0
    failures: int = 0
    open_until: int = 0
    probe: str = ""


class Gates(Protocol):
    async def enter(self, asks: Sequence[Ask]) -> list[Refusal | None]:
        """Let tasks through, in this order: each through all of its gates, or through none. None: it was let through.

        A task that was let through counts as inside of each gate with `slots` until it leaves, or for the length of a
        lease if it is not renewed; when it asks again, it is still inside. One that is refused waits at the first gate
        that refuses it, until it is let through or woken.

        After `failures` in a row a gate is open for `timeout`, and tells so in the log (`breaker.opened`). Then it lets
        one through (`breaker.probed`): if that one succeeds, the gate is closed again (`breaker.closed`), if it fails,
        the gate is open for another `timeout`."""

    async def leave(self, left: Sequence[Left]) -> list[Woken]:
        """Answers tasks that waited and may ask again now, at most `WAKE_MAX`; the caller makes them ready. Room that
        others have left is kept for them for `RESERVED`, so that nobody overtakes them; if one of them does not want it
        any more, as it was cancelled, the caller tells that it has left. Sent twice, it does no harm but counting a
        failure twice."""

    async def renew(self, inside: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        """Tasks that still run, each with its gates: they stay inside for another lease. One that is not inside any
        more is inside again, also if the gate has become full since."""

    async def wake(self, limit: int) -> list[Woken]:
        """Tasks that may ask again, at gates that have room since a time came: those inside have not renewed, tokens
        are there that nobody has drawn, an open gate is to be tried. As with `leave`, the caller makes them ready."""

    async def reset(self, name: str) -> None:
        """Forget failures, and that the gate is open or shut; those who wait are woken by the next `wake`."""

    async def look(self, names: Sequence[str]) -> list[GateState]:
        """How it is at these gates."""

    async def opened(self) -> list[GateState]:
        """The gates that are open after failures, by name."""

    async def crowded(self, limit: int) -> list[tuple[str, int]]:
        """The gates at which most tasks wait, and how many; ties by name."""
