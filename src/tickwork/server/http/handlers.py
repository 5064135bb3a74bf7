"""Routes made from the table of operations: what each takes and answers is said there, once."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, get_args, get_origin

from litestar import Request, Response
from litestar.connection import ASGIConnection
from litestar.enums import RequestEncodingType
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import Body, PathParameter, QueryParameter
from msgspec import Meta

from tickwork.server.http.guard import BATCH_MAX, plane_of
from tickwork.server.operations import Operation
from tickwork.server.problems import Problem

NS = Annotated[str | None, QueryParameter(required=False, max_length=64, description="The namespace.")]
BODY = Body(media_type=RequestEncodingType.JSON)
_PROBLEMS = {
    400: "What was sent cannot be used.",
    401: "The caller is not known.",
    403: "The caller may not do this.",
    404: "There is no such thing.",
    408: "The request did not arrive in time.",
    409: "It cannot be done as things are.",
    410: "What it refers to is over.",
    413: "The request is too large.",
    415: "What was sent is no JSON.",
    421: "The server does not answer to this name.",
    429: "Too much at once.",
    431: "The address and the headers are too long.",
    503: "The store cannot be reached.",
    507: "The store is full.",
}


def problem_responses() -> dict[int, ResponseSpec]:
    return {
        status: ResponseSpec(Problem, generate_examples=False, description=text, media_type="application/problem+json")
        for status, text in _PROBLEMS.items()
    }


def handler_of(operation: Operation) -> HTTPRouteHandler:
    async def run(request: Request[Any, Any, Any], ns: str | None = None, **given: Any) -> Any:
        if "data" in given:
            given["body"] = given.pop("data")
        answer = await plane_of(request).perform(operation, request.state.caller, ns, given)
        return _csv(operation, answer) if operation.media == "text/csv" else answer

    _describe(run, operation)
    return HTTPRouteHandler(
        _typed_path(operation),
        http_method=operation.method,
        status_code=operation.status,
        operation_id=operation.name,
        summary=operation.summary,
        description=operation.documentation,
        tags=[operation.group.replace("_", " ")],
        guards=[_allow(operation)],
        media_type=operation.media,
        request_max_body_size=BATCH_MAX,  # the guard has bounded it already, by the path
        responses=problem_responses(),
    )(run)


def _describe(run: Any, operation: Operation) -> None:
    """Give the function the signature from which routing, checks and documentation are made."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Request[Any, Any, Any]),
        inspect.Parameter("ns", keyword, annotation=NS, default=None),
    ]
    for each in operation.parameters.values():
        if each.name == "body":
            parameters.append(each.replace(name="data", kind=keyword, annotation=Annotated[each.annotation, BODY]))
        else:
            in_path = f"{{{each.name}}}" in operation.path
            parameters.append(each.replace(kind=keyword, annotation=_parameter(each.annotation, in_path)))
    answer = Response[str] if operation.media == "text/csv" else operation.answer
    run.__signature__ = inspect.Signature(parameters, return_annotation=answer)
    run.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": answer}
    run.__name__ = run.__qualname__ = operation.name
    run.__doc__ = operation.documentation


def _parameter(annotation: Any, in_path: bool) -> Any:
    """Bounds that an operation states, in the words of the framework."""
    optional = [each for each in get_args(annotation) if each is not type(None)] if _is_optional(annotation) else []
    kind, meta = _split(optional[0] if len(optional) == 1 else annotation)
    mark = PathParameter if in_path else QueryParameter
    if meta is None:
        return Annotated[annotation, mark()]
    bounds: dict[str, Any] = {
        "ge": meta.ge, "le": meta.le, "gt": meta.gt, "lt": meta.lt, "min_length": meta.min_length,
        "max_length": meta.max_length, "pattern": meta.pattern, "description": meta.description,
    }  # fmt: skip
    given = {name: value for name, value in bounds.items() if value is not None}
    return Annotated[kind | None if optional else kind, mark(**given)]


def _is_optional(annotation: Any) -> bool:
    return type(None) in get_args(annotation)


def _split(annotation: Any) -> tuple[Any, Meta | None]:
    if get_origin(annotation) is not Annotated:
        return annotation, None
    kind, *found = get_args(annotation)
    return kind, next((each for each in found if isinstance(each, Meta)), None)


def _typed_path(operation: Operation) -> str:
    path = operation.path
    for name in operation.parameters:
        path = path.replace(f"{{{name}}}", f"{{{name}:str}}")
    return path


def _allow(operation: Operation) -> Any:
    """Asked before the body is looked at, so that who may not do it learns nothing of what is wrong with it."""

    async def allow(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        await plane_of(connection).admit(operation, connection.state.caller, connection.query_params.get("ns"))

    return allow


def _csv(operation: Operation, answer: str) -> Response[str]:
    name = operation.name.removeprefix("export_")
    return Response(
        answer,
        media_type="text/csv",
        headers={"content-disposition": f'attachment; filename="tickwork-{name}.csv"'},
    )
