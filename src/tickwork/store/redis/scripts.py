"""The Lua scripts: one file for each transition, put together with a prelude and the parts in `lua/parts` that it
names.

The first lines of a file are its header: `-- flags: allow-oom` for scripts that must run when Redis is full (otherwise
a full Redis would refuse to end tasks), `-- parts: ...` for the parts that it uses, `-- layout: any` for scripts that
open a namespace, whose layout is not checked, `-- prelude: none` for one that stands alone. A script with
the part `control` is called with the prefix of that as a key too, so that Redis refuses whoever has no right to it.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib import resources

from tickwork.store.redis.keys import control_prefix

_HEADER = re.compile(r"-- (flags|parts|layout|prelude): (.*)")


class Script:
    def __init__(self, name: str, text: str, of_control: bool = False) -> None:
        self.name = name
        self.of_control = of_control
        self.text = text.encode()
        self.sha = hashlib.sha1(self.text, usedforsecurity=False).hexdigest()  # by which Redis names it

    def keys(self, prefix: str) -> tuple[str, str]:
        """The keys with which it is called. The second one never exists. While a slot is being moved, a node that lacks
        one of several keys refuses the script, so that no node runs it on half of the data. With a single key the new
        node would."""
        return prefix, control_prefix(prefix) if self.of_control else f"{prefix}-"


def names() -> list[str]:
    files = (entry.name for entry in resources.files(__package__).joinpath("lua").iterdir())
    return sorted(name.removesuffix(".lua") for name in files if name.endswith(".lua"))


@cache
def read(name: str) -> str:
    """The text of a script, or of a part such as "parts/prelude"."""
    return resources.files(__package__).joinpath("lua", f"{name}.lua").read_text()


@cache
def compose(name: str, modern: bool, clock: str | None = None) -> Script:
    """The whole text of a script. `modern` servers (7.0 and later) accept a shebang line with flags. Older ones check
    the memory at the first write of a script only, so that is made a command which is always allowed. `clock` replaces
    the server's time in tests."""
    text = read(name)
    header = {match[1]: match[2].split() for line in text.splitlines()[:3] if (match := _HEADER.fullmatch(line))}
    flags, named = header.get("flags", []), header.get("parts", [])
    lines = []
    if modern:
        lines.append("#!lua" + (f" flags={','.join(flags)}" if flags else ""))
    elif "allow-oom" in flags:
        lines.append("redis.call('ZREM', KEYS[1] .. 'lessees', '')")
    if "layout" not in header:
        lines.append(read("parts/layout"))
    lines.append(clock or read("parts/clock"))
    if "prelude" in header:
        lines.append(text)
    else:
        parts = [read(f"parts/{part}") for part in named]
        lines += [read("parts/prelude"), _nest([*parts, text])]
    return Script(name, "\n".join(lines), "control" in named)


def _nest(parts: list[str]) -> str:
    """Put each part into a function inside of the function of the part before. Lua creates all functions of a script
    anew with every call, and looks up each name that a new function uses among the locals of the enclosing function;
    names from functions further out are found without a search."""
    nested = ""
    for part in reversed(parts):
        nested = f"return (function()\n{part}\n{nested}\nend)()"
    return nested
