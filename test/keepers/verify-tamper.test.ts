/** One change of one stored row at a time: each is found, by the check that should, and nothing else is wrong. */
import { expect } from 'chai';
import { MaxUint256, parseUnits } from 'ethers';
import { verifyLedger } from '../../keepers/verify/verify.js';
import { VerifyError } from '../../keepers/verify/verification.js';
import { CurveBook__factory, Entrypoint__factory } from '../../typechain-types/index.js';
import { custodyOf, GAS, type Custody } from '../support/custody.js';
import { forEachDatabase } from '../support/db.js';
import { startManualChain, type ManualChain } from '../support/keeper-stack.js';
import { startSwapStack, type SwapStack } from '../support/swap-stack.js';
import { verifyDeps, verifyRpc } from '../support/verify.js';
import { storeAsOlder } from '../support/older-fills.js';

const SWAP_GAS = { gasLimit: 1_000_000n };

type Row = Record<string, unknown>;

/** Table and the columns that name a row of it, which row, what is changed and into what, and the check that must find it. */
interface Change {
  table: string;
  key: readonly string[];
  where?: object;
  column: string;
  into: (value: unknown, row: Row) => unknown;
  check: string;
}

const plusOne = (value: unknown): string => (BigInt(String(value)) + 1n).toString();
const next = (value: unknown): number => Number(value) + 1;
const other = (value: unknown): string => String(value).replace(/.$/, (digit) => (digit === '0' ? '1' : '0'));

const changesOf = (
  table: string,
  key: readonly string[],
  columns: readonly [column: string, into: Change['into'], check: string, where?: object][],
): Change[] =>
  columns.map(([column, into, check, where]) => ({ table, key, column, into, check, ...(where && { where }) }));

