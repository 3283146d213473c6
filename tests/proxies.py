"""Real proxies in front of a server, and a stranger who smuggles requests through them.

The proxies that are installed are used; nginx, Caddy and HAProxy are in Debian.
"""

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from servers import pause

PATIENCE_S = 30

# As guides for sites with WebSockets recommend: the client's offer is passed on, and connections are used again.
NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_buffer_size 1m;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
  upstream vseg {{ server 127.0.0.1:{server}; keepalive 16; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://vseg; proxy_http_version 1.1; proxy_request_buffering {buffering};
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade;
    }}
  }}
}}
"""
CADDY = """
{{
  admin off
  auto_https off
  storage file_system {folder}
}}
http://:{port} {{
  bind 127.0.0.1
  reverse_proxy 127.0.0.1:{server}
}}
"""
HAPROXY = """
defaults
  mode http
  timeout connect 30s
  timeout client 30s
  timeout server 30s
  http-reuse always
frontend front
  bind 127.0.0.1:{port}
  default_backend vseg
backend vseg
  server vseg 127.0.0.1:{server}
"""
PROXIES: dict[str, tuple[str, str, Callable[[str, Path], list[str]]]] = {
    "nginx": (
        "nginx",
        NGINX.replace("{buffering}", "on"),
        lambda nginx, path: [nginx, "-p", str(path.parent), "-e", "error.log", "-c", str(path)],
    ),
    "nginx, unbuffered": (
        "nginx",
        NGINX.replace("{buffering}", "off"),
        lambda nginx, path: [nginx, "-p", str(path.parent), "-e", "error.log", "-c", str(path)],
    ),
    "caddy": (
        "caddy",
        CADDY,
        lambda caddy, path: [caddy, "run", "--adapter", "caddyfile", "--config", str(path)],
    ),
    "haproxy": ("haproxy", HAPROXY, lambda haproxy, path: [haproxy, "-db", "-f", str(path)]),
}


def find_proxy(name: str) -> str | None:
    """Return the path of the program of a proxy, or None if it is not installed."""
    program = PROXIES[name][0]
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")


def explain_missing(name: str) -> str:
    return f"{PROXIES[name][0]} is not installed; Debian has it as a package."


@contextmanager
def run_proxy(name: str, folder: Path, server: int) -> Iterator[tuple[str, int]]:
    """Run an installed proxy in front of the server on this port; yield its address."""
    _, template, command = PROXIES[name]
    path = find_proxy(name)
    assert path is not None, explain_missing(name)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = free.getsockname()
    config = folder / "proxy.conf"
    config.write_text(template.format(folder=folder, server=server, port=address[1]))
    with (folder / "proxy.log").open("w") as log:
        # With a home of its own, because Caddy writes to the user's.
        process = subprocess.Popen(
            command(path, config), stdout=log, stderr=log, env={"HOME": str(folder), "PATH": "/usr/bin"}
        )
        try:
            while True:
                assert process.poll() is None, (folder / "proxy.log").read_text()
                with suppress(ConnectionRefusedError), closing(socket.create_connection(address)):
                    break
                pause()
            yield address
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def smuggle(address: tuple[str, int], smuggled: bytes, *, padding: int, path: str) -> bytes:
    """Post a body that ends with the beginning of a request, with an offer to upgrade; return the reply, if any."""
    body = b"\r\n" * padding + smuggled
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with closing(socket.create_connection(address, timeout=PATIENCE_S)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError):
            connection.sendall(head.encode())
            connection.sendall(body)
            return connection.recv(4096)
    return b""


def has_reached_server(reply: bytes) -> bool:
    """Return whether a proxy has passed a request on, by the reply to it.

    The server's own replies have a header that proxies do not add. A 502 says that the server closed the connection
    while the proxy was still sending the body.
    """
    return b"content-security-policy:" in reply.lower() or reply.startswith(b"HTTP/1.1 502")
