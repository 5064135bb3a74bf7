"""One endpoint of the executor `http`: its settings, checked, and what they make of a task and of an answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from tickwork.config.endpoints import Endpoint
from tickwork.config.grpc import SecretText
from tickwork.errors import LONGEST_WAIT, Abort, ConfigError, ExecutorError, PayloadError
from tickwork.executors.http_templates import HeaderTemplate, UrlTemplate, Values, value_at
from tickwork.model.info import TaskResult
from tickwork.outbound.addresses import Allowed
from tickwork.outbound.answers import verdict_of
from tickwork.outbound.client import Answer, check_header
from tickwork.outbound.secrets import Secret
from tickwork.payload.codec import JSON
from tickwork.store.contract import Grant
from tickwork.texts import said, shown

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
WITH_BODY = ("POST", "PUT", "PATCH")
SECRET_HEADERS = ("authorization", "cookie")
_RESULT = re.compile(r"text|none|json(\.[^.]{1,128}){0,16}")


class CheckedEndpoint:
    def __init__(self, name: str, settings: Endpoint, allowed: Allowed) -> None:
        """Raises `ConfigError` for settings that cannot be used."""
        _check_values(settings)
        self.settings = settings
        self.sends_payload = (settings.body or ("payload" if settings.method in WITH_BODY else "none")) == "payload"
        self._url = UrlTemplate(settings.url)
        self.place = f"endpoint {name!r} ({allowed.check(self._url.sample).origin})"
        self._headers: dict[str, HeaderTemplate] = {}
        self._secrets: dict[str, tuple[str, Secret]] = {}
        for header, value in settings.headers.items():
            self._take_header(header, value)
        if settings.idempotency_header:
            check_header(settings.idempotency_header, "")
            if settings.idempotency_header.lower() in {header.lower() for header in settings.headers}:
                raise ConfigError(f"headers has {settings.idempotency_header} too, which is idempotency_header")

    def _take_header(self, header: str, value: str | SecretText) -> None:
        if isinstance(value, SecretText):
            check_header(header, value.prefix)
            self._secrets[header] = value.prefix, Secret(value.secret)
        elif header.lower() in SECRET_HEADERS:
            raise ConfigError(f'header {header} is a secret: {{"secret": "file:/path", "prefix": "Bearer "}}')
        else:
            check_header(header, value)
            self._headers[header] = HeaderTemplate(value)

    def request(self, task: Grant, payload: Callable[[], Any]) -> tuple[str, dict[str, str]]:
        """The URL and the headers of a call. Raises `Abort` if values of the task are missing or cannot be sent, and
        `ConfigError` if a secret cannot be read now."""
        spec = task.spec
        plain = {
            "id": spec.id, "type": spec.type, "queue": spec.queue, "attempt": task.attempt, "key": spec.key
        }  # fmt: skip
        values = Values(plain, spec.tags, payload)
        headers = {name: template.filled(values) for name, template in self._headers.items()}
        headers |= {name: prefix + secret.text() for name, (prefix, secret) in self._secrets.items()}
        if self.settings.idempotency_header:
            headers[self.settings.idempotency_header] = spec.id
        if self.sends_payload and "content-type" not in {name.lower() for name in headers}:
            headers["Content-Type"] = "application/json"
        return self._url.filled(values), headers

    def result(self, answer: Answer) -> TaskResult:
        """The result of the task. Raises what the answer means if it is no success."""
        settings, status = self.settings, answer.status
        if status in settings.success or (not settings.success and 200 <= status < 300):
            return TaskResult(status, "", self._mapped(answer))
        if status in settings.retry_on:
            raise ExecutorError(f"{self.place} has answered {status}: {_words(answer)}")
        raise verdict_of(self.place, answer)

    def _mapped(self, answer: Answer) -> Any:
        kind, *path = self.settings.result.split(".")
        if kind == "none" or not answer.body:
            return None
        if kind == "text":
            return answer.body.decode("utf-8", "replace")
        # The work is done there, so that a retry would only do it again.
        told = f"{self.place} has answered {answer.status}, but "
        try:
            value = JSON.decode(answer.body)
        except (PayloadError, msgspec.DecodeError) as error:
            raise Abort(
                f"{told}not with JSON that can be used ({said(str(error))}): {_words(answer)}; result: text or none "
                "takes other answers"
            ) from None
        if path and (value := value_at(value, path)) is None:
            raise Abort(f"{told}there is nothing at {self.settings.result}: {_words(answer)}")
        return value


def _words(answer: Answer) -> str:
    return repr(said(answer.body[:4000].decode("utf-8", "replace")))


def _check_values(settings: Endpoint) -> None:
    if settings.method not in METHODS:
        raise ConfigError(f"method must be one of {', '.join(METHODS)}, not {shown(settings.method)}")
    if settings.body not in (None, "payload", "none"):
        raise ConfigError(f"body must be payload or none, not {shown(settings.body)}")
    if not _RESULT.fullmatch(settings.result):
        raise ConfigError(f"result must be json, json.path.in.it, text or none, not {shown(settings.result)}")
    if not 0 < settings.timeout <= LONGEST_WAIT:
        raise ConfigError(f"timeout must be above 0 seconds, not {settings.timeout:g}")
    for option in ("request_limit", "response_limit"):
        if not 1 <= getattr(settings, option) < 2**31:
            raise ConfigError(f"{option} must be from 1 to {2**31 - 1:,} bytes")
    for option in ("success", "retry_on"):
        for status in getattr(settings, option):
            if not 200 <= status <= 599:
                raise ConfigError(f"{option} holds {status}, which is no status of an answer (200 to 599)")
    if both := set(settings.success) & set(settings.retry_on):
        raise ConfigError(f"success and retry_on both hold {min(both)}")
    if settings.tls != type(settings.tls)() and settings.url.startswith("http:"):
        raise ConfigError(f"tls goes with a url of https://, and {shown(settings.url)} is without TLS")
