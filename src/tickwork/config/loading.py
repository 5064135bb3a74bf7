"""How the layers are put together.

A file is overruled by the environment, the environment by a `config` object, and that by arguments. A layer holds only
what was set in it, so a default never overrules anything; only a `Config` is whole, and its defaults count as set.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import msgspec
from msgspec import Struct

from tickwork.backoff import RetryPolicy
from tickwork.config import OPTIONS, Config, shown_option
from tickwork.config import names as config_names
from tickwork.config.checks import MAY_BE_NONE, validate
from tickwork.config.grpc import SecretText
from tickwork.config.readers import READERS
from tickwork.config.urls import mask_url
from tickwork.config.yaml import read_yaml
from tickwork.errors import ConfigError

FILE, ENVIRONMENT, OBJECT, ARGUMENT = range(4)
OF_OBJECT, OF_ARGUMENT = "config argument", "argument"  # origins
DEFAULT_FILE = "tickwork.yaml"


class Loaded(Struct, frozen=True):
    config: Config
    origins: dict[str, str]
    warnings: list[str]

    def set_in_code(self) -> dict[str, Any]:
        """What arguments have set, in whole or in part."""
        said = {OF_OBJECT, OF_ARGUMENT}
        names = [name for name, origin in self.origins.items() if said & set(origin.split(", "))]
        return {name: getattr(self.config, name) for name in names}


def load(
    arguments: Mapping[str, Any] | None = None,
    *,
    config: Mapping[str, Any] | Config | None = None,
    file: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    default_file: bool = False,
) -> Loaded:
    """Put the layers together and check the whole.

    `config` is a mapping, or a `Config`, whose every field counts as set but a `store` that is None. The file is
    `file`, else the one that `TICKWORK_CONFIG` names, else, if `default_file` is true and it exists, `tickwork.yaml` in
    the working directory.
    """
    environ = os.environ if environ is None else environ
    file = file or environ.get(config_names.FILE_VARIABLE)
    found = not file and default_file and Path(DEFAULT_FILE).exists()
    if found:
        file = DEFAULT_FILE
    from_file = read_yaml(Path(file)) if file else {}
    settings = _layer(FILE, config_names.entries_of_mapping(from_file, f"file {file}", READERS))
    settings |= _layer(ENVIRONMENT, config_names.entries_of_environment(environ, READERS))
    given = _options_of(config) if isinstance(config, Config) else config or {}
    settings |= _layer(OBJECT, config_names.entries_of_mapping(given, OF_OBJECT, READERS))
    settings |= _layer(ARGUMENT, config_names.entries_of_mapping(arguments or {}, OF_ARGUMENT, READERS))
    if found:
        _guard_passwords(settings)
    _unite(settings, "store", ("redis_addr", "redis_db", "redis_pass", "redis_pass_file"), _redis_url)
    _unite(settings, "retry", ("retry_delay", "backoff_rate"), lambda **parts: RetryPolicy(**parts).backoff)
    _split_policy(settings)
    loaded = Config(**{name: setting.value for name, setting in settings.items()})
    origins = {name: settings[name].origin if name in settings else "default" for name in OPTIONS}
    return Loaded(loaded, origins, validate(loaded, origins))


def load_given(arguments: dict[str, Any], config: Any) -> Loaded:
    """The same, for what a caller has given as `config`: nothing, a file, a mapping or a `Config`."""
    if config is None or isinstance(config, str | os.PathLike):
        return load(arguments, file=config)
    if isinstance(config, Config | Mapping):
        return load(arguments, config=config)
    raise ConfigError(f"config must be a file, a mapping or a Config, not {type(config).__name__}")


def _layer(layer: int, entries: Iterable[config_names.Entry]) -> dict[str, config_names.Entry]:
    settings: dict[str, config_names.Entry] = {}
    for entry in entries:
        key, name, value, origin, _ = entry
        if value is None and (layer == FILE or name == "store" or name not in OPTIONS):
            continue
        if name in settings:
            raise ConfigError(f"{settings[name].key} and {key} are one option ({origin}); set only one of them")
        try:
            read = value if value is None and name in MAY_BE_NONE else READERS[name](value)
        except ValueError as error:
            raise ConfigError(f"{key}: {shown_option(name, value)} ({origin}) {error}") from None
        settings[name] = entry._replace(value=read, layer=layer)
    return settings


def _unite(
    settings: dict[str, config_names.Entry], whole: str, parts: tuple[str, ...], build: Callable[..., Any]
) -> None:
    """Make an option of its parts. The first part, and the whole, each replace what lower layers say."""
    given = {part: settings.pop(part) for part in parts if part in settings}
    if not given:
        return
    rival, first, last = settings.get(whole), given.get(parts[0]), max(given.values(), key=lambda part: part.layer)
    if rival and rival.layer > last.layer:
        return
    if rival and (not first or first.layer <= rival.layer):
        raise ConfigError(f"{rival.key} ({rival.origin}) and {last.key} ({last.origin}) exclude each other")
    origin = ", ".join(dict.fromkeys(part.origin for part in given.values()))
    try:
        value = build(**{name: part.value for name, part in given.items()})
    except ConfigError as error:
        raise ConfigError(f"{' and '.join(given)} ({origin}): {error}") from None
    settings[whole] = config_names.Entry(last.key, whole, value, origin, last.layer)


def _options_of(config: Config) -> dict[str, Any]:
    given = {name: getattr(config, name) for name in OPTIONS}
    if isinstance(config.retry, RetryPolicy) and config.max_retry == Config().max_retry:
        del given["max_retry"]  # nobody has said it: the policy does
    return given


def _split_policy(settings: dict[str, config_names.Entry]) -> None:
    """A policy stands for two options: how many retries, and how long to wait for each."""
    retry, max_retry = settings.get("retry"), settings.get("max_retry")
    if retry is None or not isinstance(retry.value, RetryPolicy):
        return
    if max_retry is not None and max_retry.layer == retry.layer:
        raise ConfigError(
            f"{max_retry.key} ({max_retry.origin}) and {retry.key} ({retry.origin}), a policy that says the number of "
            "retries too, exclude each other"
        )
    settings["retry"] = retry._replace(value=retry.value.backoff)
    if max_retry is None or max_retry.layer < retry.layer:
        settings["max_retry"] = retry._replace(value=retry.value.max_retries)


def _redis_url(
    redis_addr: str = "localhost:6379", redis_db: int = 0, redis_pass: str = "", redis_pass_file: str = ""
) -> str:
    if redis_db < 0:
        raise ConfigError(f"redis_db {redis_db} is negative")
    if redis_pass and redis_pass_file:
        raise ConfigError("there is a password and a file for it; give one of them")
    login = f":{quote(redis_pass, safe='')}@" if redis_pass else ""
    return f"redis://{login}{redis_addr}/{redis_db}" + (
        f"?password_file={quote(redis_pass_file, safe='/')}" if redis_pass_file else ""
    )


def _guard_passwords(settings: Mapping[str, config_names.Entry]) -> None:
    """A file that merely lies in the working directory may be anybody's: it must not say where a password goes that
    others have given, nor name a file whose text is sent as one."""
    named = f"; name the file with --config or {config_names.FILE_VARIABLE} if it is to be trusted"
    address = settings.get("redis_addr")
    for secret in (settings[name] for name in ("redis_pass", "redis_pass_file") if name in settings):
        if address is not None and address.layer == FILE < secret.layer:
            raise ConfigError(
                f"{secret.key} ({secret.origin}) is not sent to {address.key} of a {address.origin} that was only "
                f"found{named}"
            )
    hooks = settings.get("webhooks")
    if hooks is not None and hooks.layer == FILE and any(hook.secret for hook in hooks.value):
        raise ConfigError(f"{hooks.key}: a {hooks.origin} that was only found cannot name the file of a secret{named}")
    for name, names_file in _NAMES_SECRET_FILE.items():
        entry = settings.get(name)
        if entry is not None and entry.layer == FILE and names_file(entry.value):
            raise ConfigError(f"{entry.key}: a {entry.origin} that was only found cannot name a password file{named}")


def _names_password_file(url: str) -> bool:
    return any(name.endswith("password_file") for name, _ in parse_qsl(url.partition("?")[2], keep_blank_values=True))


def _names_secret(cert: str | None, texts: Mapping[str, str | SecretText]) -> bool:
    return cert is not None or any(isinstance(text, SecretText) for text in texts.values())


_NAMES_SECRET_FILE: dict[str, Callable[[Any], bool]] = {
    "redis_pass_file": bool,
    "secret_file": bool,
    "store": _names_password_file,
    "endpoints": lambda named: any(_names_secret(each.tls.cert, each.headers) for each in named.values()),
    "grpc_targets": lambda named: any(_names_secret(each.tls.cert, each.metadata) for each in named.values()),
}


def describe(loaded: Loaded) -> list[tuple[str, Any, str]]:
    """Name, value and origin of every option, fit to be shown: without passwords, and with names for live objects."""
    return [(name, _showable(name, getattr(loaded.config, name)), loaded.origins[name]) for name in OPTIONS]


def _showable(name: str, value: Any) -> Any:
    if name == "store" and value is not None:
        return mask_url(value)
    if name == "webhooks":
        return tuple(msgspec.structs.replace(hook, url=hook.origin) for hook in value)
    if name in ("endpoints", "grpc_targets"):  # headers, metadata and addresses may be confidential
        return dict.fromkeys(value, "...")
    live = name in ("serializer", "logger") and value is not None and not isinstance(value, str)
    return type(value).__qualname__ if live else value


def in_words(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
