"""The errors that vseg raises.

VsegError
├── InvalidInput    a value, file or option is not what was expected      (also a ValueError)
├── NotConverged    a fit stopped before reaching its tolerance; `.result` is what it had reached
├── NotFound        a file, participant or image does not exist           (also a LookupError)
├── Conflict        something prevents the action, such as an output folder that exists; `.reason` is a code for it
├── NotAllowed      a token or a password is missing or wrong
├── MissingExtra    an optional dependency is not installed               (also an ImportError)
└── SchemaMismatch  a file was written by another version of vseg

A message says what was expected, what was found, and what to do. The command line prints it and exits with 1; the
server returns it as JSON.
"""

from typing import Any

__all__ = [
    "Conflict",
    "InvalidInput",
    "MissingExtra",
    "NotAllowed",
    "NotConverged",
    "NotFound",
    "SchemaMismatch",
    "VsegError",
    "VsegWarning",
]


class VsegError(Exception):
    """Base class of the errors that vseg raises."""


class InvalidInput(VsegError, ValueError):  # noqa: N818
    """A value, file or option is not what was expected."""


class NotConverged(VsegError, RuntimeError):  # noqa: N818
    """A fit stopped before reaching its tolerance; `.result` is what the function would have returned."""

    def __init__(self, message: str, result: Any = None):
        super().__init__(message)
        self.result = result


class NotFound(VsegError, LookupError):  # noqa: N818
    """A file, participant or image does not exist."""


class Conflict(VsegError):  # noqa: N818
    """Something prevents the action, such as an output folder that exists; `.reason` is a code for programs."""

    def __init__(self, message: str, reason: str = "conflict"):
        super().__init__(message)
        self.reason = reason


class NotAllowed(VsegError):  # noqa: N818
    """A token or a password is missing or wrong."""


class MissingExtra(VsegError, ImportError):  # noqa: N818
    """An optional dependency is not installed."""


class SchemaMismatch(VsegError):  # noqa: N818
    """A file was written by another version of vseg."""


class VsegWarning(UserWarning):
    """A warning about a valid result that needs the reader's attention."""
