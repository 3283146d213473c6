"""Gzip for browsers that accept it: static files are compressed when the page is built, JSON when it is sent.

Replies of the records route are not compressed: they are a few numbers.
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

MIN_BYTES = 1000  # a smaller body fits into one network packet anyway
LEVEL = 5
COMPRESSIBLE_TYPES = ("application/json", "image/svg+xml")
VARY = {"Vary": "Accept-Encoding"}
GZIP_ENCODED = {"Content-Encoding": "gzip"}


class PrecompressedFiles(StaticFiles):
    """A folder of files, some with a compressed copy beside them, such as experiment.js.gz."""

    def file_response(
        self, full_path: PathLike, stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """Send a file of the folder (called by StaticFiles)."""
        return self.send_file(Path(full_path), Headers(scope=scope))

    def send_file(self, path: Path, request_headers: Headers) -> Response:
        """Return the file, its compressed copy, or 304 if the browser has the current version."""
        compressed_copy = path.with_name(f"{path.name}.gz")
        is_compressed = accepts_gzip(request_headers) and compressed_copy.is_file()
        file = compressed_copy if is_compressed else path
        response = FileResponse(
            file,
            headers={**VARY, **(GZIP_ENCODED if is_compressed else {})},
            media_type=mimetypes.guess_type(path.name)[0] or "application/octet-stream",
            stat_result=file.stat(),
        )
        if self.is_not_modified(response.headers, request_headers):
            return NotModifiedResponse(response.headers)
        return response


def json_response(request: Request, content: Any, status: int = 200) -> Response:
    """Return `content` as JSON, compressed where useful; call it in a thread, since large content takes a while."""
    body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    return compressed_response(request, body, "application/json", status)


def compressed_response(
    request: Request,
    body: bytes,
    media_type: str,
    status: int = 200,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Response:
    """Return a response with this body, compressed if it is text of some length and the browser accepts gzip."""
    compress = len(body) >= MIN_BYTES and media_type in COMPRESSIBLE_TYPES and accepts_gzip(request.headers)
    if compress:
        body = gzip.compress(body, LEVEL, mtime=0)
    return Response(body, status, {**headers, **VARY, **(GZIP_ENCODED if compress else {})}, media_type)


def accepts_gzip(request_headers: Headers) -> bool:
    """Return whether a request accepts gzip."""
    for encoding in request_headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = encoding.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
