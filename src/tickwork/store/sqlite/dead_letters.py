"""How many dead letters there are, without counting them with every death."""

from __future__ import annotations


class DeadLetters:
    """Exact while this process alone writes. Once another has written it is an upper bound: every death takes a
    position of its own, so there are at most as many more as positions were taken since the count."""

    def __init__(self) -> None:
        self.count = self._position = 0
        self.exact = self._known = False

    def forget(self) -> None:
        self.exact = self._known = False

    def others_wrote(self) -> None:
        self.exact = False

    def counted(self, count: int, position: int) -> None:
        self.count, self._position = count, position
        self.exact = self._known = True

    def change(self, by: int) -> None:
        self.count += by

    def may_exceed(self, limit: int, position: int) -> bool:
        unseen = 0 if self.exact else position - self._position
        return not self._known or self.count + unseen > limit
