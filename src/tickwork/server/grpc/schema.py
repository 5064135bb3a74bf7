"""Write `tickwork.proto` from the table of operations: `python -m tickwork.server.grpc.schema`, or `make proto`.

Clients are built with the numbers of the fields, so these are for good. A field keeps the number that the file has
given it; a new one gets the next that is free; the number and the name of one that is gone are reserved. A field whose
type has changed is another field, with a number of its own.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

from msgspec import Struct, field

from tickwork.server.grpc.shapes import (
    CLEAR,
    PACKAGE,
    TIMESTAMP,
    Field,
    Message,
    Method,
    Protocol,
    Shape,
    read_protocol,
)

PROTO = Path(__file__).parent / "tickwork.proto"
WIDTH = 120
_CLEAR = Field(name=CLEAR, shape=Shape("text"), label="repeated", note="names of fields that are to be null")
_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^  ((?:optional |repeated )?(?:map<[^>]+>|[\w.]+)) (\w+) = (\d+);", re.MULTILINE)
_RESERVED = re.compile(r"^  reserved ([^;]+);", re.MULTILINE)

HEAD = f"""\
// The gRPC API of Tickwork: the same operations as by HTTP. Written by `make proto` from the table of operations.
//
// Calls bring a token along as metadata, `authorization: Bearer TOKEN`, and may name a namespace in
// `tickwork-namespace`. A call that fails has the problem as JSON in the trailing metadata `tickwork-problem`.
//
// Fields that are "JSON text" hold any value that JSON can say, with whole numbers of any size exact, nested at most 64
// levels deep. Durations are in seconds. A list or map that is empty counts as left out. Where a request has a field
// `{CLEAR}`, it names the fields that are to be null, which is not the same as leaving them out.

syntax = "proto3";

package {PACKAGE};

import "google/protobuf/timestamp.proto";
"""


class Numbers(Struct):
    """What a message has given out already: to fields that it has, with their types, and to those that are gone."""

    fields: dict[str, tuple[str, int]] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    gone_names: set[str] = field(default_factory=set)


def read_numbers(proto: str) -> dict[str, Numbers]:
    """By message, from the text of a file that was written here."""
    found: dict[str, Numbers] = {}
    for name, text in _MESSAGE.findall(proto):
        numbers = found[name] = Numbers()
        for kind, field_name, number in _FIELD.findall(text):
            numbers.fields[field_name] = (kind, int(number))
        for reserved in _RESERVED.findall(text):
            parts = [part.strip() for part in reserved.split(",")]
            numbers.gone |= {int(part) for part in parts if part.isdecimal()}
            numbers.gone_names |= {part.strip('"') for part in parts if part.startswith('"')}
    return found


def _wire(kind: str) -> str:
    """The type as it is on the wire, where one value and an optional one are the same."""
    return kind.removeprefix("optional ")


def numbered(fields: tuple[Field, ...], before: Numbers) -> tuple[dict[str, int], Numbers]:
    """A number for each field, and what is reserved."""
    taken = {number for _, number in before.fields.values()} | before.gone
    given: dict[str, int] = {}
    for each in fields:
        kind, number = before.fields.get(each.name, ("", 0))
        if number and _wire(kind) == _wire(each.proto):
            given[each.name] = number
    following = max(taken, default=0)
    for each in fields:
        if each.name not in given:
            following += 1
            given[each.name] = following
    names = (set(before.fields) | before.gone_names) - set(given)
    return given, Numbers(gone=taken - set(given.values()), gone_names=names)


def proto_text(protocol: Protocol, before: str = "") -> str:
    """The file, with the numbers that the one before has given out."""
    numbers = read_numbers(before)
    parts = [HEAD, _service(list(protocol.methods.values()))]
    parts += [_message(each, numbers.get(each.name, Numbers())) for each in protocol.messages.values()]
    return "\n".join(parts)


def _service(methods: list[Method]) -> str:
    lines = [f"service {'Tickwork'} {{"]
    for number, each in enumerate(methods):
        lines += [""] if number else []
        lines += _comment(each.operation.documentation, "  ")
        answer = f"stream {each.answer.name}" if each.streams else each.answer.name
        lines.append(f"  rpc {each.name}({each.request.name}) returns ({answer});")
    return "\n".join([*lines, "}", ""])


def _message(message: Message, before: Numbers) -> str:
    fields = (*message.fields, _CLEAR) if message.can_clear else message.fields
    given, reserved = numbered(fields, before)
    lines = [*_comment(message.doc, ""), f"message {message.name} {{"]
    if reserved.gone:
        lines.append(f"  reserved {', '.join(str(number) for number in sorted(reserved.gone))};")
    if reserved.gone_names:
        quoted = [f'"{name}"' for name in sorted(reserved.gone_names)]
        lines.append(f"  reserved {', '.join(quoted)};")
    for each in sorted(fields, key=lambda each: given[each.name]):
        note = f"  // {each.note}" if each.note else ""
        lines.append(f"  {each.proto} {each.name} = {given[each.name]};{note}")
    return "\n".join([*lines, "}", ""])


def _comment(text: str, indent: str) -> list[str]:
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text) if text else []:
        lines += [f"{indent}//"] if lines else []
        wrapped = textwrap.wrap(" ".join(paragraph.split()), WIDTH - len(indent) - 3, break_on_hyphens=False)
        lines += [f"{indent}// {line}" for line in wrapped]
    return lines


def main() -> None:
    before = PROTO.read_text() if PROTO.exists() else ""
    text = proto_text(read_protocol(), before)
    assert TIMESTAMP in text
    if "--check" in sys.argv[1:]:
        sys.exit(0 if text == before else f"{PROTO} is not what the operations are: run make proto")
    PROTO.write_text(text)
    print(PROTO)


if __name__ == "__main__":
    main()
