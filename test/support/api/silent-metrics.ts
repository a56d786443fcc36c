/** Sources of metrics for tests and benchmarks that read no metric: all of them are registered, and none has a value. */
import type { MetricSources } from '../../../server/ops/metrics.js';

export const SILENT_METRICS: MetricSources = {
  readiness: () => ({ ready: true, reason: null }),
  ledger: () => null,
  solvency: () => [],
  proofs: () => null,
  transfers: () => [],
  orderReverts: () => Promise.resolve(null),
  swapProfits: () => Promise.resolve([]),
  tokens: () => [],
  unattributed: () => Promise.resolve([]),
  suspense: () => Promise.resolve({ items: [], units: [] }),
  operator: () => Promise.resolve([]),
  pairs: () => Promise.resolve([]),
  business: () => Promise.resolve(null),
  signers: () => [],
  endpoints: () => [],
  heads: () => null,
  hints: () => null,
  settler: () => null,
  poster: () => null,
  storage: () => Promise.resolve({ bytes: 0, foldedOrderSeq: 0 }),
  replication: () => null,
  replica: () => null,
  gateway: () => null,
  nowMs: () => 0,
};
