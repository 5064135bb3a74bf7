"""What a signature says of a handler: its context, its payload, and what it cannot be."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Optional

import pytest

from tickwork import ConfigError, Scheduler, TaskContext
from tickwork.handlers.context import Notes
from tickwork.handlers.registry import Entry

CONTEXT = TaskContext(task_id="i", type="t", attempt=1, fence=1, timeout=0, tags={}, context={})


def run(function: Any, payload: Any) -> Any:
    """Call a handler as a worker would."""
    entry = Entry("it", function)
    return entry.call({entry.names[0]: payload}, CONTEXT)


# --- the context


def optional(x: int, ctx: TaskContext | None = None) -> Any:
    return x, ctx


def old_optional(x: int, ctx: Optional[TaskContext] = None) -> Any:  # noqa: UP045
    return x, ctx


def annotated(x: int, ctx: Annotated[TaskContext, "the context"]) -> Any:
    return x, ctx


def positional(ctx: TaskContext, /, x: int) -> Any:
    return x, ctx


def by_keyword(x: int, *, ctx: TaskContext) -> Any:
    return x, ctx


def first(ctx: TaskContext, x: int) -> Any:
    return x, ctx


@pytest.mark.parametrize("function", [optional, old_optional, annotated, positional, by_keyword, first])
def test_where_a_context_may_stand(function: Callable[..., Any]) -> None:
    assert Entry("it", function).names == ("x",)
    assert run(function, 1) == (1, CONTEXT)


def test_an_optional_context_may_be_left_out_of_a_direct_call() -> None:
    app = Scheduler("memory://")
    assert app.task(optional)(5) == (5, None)


def test_a_union_of_the_context_and_something_else_is_none() -> None:
    def odd(ctx: TaskContext | str) -> None: ...

    with pytest.raises(ConfigError, match="cannot be decoded"):
        Entry("it", odd)


def test_two_contexts_are_refused() -> None:
    def two(a: TaskContext, x: int, b: TaskContext) -> None: ...

    with pytest.raises(ConfigError, match="handler 'it' has several parameters for the context: a, b; keep one"):
        Entry("it", two)


# --- objects


class OnlyPayload:
    def handle(self, payload):  # type: ignore[no-untyped-def]
        return payload


class TypedPayload:
    def handle(self, payload: int) -> Any:
        return payload


class ContextLast:
    def handle(self, payload, ctx: TaskContext):  # type: ignore[no-untyped-def]
        return payload, ctx


class Bare:
    def handle(self, ctx, payload):  # type: ignore[no-untyped-def]
        return payload, ctx


@dataclass
class Service:
    name: str = "s"

    def handle(self, ctx: TaskContext, payload: int) -> Any:
        return self.name, payload

    def method(self, payload: int) -> Any:
        return self.name, payload


def test_how_handle_is_called() -> None:
    assert run(TypedPayload(), 1) == 1
    assert run(ContextLast(), 1) == (1, CONTEXT)
    assert run(Bare(), 1) == (1, CONTEXT)
    assert run(Service("a").method, 2) == ("a", 2)


def test_a_lone_parameter_without_a_type_may_be_either() -> None:
    with pytest.raises(ConfigError, match=r"may be the context or the payload; write handle\(ctx, payload\)"):
        Entry("it", OnlyPayload())


def test_a_class_is_no_handler() -> None:
    with pytest.raises(ConfigError, match="handler 'it' is the class Service; register an instance of it"):
        Entry("it", Service)


def test_a_method_without_its_object_is_no_handler() -> None:
    app = Scheduler("memory://")
    with pytest.raises(ConfigError, match=r"is a method of .*Mail, and nobody could give it its 'self'"):

        class Mail:
            @app.task
            def send(self, to: str) -> None: ...

    with pytest.raises(ConfigError, match="'self'; register the method of an object"):
        Entry("it", Service.method)


def test_a_static_method_is_a_function() -> None:
    app = Scheduler("memory://")

    class Mail:
        @staticmethod
        @app.task
        def send(to: str) -> str:
            return to

    assert Mail.send("a") == "a"


def generate(n: int) -> Iterator[int]:
    yield n


async def generate_async(n: int) -> AsyncIterator[int]:
    yield n


class Generating:
    def __call__(self, n: int) -> Iterator[int]:
        yield n


@pytest.mark.parametrize("function", [generate, generate_async, functools.partial(generate), Generating()])
def test_a_generator_is_no_handler(function: Any) -> None:
    with pytest.raises(ConfigError, match="handler 'it' is a generator, which nobody would run to its end"):
        Entry("it", function)


# --- names and types


@pytest.mark.parametrize("function", [functools.partial(optional, ctx=None), Generating()])
def test_what_has_no_name_wants_one(function: Any) -> None:
    app = Scheduler("memory://")
    with pytest.raises(ConfigError, match=r"has no name of its own.*app\.task\(\"name\"\)"):
        app.task(function)
    with pytest.raises(ConfigError, match=r"has no name of its own"):
        app.periodic("@daily")(function)


def test_an_object_with_handle_is_for_the_registry() -> None:
    with pytest.raises(ConfigError, match=r"is for app\.registry\.register\(name, object\)"):
        Scheduler("memory://").task(Bare())  # type: ignore[call-overload]


def test_a_partial_and_a_callable_object_under_a_name() -> None:
    class Call:
        def __call__(self, x: int) -> int:
            return x + 1

    def add(x: int, y: int) -> int:
        return x + y

    app = Scheduler("memory://")
    assert app.task("call")(Call())(1) == 2
    assert app.task("partial")(functools.partial(add, y=3))(1) == 4


def test_a_task_may_be_decorated_again() -> None:
    app = Scheduler("memory://")

    @app.periodic("@daily", id="nightly")
    @app.task
    async def report() -> str:
        return "done"

    assert app.registry.list() == ["report"], "it is a schedule of that task, not another task"
    assert app.list_registered() == ["nightly"]


def test_types_of_the_function_around() -> None:
    @dataclass
    class Local:
        n: int

    class Box:
        def handle(self, ctx: TaskContext, payload: Local) -> Any: ...

    def handler(payload: Local, other: list[Local]) -> Local: ...  # type: ignore[empty-body]

    app = Scheduler("memory://")
    app.task(handler)
    app.registry.register("box", Box())
    assert app.registry.get("handler").names == ("payload", "other")


def test_a_type_that_cannot_be_found_is_said_clearly() -> None:
    def handler(payload: Nowhere) -> None: ...  # type: ignore[name-defined] # noqa: F821

    with pytest.raises(ConfigError, match=r"name .Nowhere. is not defined\. A type must be defined at the top of"):
        Entry("it", handler)


def test_local_types_of_local_types_are_refused_clearly() -> None:
    @dataclass
    class Inner:
        n: int

    @dataclass
    class Outer:
        inner: Inner

    def handler(payload: Outer) -> None: ...

    with pytest.raises(ConfigError, match=r"has a type that cannot be decoded: .*Inner"):
        Scheduler("memory://").task(handler)


def test_notes_are_not_what_a_context_is() -> None:
    def odd(ctx: Annotated[Notes, "x"], n: int) -> None: ...

    assert Entry("it", odd).context_name is None
