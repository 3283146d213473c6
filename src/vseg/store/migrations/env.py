"""Alembic comes here to run the migrations, on the connection that migrate.py holds."""

from alembic import context

from vseg.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
