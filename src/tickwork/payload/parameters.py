"""The payload of a handler: its parameters by name.

A payload is written as an object with the names of the parameters, and read by these names. What else may be stored is
read as well: the bare value of one parameter (by clients that do not know the handler, and by versions before this
rule), and no payload at all, which is written as no bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import UNSET, DecodeError
from msgspec.structs import asdict

from tickwork.errors import PayloadError
from tickwork.payload import types
from tickwork.payload.annotations import takes_any_object, takes_no_object, wire_names
from tickwork.payload.codec import JSON, MSGPACK, BuiltinSerializer, Serializer, carries_objects
from tickwork.payload.types import REQUIRED, Field, PayloadType

MISSING: Any = UNSET  # no payload was given, which is not the same as None
Read = Callable[[Serializer, bytes], dict[str, Any]]
Reader = Callable[[bytes], dict[str, Any]]


class Arguments(dict[str, Any]):
    """A payload by the names of parameters. A plain mapping may be meant as the value of one of them; this is not."""


class DamagedPayload(PayloadError):
    """Bytes that no handler could read, whatever its parameters are."""


class Parameters:
    """How the payload of one handler is written and read."""

    def __init__(self, fields: Sequence[Field], owner: str) -> None:
        self.names = tuple(field.name for field in fields)
        self.defaults = {field.name: field.default for field in fields if field.default is not REQUIRED}
        self.required = [name for name in self.names if name not in self.defaults]
        self._exact, self._wider, may_be_deep = types.of_fields(fields, owner)
        self.bare = _bare_field(fields, self.required)
        self._bare_type = None if self.bare is None else types.of_value(self.bare.declared, owner)
        # Whether an object that has other names, or none of these, may be the bare value.
        takes_all = self.bare is not None and takes_any_object(self.bare.declared)
        takes_none = self.bare is None or takes_no_object(self.bare.declared)
        is_exact = takes_all or not (self.required or takes_none)
        self._ways = self._ways_to_read(is_exact)
        # Where several parameters all have defaults, null stands for no payload rather than for the first of them.
        self._null_is_none = not self.required and len(fields) > 1
        self._can_write_objects: dict[str, bool] = {}
        # The usual cases by themselves, for serializers of ours: an object by names, then a bare value. Whoever is
        # given an error, or has other bytes, calls `decode`, which knows all cases and can say what is wrong.
        first = self._exact if is_exact else self._wider
        ours = (JSON, MSGPACK)
        self.readers = {each.name: self._reader(each, first, may_be_deep) for each in ours}
        self.bare_readers: dict[str, Reader] = {}
        if self.bare is not None and not self._null_is_none and (takes_all or takes_none):
            self.bare_readers = {each.name: self._bare_reader(each) for each in ours}
        self._writers = {} if self._wider.by_pydantic else {e.name: e.encoder(may_be_deep=may_be_deep) for e in ours}

    @property
    def wire(self) -> Any:
        """The type of the payload as an object by names, as msgspec reads it."""
        return self._exact.wire

    def _ways_to_read(self, is_exact: bool) -> list[Read]:
        if self.bare is None:
            return [self._read_wider]
        if is_exact:
            return [self._read_exact, self._read_bare, self._read_wider]
        return [self._read_wider, self._read_bare]

    # --- reading

    def read(self, serializer: Serializer, data: bytes) -> dict[str, Any]:
        """As `decode`, and fast in the usual case."""
        try:
            return self.readers[serializer.name](data)
        except Exception:  # another form, or another serializer; what is wrong is found out below
            return self.decode(serializer, data)

    def decode(self, serializer: Serializer, data: bytes) -> dict[str, Any]:
        """What to call the handler with; a parameter that is left to its default is not in it."""
        if not data and isinstance(serializer, BuiltinSerializer):
            return self._without_payload()
        if self._null_is_none and _plain(serializer, data) is None:
            return {}  # so was no payload stored before it had a form of its own
        problems: list[PayloadError] = []
        for way in self._ways:
            try:
                return way(serializer, data)
            except PayloadError as problem:
                problems.append(problem)
        if not self.required and _plain(serializer, data) is None:
            return {}
        raise self._misfit(serializer, data, problems)

    def _without_payload(self) -> dict[str, Any]:
        """All defaults. The only parameter without one may be one that takes None, as that of a handler object which
        has to have a payload by its form."""
        if not self.required:
            return {}
        try:
            if self.bare is not None:
                return self._read_bare(JSON, b"null")
        except PayloadError:
            pass
        raise PayloadError(f"there is no payload, and `{self.required[0]}` has no default")

    def _read_exact(self, serializer: Serializer, data: bytes) -> dict[str, Any]:
        found = self._named(self._exact.decode(serializer, data))
        if unknown := found.keys() - set(self.names):
            raise PayloadError(f"Object contains unknown field `{min(map(str, unknown))}`")
        return found

    def _read_wider(self, serializer: Serializer, data: bytes) -> dict[str, Any]:
        found = self._named(self._wider.decode(serializer, data))
        return {name: found[name] for name in self.names if name in found}

    def _read_bare(self, serializer: Serializer, data: bytes) -> dict[str, Any]:
        assert self.bare is not None
        assert self._bare_type is not None
        value = self._bare_type.decode(serializer, data)
        if not self._may_be_bare(_plain(serializer, data), value):
            raise PayloadError("it has names of parameters")
        return {self.bare.name: value}

    def _may_be_bare(self, plain: Any, value: Any) -> bool:
        """A type with fields ignores names that it does not know. So it would take an object that was meant by name,
        and hide that something in it is wrong: such an object must have a field of the type."""
        if not isinstance(plain, Mapping):
            return True
        known = value.keys() if isinstance(value, Mapping) else wire_names(value)
        assert self.bare is not None
        if plain.keys() >= {self.bare.name, *self.required}:
            return self.bare.name in known
        return bool(self.required) or not known.isdisjoint(plain)

    def _named(self, found: Any) -> dict[str, Any]:
        """A serializer of the user's own may know nothing of types, and give what it likes."""
        if hasattr(found, "__struct_fields__"):
            return _given(found)
        if not isinstance(found, Mapping):
            raise PayloadError(f"Expected `object`, got `{type(found).__name__}`")
        for name in self.required:
            if name not in found:
                raise PayloadError(f"Object missing required field `{name}`")
        return dict(found)

    def _misfit(self, serializer: Serializer, data: bytes, problems: list[PayloadError]) -> PayloadError:
        """What is wrong, in terms of what was probably meant."""
        if isinstance(serializer, BuiltinSerializer):
            try:
                serializer.decode(data)
            except (DecodeError, PayloadError, RecursionError) as error:
                return DamagedPayload(str(error))
        if not self.names:
            return PayloadError("the handler takes no payload, and there is one")
        plain = _plain(serializer, data)
        is_bare = self.bare is not None and not (isinstance(plain, Mapping) and self._means_names(plain))
        return problems[self._ways.index(self._read_bare if is_bare else self._read_wider)]

    def _means_names(self, plain: Mapping[Any, Any]) -> bool:
        return len(self.names) > 1 or not plain.keys().isdisjoint(self.names)

    def _reader(self, serializer: BuiltinSerializer, kind: PayloadType, may_be_deep: bool) -> Reader:
        decode = serializer.decoder(kind.wire, may_be_deep=may_be_deep)
        if kind is self._wider:
            return decode
        given = _given if self.defaults else asdict
        return lambda data: given(decode(data))

    def _bare_reader(self, serializer: BuiltinSerializer) -> Reader:
        assert self.bare is not None
        assert self._bare_type is not None
        name, decode = self.bare.name, serializer.decoder(self._bare_type.wire)
        return lambda data: {name: decode(data)}

    # --- writing

    def encode(self, serializer: Serializer, payload: Any) -> bytes:
        """Written by name, and checked by reading it as a worker will. A mapping that has the names of parameters is
        taken by name, what else is given as the value of the only one that needs one."""
        if type(payload) is Arguments:
            write = self._writers.get(serializer.name)
            if write is None:
                return self._encode_by_name(serializer, payload)
            try:
                data = write(payload)
                self.readers[serializer.name](data)
            except Exception:  # what is wrong is said here
                return self._encode_by_name(serializer, payload)
            return data
        if payload is MISSING:
            self._without_payload()
            return b""
        if not self.names:
            if payload is not None and not (isinstance(payload, Mapping) and not payload):
                raise PayloadError("the handler takes no payload, and one was given")
            return b""
        if isinstance(payload, Mapping) and set(self.required) <= payload.keys() <= set(self.names):
            return self._first_of(payload, [self._encode_by_name, self._encode_bare], serializer)
        if isinstance(payload, Mapping) and len(self.names) > 1:
            return self._first_of(payload, [self._encode_whole, self._encode_bare], serializer)
        return self._first_of(payload, [self._encode_bare, self._encode_whole], serializer)

    def _first_of(
        self, payload: Any, ways: Sequence[Callable[[Serializer, Any], bytes]], serializer: Serializer
    ) -> bytes:
        """By the first way that fits; if none does, the first says why."""
        if self.bare is None:
            ways = [way for way in ways if way != self._encode_bare]
        first: PayloadError | None = None
        for way in ways:
            try:
                return way(serializer, payload)
            except PayloadError as problem:
                first = first or problem
        assert first is not None
        raise first

    def _encode_by_name(self, serializer: Serializer, given: Mapping[str, Any]) -> bytes:
        return self._write(serializer, given)[0]

    def _encode_bare(self, serializer: Serializer, value: Any) -> bytes:
        assert self.bare is not None
        data, found = self._write(serializer, {self.bare.name: value})
        if not self._may_be_bare(value, found[self.bare.name]):
            raise PayloadError("it has names of parameters")
        return data

    def _encode_whole(self, serializer: Serializer, payload: Any) -> bytes:
        """An object with fields, such as a dataclass, that are the parameters."""
        return self._exact.encode(serializer, payload)

    def _write(self, serializer: Serializer, given: Mapping[str, Any]) -> tuple[bytes, dict[str, Any]]:
        """The bytes, and what a worker will read from them."""
        if serializer.name not in self.readers and not self._writes_objects(serializer):
            return self._write_value(serializer, given)
        data = self._wider.dump(serializer, given)
        try:
            found = self.readers[serializer.name](data)
        except Exception:  # it does not say well what is wrong
            found = self._read_wider(serializer, data)
        self._wider.check(given, found)
        return data, found

    def _write_value(self, serializer: Serializer, given: Mapping[str, Any]) -> tuple[bytes, dict[str, Any]]:
        if self.bare is None or self._bare_type is None or given.keys() != {self.bare.name}:
            raise PayloadError(f"the {serializer.name} serializer writes one value, not an object with names")
        value = given[self.bare.name]
        return self._bare_type.encode(serializer, value), {self.bare.name: value}

    def _writes_objects(self, serializer: Serializer) -> bool:
        known = self._can_write_objects.get(serializer.name)
        if known is None:
            known = self._can_write_objects[serializer.name] = carries_objects(serializer)
        return known


def _bare_field(fields: Sequence[Field], required: list[str]) -> Field | None:
    """The parameter that a bare value is for: the only one without a default, or the first if all have one."""
    if len(required) > 1 or not fields:
        return None
    return next((field for field in fields if field.name in required), fields[0])


def _given(struct: Any) -> dict[str, Any]:
    return {name: value for name in struct.__struct_fields__ if (value := getattr(struct, name)) is not UNSET}


def _plain(serializer: Serializer, data: bytes) -> Any:
    try:
        return serializer.decode(data)
    except Exception:  # a serializer of the user's own may raise anything
        return MISSING
