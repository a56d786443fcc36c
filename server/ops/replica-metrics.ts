/** Gauges of the database's replicas: those of a primary, and the one that a reader reads. */
import type { Registry } from 'prom-client';
import { gauge, one } from './gauge.js';
import type { MetricSources } from './metric-sources.js';

export function replicaGauges(
  registry: Registry,
  { replication, replica }: Pick<MetricSources, 'replication' | 'replica'>,
): void {
  gauge(registry, ['replicas', 'replicas of the database, by whether a commit waits for them', 'state'], () =>
    Object.entries(replication()?.counts ?? {}).map(([state, count]) => [{ state }, count]),
  );
  gauge(registry, ['replication_unsafe', '1 while replicas are attached and commits wait for none, else 0'], () => {
    const facts = replication();
    return one(facts && (facts.isUnsafe ? 1 : 0));
  });
  gauge(
    registry,
    ['replica_lag_seconds', 'how far the database of a reader may be behind its primary; only there'],
    () => {
      const facts = replica();
      return one(facts && facts.lagMs / 1_000);
    },
  );
  gauge(
    registry,
    ['replica_behind', '1 while a reader refuses data because its database is too far behind; only there'],
    () => {
      const facts = replica();
      return one(facts && (facts.isBehind ? 1 : 0));
    },
  );
}
