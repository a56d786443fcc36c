import { unusedMinOrderValues } from '../../core/min-order.js';
import { servedTokens, unusedFloors } from '../../core/operator-row.js';
import type { Market } from '../../core/types.js';
import type { CommandConfig } from '../config.js';

type Named = Pick<CommandConfig, 'OPERATOR_FLOORS' | 'REFERENCE_PRICES' | 'MIN_ORDER_VALUES'>;

/** One line per name in a setting that no listed market bears: misspelt, or not listed yet. Such an entry has no effect. */
export function unusedNames(markets: readonly Market[], settings: Named): string[] {
  const pairs = new Set(markets.map(({ pair }) => pair));
  const floors = unusedFloors(servedTokens(markets), settings.OPERATOR_FLOORS);
  const prices = Object.keys(settings.REFERENCE_PRICES).filter((pair) => !pairs.has(pair));
  const values = unusedMinOrderValues(markets, settings.MIN_ORDER_VALUES);
  return [
    ...floors.map((name) => `OPERATOR_FLOORS names ${name}, which no listed pair trades`),
    ...prices.map((name) => `REFERENCE_PRICES names ${name}, which is no listed pair`),
    ...values.map((name) => `MIN_ORDER_VALUES names ${name}, which is no listed pair or quote token`),
  ];
}