const CHANGES: readonly Change[] = [
  ...changesOf(
    'checkpoints',
    ['checkpoint_seq'],
    [
      ['root', other, 'checkpoints'],
      ['leaf_count', next, 'checkpoints'],
      ['block_hash', other, 'checkpoints'],
      ['block_number', next, 'checkpoints'],
      ['generation', (value) => Number(value) - 1, 'checkpoints'],
      ['ack_fill_seqs', () => '{"0":7}', 'checkpoints'],
    ],
  ),
  ...changesOf(
    'checkpoint_rows',
    ['account', 'token', 'checkpoint_seq'],
    [
      ['balance_units', plusOne, 'checkpoints'],
      ['reserved_units', plusOne, 'checkpoints'],
      ['account', () => `0x${'ab'.repeat(20)}`, 'checkpoints'],
    ],
  ),
  ...changesOf(
    'settlements',
    ['settlement_no'],
    [
      ['amount_units', plusOne, 'withdrawals'],
      ['basis', plusOne, 'withdrawals'],
      ['token', () => `0x${'ab'.repeat(20)}`, 'withdrawals'],
      ['cut_block', () => 0, 'withdrawals'],
      ['cut_generation', next, 'checkpoints'],
    ],
  ),
  ...changesOf(
    'custody_events',
    ['tx_hash', 'log_index'],
    [
      ['amount_units', plusOne, 'withdrawals', { settlement_no: 1 }],
      ['settlement_no', () => 99, 'withdrawals', { settlement_no: 1 }],
      ['ready_at_sec', next, 'withdrawals', { settlement_no: 1 }],
      ['amount_units', plusOne, 'withdrawals', { kind: 'requested' }],
      ['amount_units', plusOne, 'postings', { kind: 'executed' }],
      ['kind', () => 'requested', 'postings', { kind: 'deposited' }],
    ],
  ),
  ...changesOf(
    'claims',
    ['maker', 'token'],
    [
      ['claim_units', plusOne, 'withdrawals'],
      ['basis', plusOne, 'withdrawals'],
      ['ready_at_sec', next, 'withdrawals'],
      ['pending_since_block', () => 5, 'withdrawals'],
    ],
  ),
  ...changesOf(
    'pair_gains',
    ['pair'],
    [
      ['gain_units', plusOne, 'gains'],
      ['fills', next, 'gains'],
      ['loss_key', () => '1', 'gains'],
    ],
  ),
  ...changesOf(
    'candles',
    ['market', 'interval_no', 'open_ms'],
    [
      ['close_ticks', plusOne, 'market data'],
      ['trades', next, 'market data'],
      ['open_ms', next, 'market data'],
    ],
  ),
  ...changesOf(
    'maker_positions',
    ['maker', 'market'],
    [
      ['realised_units', plusOne, 'market data'],
      ['parts', next, 'market data'],
    ],
  ),
  ...changesOf(
    'maker_hours',
    ['maker', 'market', 'hour_ms'],
    [
      ['markout_1', plusOne, 'activity'],
      ['offered_ask', plusOne, 'activity'],
      ['hour_ms', (value) => Number(value) + 3_600_000, 'activity'],
    ],
  ),
  ...changesOf('taker_days', ['taker', 'market', 'day_ms'], [['slippage_quote', plusOne, 'activity']]),
  ...changesOf('market_hours', ['market', 'hour_ms'], [['gain_quote', plusOne, 'activity']]),
  ...changesOf(
    'order_fills',
    ['market', 'fill_seq', 'oid'],
    [
      ['quote_units', plusOne, 'market data'],
      ['closed_units', plusOne, 'market data'],
      ['timestamp_ms', next, 'market data'],
      ['base_units', plusOne, 'curves', { fill_seq: 2 }],
      ['maker', other, 'curves', { fill_seq: 2 }],
      ['price_ticks', plusOne, 'curves', { fill_seq: 2 }],
    ],
  ),
  ...changesOf('taker_fees', ['taker', 'token'], [['accrued_units', plusOne, 'postings']]),
  ...changesOf('balances', ['account', 'token'], [['balance_units', plusOne, 'postings']]),
  ...changesOf(
    'balance_changes',
    ['generation', 'account', 'token'],
    [['reserved_delta_units', plusOne, 'withdrawals']],
  ),
  ...['takerFee', 'inputFee', 'execution', 'residual', 'unattributed'].flatMap((kind) =>
    changesOf(
      'entries',
      ['ref', 'line'],
      [
        ['amount_units', plusOne, 'postings', { kind }],
        ['account', () => `0x${'ab'.repeat(20)}`, 'postings', { kind }],
      ],
    ),
  ),
  ...changesOf(
    'settled_orders',
    ['owner', 'nonce'],
    [
      ['amount_in_units', plusOne, 'chain'],
      ['amount_out_units', plusOne, 'chain'],
      ['recipient', other, 'chain'],
      ['tx_hash', other, 'chain'],
      ['fee_units', plusOne, 'chain', { fee_in_swap: 1 }],
      ['fee_units', plusOne, 'postings', { fee_in_swap: 0 }],
      ['fee_in_swap', () => 1, 'postings', { fee_in_swap: 0 }],
      ['nonce', plusOne, 'chain', { fee_in_swap: 1 }],
    ],
  ),
  ...changesOf(
    'fills',
    ['market', 'fill_seq'],
    [
      ['fee_units', plusOne, 'postings', { fill_seq: 1 }],
      ['input_fee_units', plusOne, 'postings', { fill_seq: 1 }],
      ['rounding_units', plusOne, 'curves', { fill_seq: 1 }],
      ['taker', other, 'postings', { fill_seq: 1 }],
      ['fee_units', plusOne, 'postings', { fill_seq: 2 }],
      ['input_fee_units', plusOne, 'postings', { fill_seq: 2 }],
      ['operator_gain_units', plusOne, 'curves', { fill_seq: 2 }],
      // A fill without a fee books nothing to its taker.
      ['taker', other, 'chain', { fill_seq: 2, fee_units: '0' }],
      ['booked_by', other, 'postings', { fill_seq: 2 }],
      ['booked_by', () => null, 'curves', { fill_seq: 2 }],
    ],
  ),
  ...changesOf(
    'fill_legs',
    ['market', 'fill_seq', 'leg_no'],
    [
      ['base_units', plusOne, 'curves'],
      ['maker', other, 'curves'],
      ['price_ticks', plusOne, 'curves'],
    ],
  ),
  ...changesOf('market_progress', ['market', 'generation'], [['fill_seq', next, 'curves']]),
  ...changesOf('markets', ['market'], [['generation', () => 2, 'postings']]),
  ...changesOf(
    'posts_seen',
    ['market', 'era', 'seq'],
    [
      ['words_hash', other, 'curves'],
      ['snap_ask_units', plusOne, 'curves'],
      ['posted_seq', next, 'curves'],
    ],
  ),
  ...changesOf('publications', ['market', 'seq'], [['exact_ask_knots', () => 0, 'curves']]),
  ...changesOf('generations', ['generation'], [['block_hash', other, 'blocks', { generation: 2 }]]),
  ...changesOf('settlements', ['settlement_no'], [['settlement_no', () => 50, 'withdrawals']]),
];

