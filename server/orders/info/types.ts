import type { JsonObject } from '../../../core/wire/shape.js';
import type { Db } from '../../../ledger/types.js';
import type { MarketDataView } from '../../market-data/view.js';
import type { Gateway } from '../engine.js';
import type { QueryBudget } from '../query-budget.js';
import type { GatewayConfig } from '../types.js';

export interface InfoDeps {
  gateway: Gateway;
  db: Db;
  config: Pick<GatewayConfig, 'referencePrices'>;
  marketData: MarketDataView;
  /** Unix milliseconds. */
  clock: () => number;
  /** Absent where queries are not counted. */
  queries?: QueryBudget;
}

/** Answers one type of query with a JSON value. Throws WireError when a field of the request has another shape. */
export type InfoHandler = (request: JsonObject, deps: InfoDeps) => unknown;
