"""What tests of the live controller share."""

import pytest

from postgres_cases import MISSING, Postgres, is_there


@pytest.fixture(scope="session")
def postgres():
    """A real PostgreSQL."""
    if not is_there():
        pytest.skip(MISSING)
    server = Postgres()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    """An empty store: each test with it runs on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    return request.getfixturevalue("postgres").new_database()
