"""Gates on Redis. They are those of the namespace, also where tasks are kept in several partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tickwork.store.contract.gates import WAKE_MAX, Ask, GateState, Left, Refusal, Woken
from tickwork.store.redis.core import Part

_pack = msgspec.msgpack.Encoder().encode


class Gates(Part):
    async def _run(self, act: str, request: object) -> Any:
        return await self._core.run("gates", self._core.layout.root, act, _pack(request))

    async def enter(self, asks: Sequence[Ask]) -> list[Refusal | None]:
        request = [
            (ask.id, ask.order, [
                (gate.name, gate.rate, gate.burst, gate.slots, gate.failures, gate.timeout, gate.shut, gate.cost)
                for gate in ask.gates
            ])
            for ask in asks
        ]  # fmt: skip
        return [_refusal(answer) for answer in await self._run("enter", request)]

    async def leave(self, left: Sequence[Left]) -> list[Woken]:
        return _woken(await self._run("leave", [(each.id, each.verdict, each.gates) for each in left]))

    async def renew(self, inside: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        await self._run("renew", inside)

    async def wake(self, limit: int) -> list[Woken]:
        return _woken(await self._run("wake", [min(limit, WAKE_MAX)]))

    async def reset(self, name: str) -> None:
        await self._run("reset", [name])

    async def look(self, names: Sequence[str]) -> list[GateState]:
        return [_state(answer) for answer in await self._run("look", names)]

    async def opened(self) -> list[GateState]:
        return [_state(answer) for answer in await self._run("opened", [])]

    async def crowded(self, limit: int) -> list[tuple[str, int]]:
        answer = await self._run("crowded", [limit])
        return [(name.decode(), -int(count)) for name, count in zip(answer[::2], answer[1::2], strict=True)]


def _woken(answer: list[bytes]) -> list[Woken]:
    return [Woken(task_id.decode(), gate.decode()) for task_id, gate in zip(answer[::2], answer[1::2], strict=True)]


def _refusal(answer: list[Any]) -> Refusal | None:
    if not answer:
        return None
    gate, reason, wait, waiting = answer
    return Refusal(gate.decode(), reason.decode(), None if wait < 0 else wait, waiting)


def _state(answer: list[Any]) -> GateState:
    name, tokens, inside, waiting, failures, open_until, probe = answer
    return GateState(
        name.decode(), float(tokens) if tokens else None, inside, waiting, failures, open_until, probe.decode()
    )
