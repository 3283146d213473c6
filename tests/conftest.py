"""One hypothesis profile for all tests: the same examples in every run, and no clock. Databases to test on."""

from contextlib import ExitStack

import pytest
from hypothesis import settings

settings.register_profile("vseg", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("vseg")


@pytest.fixture(scope="session")
def postgres_server():
    """A real PostgreSQL, started on first use; see databases.py."""
    from databases import postgres

    with ExitStack() as stack:
        try:
            server = stack.enter_context(postgres())
        except RuntimeError as error:
            pytest.fail(str(error), pytrace=False)
        yield server


@pytest.fixture(scope="session")
def postgres_url(postgres_server):
    """Its URL, of a database with our tables for all tests together; `database_url` gives each its own."""
    url = postgres_server.fresh()
    yield url
    postgres_server.drop(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """An empty database of the test's own, of either kind, so that each test runs on both."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/vseg.db"
    else:
        with request.getfixturevalue("postgres_server").borrowed() as url:
            yield url
