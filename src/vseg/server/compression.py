"""Smaller answers for browsers that take gzip: files packed when the page was built, JSON packed here.

The hot route is not among them: its answers are a few numbers.
"""

import gzip
import json
import mimetypes
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.staticfiles import NotModifiedResponse, PathLike, StaticFiles
from starlette.types import Scope

SMALLEST = 1000  # bytes; below, packing saves no packet
LEVEL = 5
TEXT = ("application/json", "image/svg+xml")
VARY = {"Vary": "Accept-Encoding"}
PACKED = {"Content-Encoding": "gzip"}


class PackedFiles(StaticFiles):
    """A folder of files, some with a packed twin beside them: experiment.js.gz."""

    def file_response(
        self, full_path: PathLike, stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """The file or its twin, or that the browser has it already."""
        return self.of(Path(full_path), Headers(scope=scope))

    def of(self, path: Path, asked: Headers, **headers: str) -> Response:
        """One file of this folder for a request with these headers."""
        twin = path.with_name(f"{path.name}.gz")
        packed = takes_gzip(asked) and twin.is_file()
        found = twin if packed else path
        response = FileResponse(
            found,
            headers={**VARY, **(PACKED if packed else {}), **headers},
            media_type=mimetypes.guess_type(path.name)[0] or "application/octet-stream",
            stat_result=found.stat(),
        )
        return (
            NotModifiedResponse(response.headers)
            if self.is_not_modified(response.headers, asked)
            else response
        )


def json_response(request: Request, content: Any, status: int = 200) -> Response:
    """JSON, packed if that is worth it and the browser takes it; large ones take a while, so call it in a thread."""
    body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    return packed(request, body, "application/json", status)


def packed(
    request: Request,
    body: bytes,
    media_type: str,
    status: int = 200,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Response:
    """A body as it is, or packed if that is worth it and the browser takes it; pictures are packed as they come."""
    smaller = len(body) >= SMALLEST and media_type in TEXT and takes_gzip(request.headers)
    if smaller:
        body = gzip.compress(body, LEVEL, mtime=0)
    return Response(body, status, {**headers, **VARY, **(PACKED if smaller else {})}, media_type)


def takes_gzip(asked: Headers) -> bool:
    """Whether a request accepts gzip."""
    for part in asked.get("accept-encoding", "").lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
