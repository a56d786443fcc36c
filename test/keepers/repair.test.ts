/** A ledger that booked otherwise than the chain has it: what puts it right, and that nothing else ends its halt. */
import { expect } from 'chai';
import { Interface, MaxUint256 } from 'ethers';
import type { Address } from '../../core/types.js';
import { standingCauses } from '../../keepers/watcher/halt-causes.js';
import type { RpcPool } from '../../keepers/chain/pool.js';
import { RpcResponseError, type Rpc } from '../../keepers/chain/rpc.js';
import { planReconcile, type ReconcileError } from '../../keepers/watcher/reconcile.js';
import { planRepair } from '../../keepers/watcher/repair.js';
import type { VerifyReport } from '../../keepers/verify/verify.js';
import { readBalances } from '../../ledger/chain/balances.js';
import { lastGeneration } from '../../ledger/chain/generations.js';
import { insertHalt, readHalt } from '../../ledger/chain/halts.js';
import { rebuildActivity } from '../../ledger/accounts/rebuild.js';
import { rebuildMarketData } from '../../ledger/market-data/rebuild.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import { lastCarriedOut, readReconcileRequest, requestReconcile } from '../../ledger/operator/reconcile-requests.js';
import { readReversals } from '../../ledger/chain/reversals.js';
import { reversedSettlementKeys } from '../../ledger/settlements/settlement-log.js';
import { UNATTRIBUTED, VAULT, type Account, type Db } from '../../ledger/types.js';
import { forEachDatabase } from '../support/db.js';
import { startDouble, type DoubleKeepers } from '../support/nodes/double-keepers.js';
import { storeAsOlder } from '../support/older-fills.js';

const ETHER = 10n ** 18n;
const LOTS = 10_000n;
const TOKEN = new Interface(['function transfer(address,uint256) returns (bool)']);

