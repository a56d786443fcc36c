/** A ledger log in a database, two makers with money in it, and a generation in which they trade. */
import type { Address } from '../../core/types.js';
import { commitGeneration } from '../../ledger/chain/ledger-log.js';
import type { Db, GenerationWrite } from '../../ledger/types.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import type { OpenTestDb } from './db.js';
import { OPERATOR, deposit, fillOf, generationOf, withFills } from './generations.js';
import { USDC, WETH, WETH_DAI, WETH_USDC } from './markets.js';

// Neither may be the address of a token: the markets of tests use addresses like those of `MAKERS` for tokens.
export const [alice, bob] = [`0x${'a'.repeat(40)}`, `0x${'b'.repeat(40)}`] as const satisfies readonly Address[];
export const ETHER = 10n ** 18n;
export const MARKETS = [WETH_USDC, WETH_DAI];

interface Ledger {
  db: Db;
  commit(write: GenerationWrite): Promise<'committed' | 'replayed'>;
}

/** An empty, migrated database, and how generations are committed to its log. */
export async function openLedger(open: OpenTestDb): Promise<Ledger> {
  const db = await open();
  const writer = await acquireWriter(db, 'ledger');
  return {
    db,
    commit: (write) => writer.tx((tx) => commitGeneration(tx, db, write, { operator: OPERATOR })),
  };
}

/** Lists both markets and gives alice and bob base and quote. */
export function opening(): GenerationWrite {
  const deposits = [
    deposit(1, 0, alice, WETH.address, 100n * ETHER),
    deposit(1, 1, alice, USDC.address, 300_000_000_000n),
    deposit(1, 2, bob, WETH.address, 50n * ETHER),
  ];
  return generationOf(1, {
    listed: MARKETS,
    custody: deposits.flatMap((one) => one.custody),
    entries: deposits.flatMap((one) => one.entries),
    netCapital: deposits.flatMap((one) => one.netCapital),
  });
}

/** What `trading` buys across two makers. */
export const BUY = [
  { oid: 1, maker: alice, priceTicks: 300_001n, baseUnits: ETHER + 1n },
  { oid: 2, maker: bob, priceTicks: 300_001n, baseUnits: ETHER / 3n },
  { oid: 5, maker: alice, priceTicks: 300_002n, baseUnits: 2n * ETHER },
];
/** What it sells. */
export const SELL = [{ oid: 3, maker: alice, priceTicks: 299_999n, baseUnits: ETHER / 7n }];

/** A buy across two makers and a sell, in one generation. */
export function trading(n: number, firstFillSeq = 1): GenerationWrite {
  const fills = [
    fillOf(n, WETH_USDC, firstFillSeq, 'ask', BUY),
    fillOf(n, WETH_USDC, firstFillSeq + 1, 'bid', SELL, { residualUnits: -5n }),
  ];
  return generationOf(n, withFills(MARKETS, fills));
}

/** The code of the error that the work throws. */
export async function codeOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => 'nothing was thrown',
    (error: unknown) => (error as { code?: unknown }).code ?? error,
  );
}

/** Every row of every table, to see that nothing changed. */
export async function dump(db: Db): Promise<string> {
  const tables = [
    ...[
      'generations',
      'blocks',
      'markets',
      'custody_events',
      'posts_seen',
      'seq_resets',
      'halts',
      'fills',
      'fill_legs',
    ],
    ...['order_fills', 'market_progress', 'snapshots', 'entries', 'balances'],
  ];
  const rows: string[] = [];
  for (const table of tables) {
    const lines = ((await db.knex(table).select()) as object[]).map((row) => `${table} ${JSON.stringify(row)}`);
    rows.push(...lines.sort());
  }
  return rows.join('\n');
}
