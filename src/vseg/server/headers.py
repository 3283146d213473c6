"""What every answer carries, whatever route or error it comes from, and the path prefix of a reverse proxy."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Scripts, styles and pictures come from here alone; nobody shows these pages inside theirs; and since Prolific's
# ids are in the address, no other site is told the address.
SECURITY = {
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
ENCODED = [(name.lower().encode(), value.encode()) for name, value in SECURITY.items()]
NO_CACHE = [(b"cache-control", b"no-cache")]
NO_STORE = [(b"cache-control", b"no-store")]


class Secured:
    """Adds the security headers; files may be kept but are asked for again, data are not kept."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer through the app inside."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                kept = () if b"cache-control" in given else NO_CACHE if b"etag" in given else NO_STORE
                ours = [header for header in ENCODED if header[0] not in given]
                message["headers"] = [*message["headers"], *ours, *kept]
            await send(message)

        await self.app(_without_nul(scope), receive, with_headers)


def _without_nul(scope: Scope) -> Scope:
    """An address with NUL read like one with any other byte that is no text: PostgreSQL refuses to look for it."""
    if scope["type"] != "http" or ("\0" not in scope["path"] and b"%00" not in scope["query_string"]):
        return scope
    path, query = scope["path"].replace("\0", "\ufffd"), scope["query_string"].replace(b"%00", b"%EF%BF%BD")
    return {**scope, "path": path, "query_string": query}


class Prefixed:
    """Serves under a path prefix, whether or not the proxy in front strips it."""

    def __init__(self, app: ASGIApp, prefix: str):
        self.app = app
        self.prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer through the app inside, which learns the prefix as its root path."""
        if scope["type"] == "http" and self.prefix:
            path = scope["path"]
            if path != self.prefix and not path.startswith(f"{self.prefix}/"):
                path = f"{self.prefix}{path}"
            scope = {**scope, "root_path": self.prefix, "path": path}
        await self.app(scope, receive, send)
