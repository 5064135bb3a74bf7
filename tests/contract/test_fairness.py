"""The part of the contract that the package exports, on every store of its own."""

from tickwork.testing.contract.fairness import *  # noqa: F403
