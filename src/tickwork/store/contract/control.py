"""Control: what the control plane keeps beside the tasks: documents, such as tokens, sessions and saved views, and
journals, such as that of who did what. Workers never need it, and a store whose users have different rights keeps it
from theirs: whoever lacks the right gets `NotPermitted`.

A document is a text with a kind and a name, a journal a numbered list of texts with a name. No name is empty. What the
texts say, and how long they are, is up to those who write them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

DOCUMENTS_PAGE = 100  # most documents that one `page` answers
ENTRIES_MAX = 100  # texts in one call of `append`
ENTRIES_PAGE = 1000  # most entries that one `read` answers


class Document(Struct, frozen=True):
    name: str
    text: str


class Entry(Struct, frozen=True):
    number: int
    at: int  # by the store's clock
    text: str


class Control(Protocol):
    async def get(self, kind: str, name: str) -> str | None: ...

    async def page(self, kind: str, after: str = "", limit: int = DOCUMENTS_PAGE) -> list[Document]:
        """Documents of a kind, sorted by the code points of their names: the first `limit` whose names come after
        `after`, which need not be there, and at most `DOCUMENTS_PAGE`. Fewer than that are the last ones."""

    async def swap(self, kind: str, name: str, seen: str | None, new: str | None, most: int = 0) -> bool:
        """Compare and set: False, and nothing is changed, when the document is not `seen` any more. None is no
        document: as `seen` it stands for one that is not there, as `new` it removes it. True also when it is `new`
        already, so that a call may be sent twice. A call that arrives late, after others, changes the document again if
        it is as it was seen: where that does harm, no text is written twice.

        `most`, unless it is 0: one that is not there is not created (False) while there are as many of its kind."""

    async def append(self, journal: str, texts: Sequence[str], keep: int) -> int:
        """Append at most `ENTRIES_MAX` entries, in their order, with the time of the store's clock, and drop the oldest
        until `keep` are left; the newest is never dropped. Answers the number of the newest, 0 if there is none.

        Entries are numbered one by one, from 1. No number is given twice, however many entries were dropped; but a
        store that has lost its newest entries, as in a failover, does not know of theirs.

        A call that is sent twice appends twice. An entry that must not stand there twice has an id in its text, by
        which readers leave the second one out."""

    async def read(self, journal: str, before: int | None = None, limit: int = 100) -> list[Entry]:
        """The newest `limit` entries, at most `ENTRIES_PAGE`, the newest first: of all, or of those with a number below
        `before`."""
