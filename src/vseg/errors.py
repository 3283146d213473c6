"""Everything that can go wrong, as one tree.

VsegError
├── InvalidInput    a value, file or option is not what was expected      (also a ValueError)
├── NotConverged    a fit stopped before its tolerance; `.result` holds what it had reached
├── NotFound        a file, participant or image is not there             (also a LookupError)
├── Conflict        something is in the way, such as an output folder that exists; `.reason` is a word for it
├── NotAllowed      a token or a password is missing or wrong
├── MissingExtra    an optional dependency is not installed               (also an ImportError)
└── SchemaMismatch  a file was written by another version of vseg

A message says what was expected, what came, and what to do.
"""

from typing import Any


class VsegError(Exception):
    """Anything vseg raises on purpose."""


class InvalidInput(VsegError, ValueError):  # noqa: N818
    """A value, file or option is not what was expected."""


class NotConverged(VsegError, RuntimeError):  # noqa: N818
    """A fit stopped before its tolerance; `.result` holds what it had reached."""

    def __init__(self, message: str, result: Any = None):
        super().__init__(message)
        self.result = result


class NotFound(VsegError, LookupError):  # noqa: N818
    """A file, participant or image is not there."""


class Conflict(VsegError):  # noqa: N818
    """Something is in the way, such as an output folder that exists; `.reason` is a word for programs."""

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
    """The result stands, but the reader should know something about it."""
