"""The built files of the dashboard, from the package; kept in memory, as they are few and small."""

from __future__ import annotations

import gzip
import mimetypes
from importlib.resources import files
from typing import Annotated, Any

from litestar import Request, Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import PathParameter
from msgspec import Struct

from tickwork.server.problems import Refused

BASE = '<base href="/">'
FOR_EVER = "public, max-age=31536000, immutable"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}


class File(Struct, frozen=True):
    body: bytes
    packed: bytes
    media: str
    cache: str


class Files:
    def __init__(self) -> None:
        self._files: dict[str, File] = {}
        root = files("tickwork.server") / "ui"
        if root.is_dir():
            self._read(root, "")
        self.index = self._files.pop("index.html", None)

    def _read(self, folder: Any, prefix: str) -> None:
        for each in folder.iterdir():
            name = f"{prefix}{each.name}"
            if each.is_dir():
                self._read(each, f"{name}/")
            elif not each.name.endswith((".py", ".pyc")):
                self._files[name] = _file(name, each.read_bytes())

    def get(self, path: str) -> File | None:
        return self._files.get(path)


def _file(name: str, body: bytes) -> File:
    ending = f".{name.rpartition('.')[2]}"
    media = _TYPES.get(ending) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    text = media.startswith("text/") or ending == ".svg"
    cache = FOR_EVER if name.startswith("assets/") else "no-cache"
    return File(body, gzip.compress(body, 9, mtime=0), f"{media}; charset=utf-8" if text else media, cache)


def ui_handlers() -> list[HTTPRouteHandler]:
    found = Files()

    @get(["/", "/{path:path}"], include_in_schema=False)
    async def dashboard(request: Request[Any, Any, Any], path: Annotated[str, PathParameter()] = "") -> Response[bytes]:
        name = path.strip("/")
        file = found.get(name)
        if file is not None:
            return _answer(request, file)
        if name.startswith(("api/", "assets/")) or found.index is None:
            raise Refused(404, "not_found", "there is nothing at this address")
        return _answer(request, _at(found.index, root_of(request)))

    return [dashboard]


def root_of(request: Request[Any, Any, Any]) -> str:
    """Where the application is mounted; empty at the root."""
    return str(request.scope.get("tickwork_root", ""))


def _at(index: File, root: str) -> File:
    """The page as it is below a path: all its addresses are relative to its base."""
    if not root:
        return index
    safe = "".join(char for char in root if char.isalnum() or char in "/-_.~")
    body = index.body.replace(BASE.encode(), f'<base href="{safe}/">'.encode())
    return File(body, gzip.compress(body, 9, mtime=0), index.media, index.cache)


def _answer(request: Request[Any, Any, Any], file: File) -> Response[bytes]:
    headers = {"cache-control": file.cache, "vary": "accept-encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, media_type=file.media, headers={**headers, "content-encoding": "gzip"})
    return Response(file.body, media_type=file.media, headers=headers)