/** What nothing else in the database or on the chain says: times of our own clock, names of transactions, and how something was made. */
const SAID_ONCE: Readonly<Record<string, readonly string[]>> = {
  generations: ['scanned_ms', 'observed_head', 'observed_head_timestamp_ms'],
  checkpoints: ['timestamp_ms'],
  settlements: ['prepared_ms', 'tx_key'],
  settlement_outcomes: ['time_ms'],
  // Which of its fills hit a curve first may have been taken back.
  snapshots: ['generation'],
  // Of a market that has seen one curve only.
  publications: [
    ...['base_seq', 'kind', 'cut_generation', 'cut_time_ms', 'block_number', 'block_hash', 'ask_knots', 'bid_knots'],
    ...['max_error_milli_bps', 'compression', 'prepared_ms', 'tx_key'],
  ],
};
/** Tables of the ledger, the settlement and the publication log, but for what only a reorganisation, a halt or the contracts' owner writes. */
const DERIVED = [
  ...['generations', 'blocks', 'markets', 'custody_events', 'posts_seen', 'fills', 'fill_legs', 'order_fills'],
  ...['market_progress', 'settled_orders', 'snapshots', 'entries', 'balances', 'balance_changes', 'claims'],
  ...['claim_changes', 'taker_fees', 'checkpoints', 'checkpoint_rows', 'settlements', 'settlement_outcomes'],
  'publications',
];

/** Another value of the kind that the column holds. */
function altered(column: string, value: unknown): unknown {
  if (column === 'fee_in_swap') return 1 - Number(value);
  if (value === null) return 3;
  if (typeof value === 'number') return value + 1;
  return /^-?\d+$/.test(value as string) ? plusOne(value) : other(value);
}

