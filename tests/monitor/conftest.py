"""An open database for each test, SQLite and PostgreSQL."""

import pytest

from vseg import store


@pytest.fixture
def db(database_url):
    with store.open(database_url) as opened:
        yield opened
