"""Who calls, and what a role may do."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from msgspec import Struct

EVERY = "*"  # namespace


class Right(StrEnum):
    """What an operation asks for."""

    VIEW = "view"
    SUBMIT = "submit"
    OPERATE = "operate"
    WORK = "work"
    ADMINISTER = "administer"


class Role(StrEnum):
    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    WORKER = "worker"
    ADMIN = "admin"

    @property
    def rights(self) -> frozenset[Right]:
        return _RIGHTS[self]

    def may(self, right: Right) -> bool:
        return right in _RIGHTS[self]


_RIGHTS: dict[Role, frozenset[Right]] = {
    Role.VIEWER: frozenset({Right.VIEW}),
    Role.SUBMITTER: frozenset({Right.VIEW, Right.SUBMIT}),
    Role.OPERATOR: frozenset({Right.VIEW, Right.SUBMIT, Right.OPERATE}),
    Role.WORKER: frozenset({Right.WORK}),
    Role.ADMIN: frozenset(Right),
}

# The least role with a right, for the sentence that refuses somebody.
LEAST: dict[Right, Role] = {
    Right.VIEW: Role.VIEWER,
    Right.SUBMIT: Role.SUBMITTER,
    Right.OPERATE: Role.OPERATOR,
    Right.WORK: Role.WORKER,
    Right.ADMINISTER: Role.ADMIN,
}

Via = Literal["loopback", "token", "session", "proxy", "command line"]


class Caller(Struct, frozen=True):
    """Somebody who was let in. `credential` names the token or the session, so that a stream can be ended with it."""

    name: str
    role: Role
    namespaces: tuple[str, ...] = (EVERY,)
    via: Via = "loopback"
    credential: str = ""
    address: str = ""

    @property
    def owner(self) -> str:
        """Whose event streams are counted together: those of a token, with all its sessions, or of a user."""
        kind, _, name = self.credential.partition(" ")
        if kind == "session":
            return f"token {name.partition('.')[0]}"  # the name of a session begins with the id of its token
        return self.credential or f"{self.via} {self.name}"

    def may_see(self, namespace: str) -> bool:
        return EVERY in self.namespaces or namespace in self.namespaces

    @property
    def is_known(self) -> bool:
        """Whether it is somebody. A stranger, who was refused, may see no namespace, and has no role either."""
        return bool(self.namespaces)

    @property
    def sees_all(self) -> bool:
        """Whether nothing is masked for this caller."""
        return self.role in (Role.OPERATOR, Role.ADMIN)
