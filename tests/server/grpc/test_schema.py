"""The published .proto is that of the table, its numbers are for good, and the generated code has what it names."""

from __future__ import annotations

from tickwork.server.grpc.gen import tickwork_pb2
from tickwork.server.grpc.schema import PROTO, Numbers, numbered, proto_text, read_numbers
from tickwork.server.grpc.shapes import Field, Message, Protocol, Shape, camel, read_protocol
from tickwork.server.operations import operations


def test_the_proto_is_what_the_operations_are() -> None:
    text = PROTO.read_text()
    assert proto_text(read_protocol(), text) == text, "run make proto"


def test_every_operation_is_a_method_and_every_method_an_operation() -> None:
    service = tickwork_pb2.DESCRIPTOR.services_by_name["Tickwork"]
    assert service.full_name == "tickwork.v1.Tickwork"
    assert {each.name for each in service.methods} == {camel(name) for name in operations()} | {"StreamEvents"}


def test_what_is_read_of_the_types_is_what_the_code_has() -> None:
    for message in read_protocol().messages.values():
        fields = tickwork_pb2.DESCRIPTOR.message_types_by_name[message.name].fields_by_name
        wanted = {field.name for field in message.fields} | ({"clear"} if message.can_clear else set())
        assert set(fields) == wanted, message.name
        for field in message.fields:
            if field.label in ("", "optional"):
                assert fields[field.name].has_presence is field.has_presence, f"{message.name}.{field.name}"


def text(name: str) -> Field:
    return Field(name=name, shape=Shape("text"))


def one_message(*fields: Field) -> Protocol:
    return Protocol({}, {"Thing": Message("Thing", "A thing.", fields)})


class TestNumbers:
    def test_new_fields_get_the_next_numbers_and_others_keep_theirs(self) -> None:
        first = proto_text(one_message(text("a"), text("b")))
        assert read_numbers(first)["Thing"].fields == {"a": ("string", 1), "b": ("string", 2)}
        second = proto_text(one_message(text("c"), text("b"), text("a")), first)
        assert read_numbers(second)["Thing"].fields == {"a": ("string", 1), "b": ("string", 2), "c": ("string", 3)}

    def test_the_number_and_the_name_of_a_field_that_is_gone_are_reserved(self) -> None:
        first = proto_text(one_message(text("a"), text("b"), text("c")))
        second = proto_text(one_message(text("a"), text("c")), first)
        assert '  reserved 2;\n  reserved "b";\n' in second
        third = proto_text(one_message(text("a"), text("d")), second)
        assert read_numbers(third)["Thing"] == Numbers({"a": ("string", 1), "d": ("string", 4)}, {2, 3}, {"b", "c"})

    def test_the_last_number_is_not_given_out_again(self) -> None:
        first = proto_text(one_message(text("a"), text("b")))
        second = proto_text(one_message(text("a")), first)
        third = proto_text(one_message(text("a"), text("c")), second)
        assert read_numbers(third)["Thing"].fields["c"] == ("string", 3)

    def test_a_field_of_another_type_is_another_field(self) -> None:
        first = proto_text(one_message(text("a"), text("b")))
        changed = Field(name="a", shape=Shape("whole"))
        second = proto_text(one_message(changed, text("b")), first)
        assert read_numbers(second)["Thing"] == Numbers({"a": ("int64", 3), "b": ("string", 2)}, {1}, set())

    def test_one_that_may_be_left_out_now_is_the_same_on_the_wire(self) -> None:
        given, reserved = numbered(
            (Field(name="a", shape=Shape("text"), label="optional"),), Numbers({"a": ("string", 5)})
        )
        assert given == {"a": 5}
        assert not reserved.gone

    def test_writing_it_again_changes_nothing(self) -> None:
        first = proto_text(one_message(text("a")), proto_text(one_message(text("b"), text("a"))))
        assert proto_text(one_message(text("a")), first) == first
