"""Specs kept decoded for as long as they are likely to be asked for again."""

from __future__ import annotations

from tickwork.model.tasks import Spec

CACHE_BYTES = 16_000_000  # of encoded specs, for each connection
OBJECT_BYTES = 1000  # what a spec takes beside its payload, roughly


class SpecCache:
    """By number. When it is full the older half goes."""

    def __init__(self) -> None:
        self.bytes = 0
        self._specs: dict[int, Spec] = {}
        self._sizes: dict[int, int] = {}
        self.get = self._specs.get

    def add(self, seq: int, spec: Spec, encoded: int) -> None:
        size = encoded + OBJECT_BYTES
        if size > CACHE_BYTES // 2 or seq in self._specs:
            return
        if self.bytes + size > CACHE_BYTES:
            for old in list(self._specs):  # dicts keep their order
                self.discard(old)
                if self.bytes <= CACHE_BYTES // 2:
                    break
        self._specs[seq] = spec
        self._sizes[seq] = size
        self.bytes += size

    def discard(self, seq: int) -> None:
        if self._specs.pop(seq, None) is not None:
            self.bytes -= self._sizes.pop(seq)

    def clear(self) -> None:
        self._specs.clear()
        self._sizes.clear()
        self.bytes = 0
