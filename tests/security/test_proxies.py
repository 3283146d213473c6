"""Test the server behind real proxies: a stranger's requests must not become part of other people's.

The proxies that are installed are used (nginx, Caddy and HAProxy are in Debian); the others are skipped.
"""

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from servers import STUDY, ParticipantClient, RunningServer, pause, response, run_server

PATIENCE_S = 30
ROUNDS = 20

# As guides for sites with WebSockets recommend: the client's offer is passed on, and connections are used again.
NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
  upstream vseg {{ server 127.0.0.1:{server}; keepalive 1; }}
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
http://127.0.0.1:{port} {{
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


@pytest.fixture(params=PROXIES)
def proxied(request, tmp_path) -> Iterator[tuple[RunningServer, tuple[str, int]]]:
    """Run a server behind a proxy; yield both, the proxy as its address."""
    with (
        run_server(f"sqlite:///{tmp_path}/vseg.db", STUDY) as server,
        _run_proxy(request.param, tmp_path, httpx.URL(server.base).port or 0) as address,
    ):
        yield server, address


@contextmanager
def _run_proxy(name: str, folder: Path, server: int) -> Iterator[tuple[str, int]]:
    program, template, command = PROXIES[name]
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")
    if path is None:
        pytest.skip(f"{program} is not installed; Debian has it as a package.")
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


def _attack(address: tuple[str, int], smuggled: bytes, *, padding: int, path: str) -> None:
    """Post a body that ends with the beginning of a request, with an offer to upgrade; read the reply, if any."""
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
            connection.recv(100)


@pytest.mark.parametrize("padding", [0, 10_000], ids=["short", "long"])
@pytest.mark.parametrize("path", ["/s/tiny/records", "/s/tiny/sessions"])
def test_answers_behind_a_proxy_are_stored_if_they_are_acknowledged(proxied, path, padding):
    """A stranger smuggles heads that would swallow the next request on the proxy's connection."""
    server, address = proxied
    smuggled = b"GET /pages/researcher.css HTTP/1.1\r\nHost: x\r\nContent-Length: 700\r\n\r\n"
    acknowledged = []
    with httpx.Client(
        base_url="http://{}:{}/".format(*address), timeout=PATIENCE_S, trust_env=False
    ) as client:
        began = client.post("s/tiny/sessions", json={"consented": True})
        assert began.status_code == 201, began.text
        person = ParticipantClient(client, "tiny", began.json())
        for number in range(ROUNDS):
            _attack(address, smuggled, padding=padding, path=path)
            reply = person.send(response(number, number))
            assert reply.status_code == 200, reply.text
            assert reply.json() == {"stored": [number]}, "the reply to this request, not to another"
            acknowledged.append(number)
    assert [row["seq"] for row in server.responses()] == acknowledged
