"""Standing claims: a claim that waits in the server, behind a blocking pop on the wake lists.

Both are written at once, on a connection of the worker's own. Redis runs what follows a blocking command as soon as
that ends, so the claim runs in the same moment as the submit that pushed the token, and the worker is woken with its
task.
"""

from __future__ import annotations

import weakref
from typing import Any

import hiredis

from tickwork.errors import StoreUnavailable
from tickwork.store.contract import Claim, Claimed
from tickwork.store.redis.claims import claim_args, read_claimed, waits_on
from tickwork.store.redis.core import Core, Part
from tickwork.store.redis.net.link import Link, LinkLost, Reply, pack, unread

REFUSED = -3  # see `stand.lua`
LATE = 1.5  # seconds that an answer may be late before the connection is cut


class StandingClaims(Part):
    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._ready: weakref.WeakSet[Link] = weakref.WeakSet()  # connections whose server has the script

    async def stand(self, claim: Claim, seconds: float) -> Claimed | None:
        core, args = self._core, claim_args(claim)
        core.queues.update(waits_on(claim))
        try:
            reply = await self._run_when_woken(claim, args, seconds)
        except LinkLost as error:
            raise StoreUnavailable(f"a standing claim at {core.url} was not answered: {error}") from error
        return None if reply[0] == REFUSED else await read_claimed(core, core.layout.root, reply, claim, args)

    async def recall(self, claim: Claim) -> None:
        call = (claim.worker_id, claim.turn, claim.nonce)
        await self._core.run("recall", self._core.layout.root, *call, purpose="work")

    async def _run_when_woken(self, claim: Claim, args: tuple[Any, ...], seconds: float) -> list[Reply]:
        root = self._core.layout.root
        link = await self._core.connections().wire.own_link(root, f"stand {claim.worker_id}", seconds + LATE)
        # One is the worker's own, for `recall.lua`.
        names = {**waits_on(claim), f"/{claim.worker_id}": None}
        lists = [f"{root}wake:{name}" for name in names]
        answered = False
        try:
            script = self._script(link, args)
            popped, waiter = link.send_together(pack("BLPOP", *lists, seconds), script)
            popped.add_done_callback(unread)
            reply = await waiter
            if isinstance(reply, hiredis.ReplyError) and str(reply).startswith("NOSCRIPT"):
                self._ready.discard(link)
                reply = await link.send(self._script(link, args))
            for each in (popped.result(), reply):
                if isinstance(each, hiredis.ReplyError):  # what it means, the usual connection finds out
                    raise LinkLost(str(each))
            answered = True
        finally:
            if not answered:  # also when the caller was cancelled: nothing must be granted to it any more
                link.cut("the standing claim was given up")
        self._ready.add(link)
        return list(reply)

    def _script(self, link: Link, args: tuple[Any, ...]) -> bytes:
        """The claim as a command. On a new connection it has the whole script, since a claim that runs while its worker
        sleeps could not be sent once more."""
        script, root = self._core.script("stand"), self._core.layout.root
        start = ("EVALSHA", script.sha) if link in self._ready else ("EVAL", script.text)
        return pack(*start, 2, root, f"{root}-", root, self._core.policy_of(root), *args)