describe('repair', function () {
  this.timeout(60_000);

  forEachDatabase((_name, open) => {
    let one: DoubleKeepers;
    let maker: Address;

    afterEach(() => one.stack.stop());

    const deps = () => {
      const { deploymentBlock, contracts } = one.chain.manifest;
      const lower = (name: string) => contracts[name]!.toLowerCase() as Address;
      return {
        deploymentBlock,
        contracts: { custodian: lower('custodian'), curveBook: lower('curveBook'), entrypoint: lower('entrypoint') },
      };
    };
    let forgetState = false;
    /** An endpoint that may have the state of the newest block only. */
    const endpoint = (): RpcPool => {
      const forgetful = (rpc: Rpc): Rpc => {
        const call: Rpc['call'] = async (method, params = []) => {
          const isState = forgetState && method === 'eth_call';
          if (isState && params[1] !== (await one.chain.rpc.call('eth_blockNumber')))
            throw new RpcResponseError(method, -32_000, 'missing trie node', null);
          return rpc.call(method, params);
        };
        return { name: rpc.name, call, batch: (all) => Promise.all(all.map((each) => call(each.method, each.params))) };
      };
      const { pool } = one;
      const survey: RpcPool['survey'] = (ask, ...how) => pool.survey((rpc) => ask(forgetful(rpc)), ...how);
      return { ...pool, ...forgetful(pool), survey };
    };
    const plan = (from?: number) => planRepair(one.db, endpoint(), { ...deps(), from });
    const causes = async (): Promise<string[]> => {
      const found = await standingCauses({
        ...{ ...deps(), db: one.db, rpc: endpoint(), operator: one.chain.address('owner'), nowMs: Date.now() },
      });
      return found.map(({ halt }) => halt.code);
    };

    async function started(): Promise<void> {
      one = await startDouble(await open());
      maker = one.chain.address('maker1');
      await one.send('maker1', 'deposit', [one.token('WETH'), 10n * ETHER]);
      await one.land();
    }

    const newest = async (): Promise<number> => (await lastGeneration(one.db.knex))!.generation;

    /** A verification against the chain ends at this. */
    async function expectFinding(message: RegExp): Promise<void> {
      const found = await one.verify(one.pool).then(
        () => null,
        (error: unknown) => error as Error,
      );
      expect(found?.message).to.match(message);
    }

    /** Nothing is left to repair, and a verification against the chain finds nothing. */
    async function expectRight(): Promise<VerifyReport> {
      expect(await plan()).to.equal(null);
      expect(await causes()).to.deep.equal([]);
      await one.expectConserved();
      return one.verify(one.pool);
    }

    async function quoted(): Promise<void> {
      await one.stack.order(maker, [{ side: 'ask', priceTicks: 300_000n, sizeLots: 5n * LOTS }]);
      await one.stack.poster.round();
      await one.land();
    }

    it('a ledger that agrees with the chain is left alone', async () => {
      await started();
      await quoted();
      expect(await plan()).to.equal(null);
      expect(await causes()).to.deep.equal([]);
    });

    it('a deposit that the ledger lost, and its units with it, is credited to its maker', async () => {
      await started();
      await one.send('maker1', 'deposit', [one.token('WETH'), ETHER]);
      await one.land();
      await lose(one.db, await newest());
      one = await one.restart(one.db);
      await one.land();
      expect(await one.balance(maker, 'WETH')).to.equal(10n * ETHER);
      expect(await one.balance(UNATTRIBUTED, 'WETH'), 'all that the vault tells').to.equal(ETHER);
      await expectFinding(/deposits and withdrawals/);
      const found = (await plan())!;
      expect(found.excess).to.deep.equal([]);
      expect(found.missing.map(({ kind, account, what }) => [kind, account, what])).to.deep.equal([
        ['deposited', maker, `${maker} ${ETHER} units of ${one.token('WETH')}, log 1`],
      ]);
      // The chain goes on while the operator looks.
      await one.land();
      await one.reconcile(found.reversal);
      expect(await one.balance(UNATTRIBUTED, 'WETH')).to.equal(0n);
      expect(await one.balance(maker, 'WETH')).to.equal(11n * ETHER);
      expect((await readReversals(one.db.knex)).map(({ depth }) => depth)).to.deep.equal([0]);
      await expectRight();
    });

    it('a swap that the ledger lost halts it for good, until it and those after it are attributed to their maker', async () => {
      await started();
      await quoted();
      await one.buy('taker2', ETHER);
      await one.land();
      await lose(one.db, await newest());
      one = await one.restart(one.db);
      expect(await one.balance(maker, 'WETH')).to.equal(10n * ETHER);
      await one.buy('taker2', ETHER / 2n);
      expect(((await one.land().catch((error: unknown) => error)) as { code?: string }).code).to.equal('fill_gap');
      expect((await readHalt(one.db.knex))?.code).to.equal('fill_gap');
      expect(await causes()).to.deep.equal(['fill_gap']);
      await expectFinding(/fills of blocks/);
      const found = (await plan())!;
      expect(found.missing.map(({ kind, what }) => [kind, what.replace(/0x\w+/g, 'x')])).to.deep.equal([
        ['fill', 'fill 1 of market 0 on curve 1: x bought 1000000000000000000 base units for 3000000000'],
      ]);
      await one.reconcile(found.reversal);
      expect(await readHalt(one.db.knex)).to.equal(null);
      expect(await one.balance(maker, 'WETH')).to.equal(10n * ETHER - (3n * ETHER) / 2n);
      expect(await one.balance(one.chain.address('owner'), 'USDC')).to.equal(0n);
      expect(await expectRight()).to.include({ fills: 2, openSuspense: 0 });
    });

    it('a deposit that never was is taken back, and the halt that it led to ends only then', async () => {
      await started();
      await invent(one.db, { generation: await newest(), account: maker, token: one.token('WETH'), units: 5n });
      await one.db.knex.transaction((tx) =>
        insertHalt(tx, { code: 'shortfall', message: 'the vault lacks 5 units', timeMs: 1 }),
      );
      one = await one.restart(one.db);
      expect(await one.balance(maker, 'WETH')).to.equal(10n * ETHER + 5n);
      expect(await causes()).to.deep.equal(['shortfall']);
      await expectFinding(/^deposit:0x77/);
      const found = (await plan())!;
      expect(found.missing).to.deep.equal([]);
      expect(found.excess.map(({ kind, account }) => [kind, account])).to.deep.equal([['deposited', maker]]);
      await one.reconcile(found.reversal);
      expect(await readHalt(one.db.knex)).to.equal(null);
      expect(await one.balance(maker, 'WETH')).to.equal(10n * ETHER);
      await expectRight();
    });

    it('units that were booked to nobody and never came are taken back', async () => {
      await started();
      await invent(one.db, { generation: await newest(), account: UNATTRIBUTED, token: one.token('WETH'), units: 5n });
      one = await one.restart(one.db);
      expect(await one.balance(UNATTRIBUTED, 'WETH')).to.equal(5n);
      await expectFinding(/WETH|0x/);
      const found = (await plan())!;
      expect(found.differences).to.deep.equal([{ token: one.token('WETH'), units: -5n }]);
      await one.reconcile(found.reversal);
      expect(await one.balance(UNATTRIBUTED, 'WETH')).to.equal(0n);
      await expectRight();
    });

    it('makes what is derived from the fills anew before it takes blocks back, so that what stays is right', async () => {
      await started();
      await quoted();
      for (const units of [ETHER, ETHER / 2n]) {
        await one.buy('taker1', units);
        await one.land();
      }
      for (const table of ['candles', 'maker_positions']) await one.db.knex(table).delete();
      await expectFinding(/./);
      const head = (await lastGeneration(one.db.knex))!;
      const { reversal } = (await plan(head.toBlock))!;
      const seq = await requestReconcile(one.db, { reversal, capitalOrigin: false, marketData: true }, 1);
      await one.stack.watcher.scan();
      expect(await lastCarriedOut(one.db.knex)).to.equal(seq);
      await one.land();
      expect(await expectRight()).to.include({ fills: 2 });
      // By itself, too, and once.
      await one.db.knex('candles').delete();
      const alone = await requestReconcile(one.db, { reversal: null, capitalOrigin: false, marketData: true }, 2);
      await one.land();
      expect([await lastCarriedOut(one.db.knex), await readReconcileRequest(one.db.knex)]).to.deep.equal([alone, null]);
      expect(await expectRight()).to.include({ fills: 2 });
    });

    it('reads anew from a block that is named', async () => {
      await started();
      await quoted();
      await one.buy('taker2', ETHER);
      await one.land();
      const before = await one.balance(maker, 'USDC');
      const found = (await plan(2))!;
      expect([found.missing, found.excess]).to.deep.equal([[], []]);
      await one.reconcile(found.reversal);
      expect(await one.balance(maker, 'USDC')).to.equal(before);
      expect(await readHalt(one.db.knex)).to.equal(null);
      await one.expectConserved();
      await one.verify();
    });

    it('what was asked for, settled and paid once is not asked for again when its blocks are read anew', async () => {
      await started();
      await one.send('maker1', 'requestWithdraw', [one.token('WETH'), MaxUint256]);
      await one.land();
      expect((await one.stack.settler.round()).settlements).to.have.length(1);
      await one.mine(5);
      await one.catchUp();
      await one.send('maker1', 'executeWithdraw', [one.token('WETH')]);
      await one.land();
      await one.send('maker1', 'deposit', [one.token('WETH'), ETHER]);
      await one.land();
      await one.stack.settler.round();
      const of = async () => {
        const rows = (await readBalances(one.db.knex, { account: maker })).filter(
          (row) => row.token === one.token('WETH'),
        );
        return rows.map(({ balanceUnits, reservedUnits }) => [balanceUnits, reservedUnits]);
      };
      expect(await of()).to.deep.equal([[ETHER, 0n]]);
      await one.reconcile((await plan(2))!.reversal);
      expect(await of()).to.deep.equal([[ETHER, 0n]]);
      expect(await reversedSettlementKeys(one.db.knex)).to.deep.equal(new Set());
      expect((await one.stack.settler.round()).settlements).to.deep.equal([]);
      await expectRight();
    });

    it('what once came from nobody is not blamed for what went later, and that made up for ends the halt', async () => {
      await started();
      const custodian = deps().contracts.custodian;
      const move = async (from: Address, to: Address, units: bigint, symbol = 'WETH') => {
        const data = TOKEN.encodeFunctionData('transfer', [to, units]);
        await one.chain.rpc.call('eth_sendTransaction', [{ from, to: one.token(symbol), data, gas: '0x4c4b40' }]);
      };
      await one.send('maker1', 'deposit', [one.token('USDC'), 5n]);
      await move(maker, custodian, 1n);
      await one.land();
      expect(await one.balance(UNATTRIBUTED, 'WETH')).to.equal(1n);
      await move(custodian, maker, 5n);
      await move(custodian, maker, 5n, 'USDC');
      for (let scans = 0; scans < 3 && (await readHalt(one.db.knex)) === null; scans++)
        await one.land().catch(() => undefined);
      expect((await readHalt(one.db.knex))?.code).to.equal('shortfall');
      expect(await plan()).to.equal(null);
      expect(await causes()).to.deep.equal(['shortfall']);
      await one.mine();
      forgetState = true;
      expect(await plan()).to.equal(null);
      expect(await causes(), 'without the state of the halted block').to.deep.equal(['shortfall']);
      await move(maker, custodian, 5n);
      await move(maker, custodian, 5n, 'USDC');
      await one.mine();
      expect(await causes()).to.deep.equal([]);
      forgetState = false;
      expect(await causes()).to.deep.equal([]);
    });

    for (const [name, units] of [
      ['2^128', 2n ** 128n],
      ['2^256 - 1', MaxUint256],
    ] as const) {
      it(`a stranger's request of ${name} units is booked as it can be, and no difference`, async () => {
        await started();
        await one.send('taker2', 'requestWithdraw', [one.token('WETH'), units]);
        await one.land();
        expect(await plan()).to.equal(null);
        expect(await causes()).to.deep.equal([]);
        await expectRight();
      });
    }

    for (const depth of [65, 200]) {
      it(`a reorganisation of ${depth} blocks is taken back where it is asked for`, async () => {
        await started();
        await quoted();
        const common = await one.snapshot();
        const block = Number(await one.chain.rpc.call('eth_blockNumber'));
        await one.buy('taker2', ETHER);
        for (let done = 0; done < depth; done += 5) {
          await one.mine(5);
          await one.catchUp();
        }
        expect(await one.balance(maker, 'WETH')).to.equal(9n * ETHER);
        await one.fork(common, depth + 5);
        await one.stack.watcher.scan();
        expect((await readHalt(one.db.knex))?.code).to.equal('canonical_mismatch');
        expect(await causes()).to.deep.equal(['canonical_mismatch']);
        const of = (deep: boolean) => planReconcile(one.db, one.pool, { ...deps(), deep });
        const refused = await of(false).catch((error: unknown) => error);
        expect((refused as ReconcileError).code).to.equal('reorg_too_deep');
        const found = (await of(true))!;
        expect(found.reversal.depth).to.equal(depth);
        expect(found.orphanedBlocks).to.deep.equal({ from: block + 1, to: block + depth });
        await one.reconcile(found.reversal);
        expect(await readHalt(one.db.knex)).to.equal(null);
        expect(await one.balance(maker, 'WETH')).to.equal(10n * ETHER);
        expect(one.stack.watcher.status().nextBlock).to.equal(block + depth + 6);
        await one.expectConserved();
        await one.verify();
      });
    }

    it('a resume leaves nothing behind of a halt whose cause is gone', async () => {
      await started();
      await one.settleAs(ETHER, 'maker1', 'WETH');
      await one.land();
      expect((await readHalt(one.db.knex))?.code).to.equal('unexplained_settlement');
      expect(await causes()).to.deep.equal(['unexplained_settlement']);
      const [row] = await one.db.knex('suspense').select<{ item: string }[]>('item');
      await appendOperatorRow(one.db, { timeMs: 1, kind: 'assign', maker, note: 'our own', item: row!.item });
      await one.land();
      expect(await causes()).to.deep.equal([]);
      await appendOperatorRow(one.db, { timeMs: 1, kind: 'resume', maker: null, note: '' });
      await one.land();
      expect(await readHalt(one.db.knex)).to.equal(null);
      await one.verify();
    });
  });
});

