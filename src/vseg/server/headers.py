"""ASGI middleware: the security headers of every response, and the path prefix of a reverse proxy."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Scripts, styles and images are loaded from this server only, and no other site may frame these pages. Prolific's ids
# are in the address, so the browser must not send it to other sites as the referrer.
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "fullscreen=(self), camera=(), microphone=(), geolocation=()",
    "Cross-Origin-Opener-Policy": "same-origin",
}
ENCODED_SECURITY_HEADERS = [
    (name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()
]
# Only where a request came by HTTPS, as the proxy says: a year, without subdomains, which may have other servers.
STRICT_TRANSPORT = [(b"strict-transport-security", b"max-age=31536000")]
NO_CACHE = [(b"cache-control", b"no-cache")]
PRIVATE = [(b"cache-control", b"private, no-cache")]
NO_STORE = [(b"cache-control", b"no-store")]
DOWNLOAD = {"Cache-Control": "private, no-store"}
"""For files with participants' data: their ETag would allow browsers and proxies to store them."""


class SecurityHeaders:
    """Adds the security headers; browsers may cache files if they revalidate them, and must not store data."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer through the inner app."""

        secure = STRICT_TRANSPORT if scope.get("scheme") == "https" else ()

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                caching = () if b"cache-control" in present else NO_CACHE if b"etag" in present else NO_STORE
                missing = [header for header in ENCODED_SECURITY_HEADERS if header[0] not in present]
                message["headers"] = [*message["headers"], *missing, *secure, *caching]
            await send(message)

        await self.app(_replace_nul(scope), receive, send_with_headers)


class PrivateCaching:
    """Lets only the browser itself store what researchers see, if it revalidates it: a proxy must not."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer through the inner app."""

        async def send_with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                if b"etag" in present and b"cache-control" not in present:
                    message["headers"] = [*message["headers"], *PRIVATE]
            await send(message)

        await self.app(scope, receive, send_with_header)


def _replace_nul(scope: Scope) -> Scope:
    """Replace NUL in an address by U+FFFD, like any byte that is not text: PostgreSQL rejects strings with NUL."""
    if scope["type"] != "http" or ("\0" not in scope["path"] and b"%00" not in scope["query_string"]):
        return scope
    path, query = scope["path"].replace("\0", "\ufffd"), scope["query_string"].replace(b"%00", b"%EF%BF%BD")
    return {**scope, "path": path, "query_string": query}


class PathPrefix:
    """Serves under a path prefix, whether or not the reverse proxy strips it."""

    def __init__(self, app: ASGIApp, prefix: str):
        self.app = app
        self.prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer through the inner app, with the prefix as its root path."""
        if scope["type"] == "http" and self.prefix:
            path = scope["path"]
            if path != self.prefix and not path.startswith(f"{self.prefix}/"):
                path = f"{self.prefix}{path}"
            scope = {**scope, "root_path": self.prefix, "path": path}
        await self.app(scope, receive, send)
