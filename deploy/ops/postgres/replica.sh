#!/bin/sh
# A replica of PRIMARY_HOST: copies it when there is no copy yet, and follows. What is given is passed on to the server.
set -eu

if [ ! -d "$PGDATA" ]; then
  # A copy that was cut off is no copy.
  rm -rf "$PGDATA.partial"
  pg_basebackup --pgdata "$PGDATA.partial" --wal-method stream --checkpoint fast --write-recovery-conf \
    --dbname "host=$PRIMARY_HOST port=${PRIMARY_PORT:-5432} user=replica"
  mv "$PGDATA.partial" "$PGDATA"
fi
# Its name is that of the server alone: a copy that is under way must not count as a replica.
exec postgres -D "$PGDATA" -c cluster_name=replica "$@"