forEachDatabase((name, open) =>
  describe(`rows that somebody changed, ${name}`, function () {
    this.timeout(600_000);
    let chain: ManualChain;
    let stack: SwapStack;
    let custody: Custody;

    before(async () => {
      chain = await startManualChain(1, { pools: true });
    });

    after(() => chain?.close());

    /** A bit of everything that is booked: fills with a fee, signed orders both ways, a surplus, settled and executed claims. */
    async function live(): Promise<void> {
      const owner = chain.wallet('owner');
      const taker = chain.address('taker1');
      const gasless = chain.wallet('taker3');
      const { custodian, curveBook, entrypoint } = chain.manifest.contracts;
      const [weth, usdc] = [custody.token('WETH'), custody.token('USDC')];
      await custody.mined(() => custody.as('owner').setWithdrawDelay(0n, GAS));
      await custody.mined(() => Entrypoint__factory.connect(entrypoint, owner).setTakerFee(taker, 5_000n, GAS));
      const { id } = stack.keepers.markets[0]!;
      await custody.mined(() => CurveBook__factory.connect(curveBook, owner).setTakerFees(id, true, GAS));
      // Without a curve the pool fills it, and the fee reaches the vault by itself.
      await stack.submit(
        await stack.quote(gasless.address, { sellAmountBeforeFee: parseUnits('1', 18).toString() }),
        gasless,
      );
      await stack.land();
      for (const [i, role] of ['maker1', 'maker2'].entries()) {
        await stack.keepers.order(chain.address(role), [
          { side: 'ask', priceTicks: 250_010n + BigInt(i), sizeLots: 50_000n },
          { side: 'bid', priceTicks: 249_990n, sizeLots: 100_000n },
        ]);
      }
      await stack.keepers.poster.round();
      await custody.mined();
      await custody.mined(() =>
        chain
          .entrypointAs('taker1')
          .swapExactOutput(usdc, weth, parseUnits('6', 18), MaxUint256, taker, MaxUint256, SWAP_GAS),
      );
      await stack.submit(
        await stack.quote(gasless.address, { sellAmountBeforeFee: parseUnits('1.7', 18).toString() }),
        gasless,
      );
      await stack.land();
      await custody.mined(() => chain.tokenAs('USDC', 'taker2').getFunction('transfer')(custodian, 7n, GAS));
      for (const amount of ['12', '5']) {
        await custody.mined(() => custody.as('maker1').requestWithdraw(weth, custody.units('WETH', amount), GAS));
        await stack.keepers.settler.round();
        await custody.mined();
        await stack.keepers.settler.round();
        if (amount === '12') await custody.mined(() => custody.as('maker1').executeWithdraw(weth, GAS));
      }
      await custody.expectSound();
    }

    const verify = (withChain: boolean) =>
      verifyLedger({ ...verifyDeps(stack.db, chain), rpc: withChain ? verifyRpc(chain) : null });

    async function expectFound(change: Change): Promise<void> {
      const { table, key, where = {}, column, into, check } = change;
      const db = stack.db.knex;
      const called = `${table}.${column} ${JSON.stringify(where)}`;
      const row = (await db(table)
        .where(where)
        .orderBy([...key])
        .first()) as Row | undefined;
      expect(row, called).to.not.equal(undefined);
      const at = Object.fromEntries(key.map((one) => [one, row![one]]));
      const changed = into(row![column], row!);
      await db(table)
        .where(at)
        .update({ [column]: changed });
      try {
        const found = await verify(check === 'chain').catch((error: unknown) => error);
        expect(found, called).to.be.instanceOf(VerifyError);
        expect((found as VerifyError).check, `${called}: ${(found as Error).message}`).to.equal(check);
      } finally {
        await db(table)
          .where({ ...at, ...(key.includes(column) ? { [column]: changed } : {}) })
          .update({ [column]: row![column] });
      }
    }

    /** Columns whose change nobody finds, and rows that nobody misses. */
    async function unfound(table: string): Promise<string[]> {
      const db = stack.db.knex;
      const rows = (await db(table).select()) as Row[];
      const passed: string[] = [];
      const isFound = async (what: string): Promise<void> => {
        // Without the chain first: that takes a fraction of the time.
        for (const withChain of [false, true]) {
          const found = await verify(withChain).catch((error: unknown) => error);
          if (found instanceof VerifyError) return;
        }
        passed.push(`${table}.${what}`);
      };
      for (const row of [rows[0]!, rows.at(-1)!]) {
        for (const column of Object.keys(row)) {
          if (SAID_ONCE[table]?.includes(column)) continue;
          const changed = { ...row, [column]: altered(column, row[column]) };
          // A row with the same key keeps it from being stored at all.
          const stored = await db(table)
            .where(row)
            .update({ [column]: changed[column] })
            .catch(() => 0);
          if (stored === 0) continue;
          await isFound(column);
          await db(table)
            .where(changed)
            .update({ [column]: row[column] });
        }
        if (table === 'settlement_outcomes') continue;
        await db(table).where(row).delete();
        await isFound(`* ${JSON.stringify(row)}`);
        await db(table).insert(row);
      }
      return passed;
    }

    it('are found, whichever column of whichever table it is', async () => {
      await chain.reset();
      stack = await startSwapStack(await open(), chain);
      try {
        custody = custodyOf(chain, stack.keepers);
        await live();
        await storeAsOlder(stack.db, [1]);
        const passed: string[] = [];
        for (const table of DERIVED) passed.push(...(await unfound(table)));
        expect(passed).to.deep.equal([]);
        await verify(true);
      } finally {
        await stack.stop();
      }
    });

    it('are found, whichever it is', async () => {
      await chain.reset();
      stack = await startSwapStack(await open(), chain);
      try {
        custody = custodyOf(chain, stack.keepers);
        await live();
        const unfound: string[] = [];
        // Of fills that have no rows of their postings first, the one with a fee among them; then the first has rows.
        for (const change of CHANGES.filter(({ table }) => table === 'fills'))
          await expectFound(change).catch((e: Error) => unfound.push(`without rows, ${e.message}`));
        await storeAsOlder(stack.db, [1]);
        const report = await verify(true);
        expect(report).to.include({ fills: 2, claims: 1, checkpoints: 2 });
        for (const change of CHANGES) await expectFound(change).catch((e: Error) => unfound.push(e.message));
        expect(unfound).to.deep.equal([]);
        for (const [table, where] of [
          ['settled_orders', { fee_in_swap: 1 }],
          ['checkpoint_rows', { checkpoint_seq: 2 }],
          ['entries', { kind: 'takerFee' }],
          ['custody_events', { settlement_no: 1 }],
        ] as const) {
          const [row] = (await stack.db.knex(table).where(where).select()) as Row[];
          await stack.db.knex(table).where(row!).delete();
          expect(await verify(true).catch((error: unknown) => error), `${table}, deleted`).to.be.instanceOf(
            VerifyError,
          );
          await stack.db.knex(table).insert(row!);
        }
        expect(await verify(true), 'every change was taken back').to.deep.equal(report);
      } finally {
        await stack.stop();
      }
    });
  }),
);
