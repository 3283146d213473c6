"""An open database for each test, of either kind."""

import pytest

from vseg import store


@pytest.fixture
def db(database_url):
    with store.open(database_url) as opened:
        yield opened
