/** Gauges of edges, and of the gateway that they hand actions over to. */
import type { Registry } from 'prom-client';
import { gauge, one } from './gauge.js';
import type { MetricSources } from './metric-sources.js';

export function edgeGauges(
  registry: Registry,
  { edge, gateway, nats }: Pick<MetricSources, 'edge' | 'gateway' | 'nats'>,
): void {
  gauge(
    registry,
    ['edge_sequencer', '1 while an edge is answered by the gateway that takes actions, else 0; only there'],
    () => {
      const facts = edge();
      return one(facts && (facts.sequencer ? 1 : 0));
    },
  );
  gauge(registry, ['edge_waiting', 'actions of an edge without an answer yet; only there'], () => one(edge()?.waiting));
  gauge(registry, ['edge_actions', 'actions that an edge handed over since its start; only there'], () =>
    one(edge()?.actions),
  );
  gauge(registry, ['edge_batches', 'messages in which it did; only there'], () => one(edge()?.batches));
  gauge(registry, ['edge_resent', 'messages that it sent again, since no reply came; only there'], () =>
    one(edge()?.resent),
  );
  gauge(registry, ['edge_unknown', 'actions that it answered outcome_unknown; only there'], () => one(edge()?.unknown));
  gauge(
    registry,
    ['nats_connected', '1 while connected to NATS, else 0; of edges and of gateways that serve them, also on standby'],
    () => {
      const connected = nats();
      return one(connected === null ? null : connected ? 1 : 0);
    },
  );
  gauge(registry, ['sequencer_messages', 'messages of edges since the start, by outcome', 'outcome'], () => {
    const facts = gateway()?.edges;
    if (facts === undefined || facts === null) return [];
    return [
      [{ outcome: 'judged' }, facts.batches],
      [{ outcome: 'refused' }, facts.refused],
      [{ outcome: 'busy' }, facts.busy],
    ];
  });
  gauge(registry, ['sequencer_actions', 'actions of edges that were judged since the start'], () =>
    one(gateway()?.edges?.actions),
  );
}
