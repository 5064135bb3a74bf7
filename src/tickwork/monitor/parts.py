"""What a node has for those who watch it: the pages that its options ask for, and the listeners that serve them."""

from __future__ import annotations

from tickwork.monitor.listener import Listeners
from tickwork.node.parts import Parts


def with_pages(parts: Parts, listeners: Listeners) -> Parts:
    """The parts of a program, and those that serve its pages, each of which is added to the listener of its port."""
    parts = parts.copy()
    parts.services += listeners.services()
    return parts
