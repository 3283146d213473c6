"""Run the migrations for Alembic, on the connection that vseg.store.migrate has opened."""

from alembic import context

from vseg.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
