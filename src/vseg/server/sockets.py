"""The socket on which the server listens, and its address."""

import errno
import socket

from vseg.errors import Conflict, InvalidInput

BACKLOG = 2048


def open_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one. `Conflict` if the port is in use."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        if not 0 <= port < 65536:
            raise OverflowError
        listening = socket.socket(family, kind, protocol)
    except (socket.gaierror, OverflowError, UnicodeError):
        raise InvalidInput(
            f"Expected an address of this computer and a port from 0 to 65535, got {host!r} and {port}."
        ) from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise Conflict(
                f"Port {port} of {host} is in use; stop the program that uses it, or choose another port."
            ) from None
        raise InvalidInput(f"Cannot listen on port {port} of {host}: {error.strerror}.") from None
    listening.set_inheritable(True)
    return listening


def get_base_url(host: str, listening: socket.socket, prefix: str = "") -> str:
    """Return the address of the server as seen from this computer."""
    name = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{listening.getsockname()[1]}{prefix}"
