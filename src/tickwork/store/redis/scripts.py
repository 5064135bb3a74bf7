"""The Lua scripts: one file a transition, over a prelude and the parts that it names, which are in `lua/parts`.

A file's first lines say what it is: `-- flags: allow-oom` for scripts that must run when Redis is full (else a full
Redis would refuse that work ends), `-- parts: ...` for what it builds on.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib import resources

_HEADER = re.compile(r"-- (flags|parts): (.*)")


class Script:
    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text.encode()
        self.sha = hashlib.sha1(self.text, usedforsecurity=False).hexdigest()  # by which Redis names it


def names() -> list[str]:
    files = (entry.name for entry in resources.files(__package__).joinpath("lua").iterdir())
    return sorted(name.removesuffix(".lua") for name in files if name.endswith(".lua"))


@cache
def read(name: str) -> str:
    """The file of a script, or of a part: "parts/prelude"."""
    return resources.files(__package__).joinpath("lua", f"{name}.lua").read_text()


@cache
def compose(name: str, modern: bool, clock: str | None = None) -> Script:
    """The whole text of a script. `modern` servers (7.0 and later) know shebang lines and flags; on older ones only the
    first write of a script is checked for memory, so it is one that is always allowed. Tests bring a `clock`."""
    text = read(name)
    header = {match[1]: match[2].split() for line in text.splitlines()[:2] if (match := _HEADER.fullmatch(line))}
    flags = header.get("flags", [])
    lines = []
    if modern:
        lines.append("#!lua" + (f" flags={','.join(flags)}" if flags else ""))
    elif "allow-oom" in flags:
        lines.append("redis.call('ZREM', KEYS[1] .. 'leases', '')")
    parts = [read(f"parts/{part}") for part in header.get("parts", [])]
    lines += [clock or read("parts/clock"), read("parts/prelude"), _nest([*parts, text])]
    return Script(name, "\n".join(lines))


def _nest(parts: list[str]) -> str:
    """Each part in a function of its own, inside of the one before. All functions of a script are made anew with every
    call, and Lua looks through the locals of the running function for each name that a new one refers to; what comes
    from a function further out is found at once."""
    nested = ""
    for part in reversed(parts):
        nested = f"return (function()\n{part}\n{nested}\nend)()"
    return nested