const UNITS = {
  entries: { balance_units: 'amount_units' },
  balance_changes: { reserved_units: 'reserved_delta_units', net_capital_units: 'net_capital_delta_units' },
} as const;

/** Adds what a generation's rows of these tables say to the balances, or takes it from them. */
async function move(db: Db, generation: number, sign: 1n | -1n, refs?: readonly string[]): Promise<void> {
  for (const [table, columns] of Object.entries(UNITS)) {
    const rows = (await db.knex(table).where({ generation }).select()) as Record<string, string>[];
    for (const row of rows.filter(({ ref }) => refs?.includes(ref ?? '') ?? true)) {
      const at = { account: row['account']! as Account, token: row['token']! as Address };
      const none = { balance_units: '0', reserved_units: '0', net_capital_units: '0' };
      const before = (await db.knex('balances').where(at).first()) as Record<string, string> | undefined;
      if (before === undefined) await db.knex('balances').insert({ ...at, generation, ...none });
      for (const [column, delta] of Object.entries(columns)) {
        const units = BigInt(before?.[column] ?? 0) + sign * BigInt(row[delta]!);
        await db
          .knex('balances')
          .where(at)
          .update({ [column]: `${units}` });
      }
    }
  }
}

/** A damaged database: the blocks of a generation are there and nothing that was in them. No endpoint could bring that about. */
async function lose(db: Db, generation: number): Promise<void> {
  await storeAsOlder(db);
  await move(db, generation, -1n);
  for (const fill of (await db.knex('fills').where({ generation }).select()) as { market: number; fill_seq: number }[])
    await db.knex('fill_legs').where({ market: fill.market, fill_seq: fill.fill_seq }).delete();
  const tables = ['entries', 'balance_changes', 'custody_events', 'fills', 'order_fills', 'market_progress'];
  let lost = 0;
  for (const table of [...tables, 'pair_gains', 'taker_fees'])
    lost += await db.knex(table).where({ generation }).delete();
  const changed = await db
    .knex('balances')
    .where({ generation })
    .select<{ account: string; token: string }[]>('account', 'token');
  for (const row of changed) {
    const last = async (table: string): Promise<number> => {
      const found = (await db.knex(table).where(row).max({ last: 'generation' }).first()) as { last: number | null };
      return found.last ?? 0;
    };
    const before = Math.max(await last('entries'), await last('balance_changes'));
    if (before === 0) await db.knex('balances').where(row).delete();
    else await db.knex('balances').where(row).update({ generation: before });
  }
  await db.knex.transaction(async (tx) => {
    await rebuildMarketData(tx);
    await rebuildActivity(tx);
  });
  expect(lost, 'rows that were lost').to.be.greaterThan(0);
}

