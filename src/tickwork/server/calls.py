"""One call of one operation: who asks, of which namespace, and what the audit log is to say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tickwork.client.client import Client
from tickwork.server.callers import Caller
from tickwork.server.masking import Mask

if TYPE_CHECKING:
    from tickwork.server.plane import ControlPlane
    from tickwork.server.spaces import Space


class Call:
    """What an operation is given beside its arguments."""

    def __init__(self, plane: ControlPlane, space: Space, caller: Caller) -> None:
        self.plane = plane
        self.space = space
        self.caller = caller
        self.target = ""
        self.detail = ""
        self.count = 1

    @property
    def client(self) -> Client:
        return self.space.client

    @property
    def mask(self) -> Mask:
        """What is hidden from this caller."""
        return self.plane.mask_for(self.caller)

    def tell(self, target: str, detail: str = "", count: int = 1) -> None:
        """Say for the audit log what is changed, and how."""
        self.target, self.detail, self.count = target, detail, count
