import { expect } from 'chai';
import { MaxUint256 } from 'ethers';
import type { Address } from '../../core/types.js';
import { verifyLedger } from '../../keepers/verify/verify.js';
import { VerifyError, type VerifyProgress } from '../../keepers/verify/verification.js';
import { Custodian__factory } from '../../typechain-types/index.js';
import { forEachDatabase } from '../support/db.js';
import { startKeepers, startManualChain, type KeeperStack, type ManualChain } from '../support/keeper-stack.js';
import { verifyDeps, verifyRpc } from '../support/verify.js';
import { storeAsOlder } from '../support/older-fills.js';

const ETHER = 10n ** 18n;

describe('verification of the ledger', () => {
  let chain: ManualChain;

  before(async function () {
    this.timeout(120_000);
    chain = await startManualChain();
  });

  after(() => chain.close());

  forEachDatabase((_name, open) => {
    let stack: KeeperStack;

    beforeEach(async function () {
      this.timeout(60_000);
      await chain.reset();
      stack = await startKeepers(await open(), chain);
      await land();
    });

    afterEach(() => stack.stop());

    const token = (symbol: string): Address =>
      chain.manifest.tokens.find((one) => one.symbol === symbol)!.address.toLowerCase() as Address;

    async function land(): Promise<void> {
      await chain.mine();
      await stack.watcher.scan();
    }

    async function buy(units: bigint): Promise<void> {
      const taker = chain.address('taker1');
      await chain
        .entrypointAs('taker1')
        .swapExactOutput(token('USDC'), token('WETH'), units, MaxUint256, taker, MaxUint256, { gasLimit: 1_000_000n });
    }

    /** Two curves, three fills, one of them late, a withdrawal request, a surplus. */
    async function trade(): Promise<void> {
      const [maker1, maker2] = [chain.address('maker1'), chain.address('maker2')];
      const [first] = await stack.order(maker1, [{ side: 'ask', priceTicks: 300_000n, sizeLots: 10_000n }]);
      await stack.order(maker2, [{ side: 'ask', priceTicks: 300_000n, sizeLots: 20_000n }]);
      await stack.poster.round();
      await land();
      await buy(ETHER / 3n);
      await land();
      await stack.order(maker1, [{ side: 'ask', priceTicks: 300_100n, sizeLots: 10_000n }], [first!]);
      await chain.mine();
      await stack.watcher.scan();
      await buy(ETHER / 7n);
      await stack.poster.round();
      const custodian = Custodian__factory.connect(chain.manifest.contracts.custodian, chain.wallet('maker2'));
      await custodian.requestWithdraw(token('USDC'), 5_000_000n, { gasLimit: 200_000n });
      const transfer = chain.tokenAs('USDC', 'taker2').getFunction('transfer');
      await transfer(chain.manifest.contracts.custodian, 7n, { gasLimit: 200_000n });
      await land();
      await buy(2n * ETHER);
      await land();
    }

    const verify = (withChain: boolean, onProgress: (progress: VerifyProgress) => void = () => undefined) =>
      verifyLedger({
        ...verifyDeps(stack.db, chain),
        rpc: withChain ? verifyRpc(chain) : null,
        onProgress,
      });

    it('finds nothing wrong with what the keepers wrote, and says how far it is', async () => {
      await trade();
      const progress: VerifyProgress[] = [];
      const report = await verify(true, (one) => progress.push(one));
      expect(report).to.include({ curves: 2, fills: 3, claims: 1, reversals: 0 });
      // The real chain's headers and receipts, read one by one, hash as they must.
      const { proven, ...believed } = stack.watcher.proofCounts();
      expect(proven).to.be.greaterThan(3);
      expect(believed).to.deep.equal({ unconfirmed: 0, unreadableHeaders: 0, unreadableReceipts: 0, wrongLogs: 0 });
      expect(report.chainEvents).to.be.greaterThan(5);
      expect([...new Set(progress.map(({ check }) => check))]).to.deep.equal([
        'blocks',
        'curves',
        'folded orders',
        'postings',
        'gains',
        'market data',
        'activity',
        'withdrawals',
        'chain',
      ]);
      for (const { done, total } of progress) expect(done).to.be.at.most(total);
      expect((await verify(false)).chainEvents).to.equal(null);
    });

    it('finds every change of a stored row', async function () {
      this.timeout(120_000);
      await trade();
      await storeAsOlder(stack.db, [1]);
      const db = stack.db.knex;
      const plusOne = (value: unknown): string => (BigInt(String(value)) + 1n).toString();
      const other = (value: unknown): string => String(value).replace(/.$/, (digit) => (digit === '0' ? '1' : '0'));
      /** Table, condition, column, change, and the check that must notice; `chain` only with an endpoint. */
      const changes: [string, object, string, (value: unknown) => unknown, string][] = [
        ['blocks', {}, 'hash', other, 'blocks'],
        ['generations', { generation: 2 }, 'block_timestamp_ms', (value) => Number(value) + 1, 'blocks'],
        ['publications', { seq: 1 }, 'snapshot_hash', other, 'curves'],
        ['publications', { seq: 2 }, 'words_hash', other, 'curves'],
        ['order_log', { order_seq: 2 }, 'effects', (value) => String(value).replace('300000', '300001'), 'curves'],
        ['fill_legs', { fill_seq: 1, leg_no: 0 }, 'quote_units', plusOne, 'curves'],
        ['order_fills', { fill_seq: 2, part_no: 0 }, 'leg_no', (value) => Number(value) + 7, 'curves'],
        ['fills', { fill_seq: 2 }, 'residual_units', plusOne, 'curves'],
        ['fills', { fill_seq: 3 }, 'consumed_before_units', plusOne, 'curves'],
        ['order_fills', { fill_seq: 3, part_no: 0 }, 'tid', (value) => Number(value) - 1, 'curves'],
        ['order_fills', { fill_seq: 3, part_no: 0 }, 'cloid', () => `0x${'a'.repeat(32)}`, 'curves'],
        ['market_progress', {}, 'ask_volume_units', plusOne, 'curves'],
        ['entries', { kind: 'deposit', line: 0 }, 'amount_units', plusOne, 'postings'],
        ['entries', { kind: 'deposit', line: 1 }, 'account', () => chain.address('taker3'), 'postings'],
        ['custody_events', { kind: 'deposited' }, 'amount_units', plusOne, 'postings'],
        ['balances', { account: chain.address('maker1') }, 'balance_units', plusOne, 'postings'],
        ['balances', { account: chain.address('maker2') }, 'net_capital_units', plusOne, 'withdrawals'],
        ['balances', { account: chain.address('maker2') }, 'reserved_units', plusOne, 'withdrawals'],
        ['claims', {}, 'outstanding_units', plusOne, 'withdrawals'],
        ['fills', { fill_seq: 1 }, 'recipient', other, 'chain'],
        ['posts_seen', { seq: 1 }, 'deadline_sec', (value) => Number(value) + 1, 'curves'],
        ['posts_seen', { seq: 1 }, 'tx_hash', other, 'chain'],
        ['custody_events', { kind: 'requested' }, 'tx_hash', other, 'chain'],
      ];
      for (const [table, where, column, change, check] of changes) {
        const name = `${table}.${column}`;
        const keys = await keysOf(table);
        const row = (await db(table).where(where).orderBy(keys).first()) as Record<string, unknown>;
        const changed = { [column]: change(row[column]) };
        const key = Object.fromEntries(keys.map((one) => [one, row[one]]));
        await db(table).where(key).update(changed);
        const found = await verify(true).catch((error: unknown) => error);
        expect(found, name).to.be.instanceOf(VerifyError);
        expect((found as VerifyError).check, `${name}: ${(found as Error).message}`).to.equal(check);
        const back = keys.includes(column) ? { ...key, ...changed } : key;
        await db(table)
          .where(back)
          .update({ [column]: row[column] });
      }
      await verify(true);
    });

    it('finds a row that is missing, and one too many', async () => {
      await trade();
      const db = stack.db.knex;
      const entry = (await db('entries').where({ kind: 'takerFee' }).first()) as object | undefined;
      expect(entry, 'no taker fee is charged').to.equal(undefined);
      const rows = (await db('entries').where({ kind: 'execution' }).select()) as object[];
      expect(rows).to.deep.equal([]);
      // Of what was sold: whose deposit it is decides what is found, and the order of hashes is nobody's choice.
      const sold = { kind: 'deposit', account: chain.address('maker1'), token: token('WETH') };
      const [deposit] = (await db('entries').where(sold).select()) as { ref: string }[];
      const posting = (await db('entries').where({ ref: deposit!.ref }).select()) as object[];
      await db('entries').where({ ref: deposit!.ref }).delete();
      expect(String(await verify(false).catch((error: unknown) => error))).to.match(/had before order \d+ was filled/);
      await db('entries').insert(posting);
      await db('entries').insert(posting.map((line) => ({ ...line, ref: 'deposited:0xabc:1' })));
      expect(String(await verify(false).catch((error: unknown) => error))).to.match(/nothing that stands explains it/);
    });
  });

  /** Columns that name one row of a table. */
  async function keysOf(table: string): Promise<string[]> {
    const keys: Record<string, string[]> = {
      blocks: ['number'],
      generations: ['generation'],
      publications: ['market', 'seq'],
      order_log: ['order_seq'],
      fill_legs: ['market', 'fill_seq', 'leg_no'],
      fills: ['market', 'fill_seq'],
      order_fills: ['market', 'fill_seq', 'oid'],
      market_progress: ['market', 'generation'],
      entries: ['ref', 'line'],
      custody_events: ['tx_hash', 'log_index'],
      balances: ['account', 'token'],
      claims: ['maker', 'token'],
      posts_seen: ['market', 'seq'],
    };
    return keys[table]!;
  }
});
