"""Statistics of a namespace as they were read: buckets that are closed do not change any more, so each is read once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from tickwork.client.reports import Span, bucket_of, opened_of
from tickwork.model.statistics import Bucket, Grain
from tickwork.store.contract import Store

KEPT_MAX = 3000  # closed buckets in memory
TOGETHER = 20  # that are read at the same time


class Buckets:
    """Closed buckets of one namespace, kept in memory."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Span, Bucket] = OrderedDict()

    async def read(self, store: Store, grain: Grain, starts: list[int]) -> list[Bucket]:
        opened = await opened_of(store)
        if opened is None:
            return [Bucket(start) for start in starts]
        kept = set(opened.kept[grain])
        missing = [start for start in starts if Span(grain, start) not in self._kept]
        found: dict[int, Bucket] = {}
        for at in range(0, len(missing), TOGETHER):
            some = missing[at : at + TOGETHER]
            read = await asyncio.gather(*(bucket_of(store, opened, Span(grain, start), kept) for start in some))
            found.update(zip(some, read, strict=True))
        for start, bucket in found.items():
            if start < opened.buckets[grain].start:
                self._keep(Span(grain, start), bucket)
        return [found.get(start) or self._kept[Span(grain, start)] for start in starts]

    def _keep(self, span: Span, bucket: Bucket) -> None:
        self._kept[span] = bucket
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
