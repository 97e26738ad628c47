"""What alembic runs: our migrations, on the connection that is handed over."""

from alembic import context

from trainyard.live.store.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
