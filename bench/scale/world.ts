/** What bench:scale is measured with: four markets over five tokens, as the sandbox has with `--markets 4`, and makers that are funded in all of them. */
import { createMarket } from '../../core/market.js';
import type { Market } from '../../core/types.js';
import { commitGeneration } from '../../ledger/chain/ledger-log.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import type { Db } from '../../ledger/types.js';
import { depositEntries } from '../../keepers/watcher/derive/postings.js';
import { generationOf, OPERATOR } from '../../test/support/generations.js';
import { makers, signedBody } from '../gateway/requests.js';

const FUNDS_UNITS = 10n ** 30n;

const token = (symbol: string, digit: string, decimals: number): Market['base'] => ({
  symbol,
  address: `0x${digit.repeat(40)}`,
  decimals,
});
const [weth, usdc, dai, cbbtc] = [
  token('WETH', '1', 18),
  token('USDC', '2', 6),
  token('DAI', '3', 18),
  token('cbBTC', '4', 8),
];

const markets: Market[] = [
  createMarket({ index: 0, base: weth, quote: usdc, lotUnits: 10n ** 14n, tickLotUnits: 1n, maxTtlSec: 60 }),
  createMarket({ index: 1, base: weth, quote: dai, lotUnits: 10n ** 14n, tickLotUnits: 10n ** 12n, maxTtlSec: 60 }),
  createMarket({ index: 2, base: cbbtc, quote: usdc, lotUnits: 10n ** 3n, tickLotUnits: 1n, maxTtlSec: 60 }),
  createMarket({ index: 3, base: cbbtc, quote: weth, lotUnits: 10n ** 3n, tickLotUnits: 10n ** 9n, maxTtlSec: 60 }),
];

/** Lists the markets in an empty, migrated database, and funds and approves every maker of the requests. */
export async function prepareWorld(db: Db): Promise<void> {
  const entries = makers.flatMap((maker) =>
    [weth, usdc, dai, cbbtc].flatMap(({ address, symbol }) =>
      depositEntries(`deposit:${symbol}:${maker}`, maker, address, FUNDS_UNITS),
    ),
  );
  const ledger = await acquireWriter(db, 'ledger');
  const write = generationOf(1, { listed: markets, entries });
  await ledger.tx((tx) => commitGeneration(tx, db, write, { operator: OPERATOR }));
  await ledger.release();
  for (const maker of makers) await appendOperatorRow(db, { timeMs: 0, kind: 'approve', maker, note: '' });
}

/** The quotes of a maker in the first market: half bids and half asks that never cross those of others. */
const quote = (index: number, shift: number) => {
  const isBid = index % 2 === 0;
  const cents = 25 * (shift % 40) + 5 * Math.floor(index / 2);
  const price = isBid ? 200_000 - cents : 201_000 + cents;
  return {
    a: 10_000,
    b: isBid,
    p: `${Math.floor(price / 100)}.${String(price % 100).padStart(2, '0')}`.replace(/\.?0+$/, ''),
    s: `0.${5 + (index % 4)}`,
    r: false,
    t: { limit: { tif: 'Gtc' } },
  };
};

/** A signed action that places so many quotes. `shift` moves their prices. */
export const placeBody = (maker: number, count: number, shift: number): string =>
  signedBody(
    { type: 'order', orders: Array.from({ length: count }, (_, index) => quote(index, shift)), grouping: 'na' },
    maker,
  );

/** A signed action that replaces the maker's quotes, by their order ids, which are in the order in which they were placed. */
export const modifyBody = (maker: number, oids: readonly number[], shift: number): string =>
  signedBody({ type: 'batchModify', modifies: oids.map((oid, index) => ({ oid, order: quote(index, shift) })) }, maker);

/** A signed action that cancels orders of the first market. */
export const cancelBody = (maker: number, oids: readonly number[]): string =>
  signedBody({ type: 'cancel', cancels: oids.map((o) => ({ a: 10_000, o })) }, maker);

interface Reply {
  status: string;
  response: { data?: { statuses: { resting?: { oid: number } }[] } };
}

/** The order ids that an answer names. Throws Error unless every entry of the action rests. */
export function restingOids(answer: string): number[] {
  const { response } = JSON.parse(answer) as Reply;
  return (response.data?.statuses ?? []).map(({ resting }) => {
    if (resting === undefined) throw new Error(answer.slice(0, 200));
    return resting.oid;
  });
}
