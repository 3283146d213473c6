"""Import optional dependencies; `MissingExtra` says how to install one that is missing."""

from typing import Any

from vseg.errors import MissingExtra


def import_pyarrow() -> Any:
    """Return the module pyarrow; `MissingExtra` if it is not installed."""
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtra('Parquet files need pyarrow: pip install "vseg[parquet]".') from error
    return pyarrow


def import_parquet() -> Any:
    """Return the module pyarrow.parquet; `MissingExtra` if it is not installed."""
    import_pyarrow()
    import pyarrow.parquet

    return pyarrow.parquet


def import_playwright() -> Any:
    """Return the module playwright; `MissingExtra` if it is not installed."""
    try:
        import playwright
    except ImportError as error:
        raise MissingExtra('Filming a study needs playwright: pip install "vseg[film]".') from error
    return playwright