/** Units that never came, booked as they would have been by a ledger that believed it: a maker's as a deposit, nobody's as a surplus. */
async function invent(
  db: Db,
  { generation, account, token, units }: { generation: number; account: Account; token: Address; units: bigint },
): Promise<void> {
  const block = (await db.knex('blocks').where({ generation }).orderBy('number', 'desc').first()) as { number: number };
  const isMaker = account.startsWith('0x');
  const [txHash, logIndex] = [`0x${'77'.repeat(32)}` as const, 7];
  const [ref, kind] = isMaker
    ? ([`deposit:${txHash}:${logIndex}`, 'deposit'] as const)
    : ([`surplus:${token}:${block.number}`, 'unattributed'] as const);
  if (isMaker)
    await db.knex('custody_events').insert({
      ...{
        tx_hash: txHash,
        log_index: logIndex,
        kind: 'deposited' as const,
        maker: account as Address,
        token,
        generation,
      },
      ...{ amount_units: `${units}`, basis: null, ready_at_sec: null, block_number: block.number },
    });
  const line = { ref, kind, token, generation };
  await db.knex('entries').insert([
    { ...line, line: 0, account, amount_units: `${units}` },
    { ...line, line: 1, account: VAULT, amount_units: `${-units}` },
  ]);
  await move(db, generation, 1n, [ref]);
}
