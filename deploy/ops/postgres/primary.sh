#!/bin/sh
# Runs once, in a new primary: lets a replica in, and lets each commit wait for it.
set -eu

# Not by --set, whose words the machine's list of processes shows.
psql --no-psqlrc --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set ON_ERROR_STOP=1 <<'SQL'
\getenv password POSTGRES_PASSWORD
create role replica with replication login password :'password';
SQL
echo 'host replication replica samenet scram-sha-256' >> "$PGDATA/pg_hba.conf"
# Not before: until the replica is there, no commit of the setup would end.
echo "synchronous_standby_names = 'ANY 1 (replica)'" >> "$PGDATA/postgresql.conf"
