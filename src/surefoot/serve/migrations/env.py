"""Run by Alembic: apply migrations over the connection that `surefoot.serve.migrate` opened."""

from alembic import context

from surefoot.serve.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
