"""Bringing a store to this version; alembic is slow to import and only needed if there is something to do."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from trainyard.errors import TrainyardError

HEAD = "0001"
HERE = Path(__file__).parent / "migrations"


def version_of(connection: Connection) -> str | None:
    """Return the version of a store; None if it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def migrate(connection: Connection) -> None:
    """Make the tables of an empty store, or change those of an older one."""
    found = version_of(connection)
    if found == HEAD:
        return
    if found is not None and found > HEAD:
        raise TrainyardError(f"the store is of version {found}, newer than this program ({HEAD}); upgrade it")
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(HERE))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
