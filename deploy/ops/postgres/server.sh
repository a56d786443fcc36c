#!/bin/sh
# One of the two servers of the profile `scaled`: the primary when PRIMARY_HOST is one of SERVER_NAMES, else a replica of PRIMARY_HOST. What is given
# is passed on to PostgreSQL.
set -eu

case " $SERVER_NAMES " in
  # A replica that is named here before it was promoted stays one, and takes no writes, until it is.
  *" $PRIMARY_HOST "*) exec docker-entrypoint.sh postgres "$@" ;;
esac

if [ -f "$PGDATA/PG_VERSION" ] && [ ! -f "$PGDATA/standby.signal" ]; then
  # It may have what no other server has: nothing here may decide to throw that away.
  echo "$PGDATA is of a primary, and DATABASE_HOST names another one ($PRIMARY_HOST); to make a replica of this server, empty it first" >&2
  exit 1
fi
if [ ! -f "$PGDATA/PG_VERSION" ]; then
  mkdir -p "$PGDATA"
  # The server refuses a folder that others may read.
  chmod 700 "$PGDATA"
  until pg_isready --quiet --host "$PRIMARY_HOST" --port "${PRIMARY_PORT:-5432}"; do sleep 1; done
  # A copy that was cut off is no copy. The name of its version is put in its place last, and says that all of it is there.
  find "$PGDATA" -mindepth 1 -delete
  pg_basebackup --pgdata "$PGDATA/copy" --wal-method stream --checkpoint fast --write-recovery-conf \
    --dbname "host=$PRIMARY_HOST port=${PRIMARY_PORT:-5432} user=replica"
  find "$PGDATA/copy" -mindepth 1 -maxdepth 1 ! -name PG_VERSION -exec mv {} "$PGDATA/" \;
  # A copy of a primary that ran alone for a while is to wait for a replica of its own once it is the primary, as primary.sh says.
  sed -i '/^synchronous_standby_names/d' "$PGDATA/postgresql.auto.conf"
  mv "$PGDATA/copy/PG_VERSION" "$PGDATA/"
  rmdir "$PGDATA/copy"
fi
# Its name is that of the server alone: a copy that is under way must not count as a replica.
exec postgres -D "$PGDATA" -c cluster_name=replica "$@"
