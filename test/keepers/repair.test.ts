/** A ledger that booked otherwise than the chain has it: what puts it right, and that nothing else ends its halt. */
import { expect } from 'chai';
import type { Address } from '../../core/types.js';
import { standingCauses } from '../../keepers/watcher/halt-causes.js';
import { planReconcile, type ReconcileError } from '../../keepers/watcher/reconcile.js';
import { planRepair } from '../../keepers/watcher/repair.js';
import { readHalt } from '../../ledger/halts.js';
import { appendOperatorRow } from '../../ledger/operator-log.js';
import { readReversals } from '../../ledger/reversals.js';
import { UNATTRIBUTED } from '../../ledger/types.js';
import { forEachDatabase } from '../support/db.js';
import { startDouble, type DoubleKeepers, type Spoil } from '../support/double-keepers.js';

const ETHER = 10n ** 18n;
const LOTS = 10_000n;

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
    const plan = (from?: number) => planRepair(one.db, one.pool, { ...deps(), from });
    const causes = async (): Promise<string[]> => {
      const found = await standingCauses({
        ...{ ...deps(), db: one.db, rpc: one.pool, operator: one.chain.address('owner'), nowMs: Date.now() },
      });
      return found.map(({ halt }) => halt.code);
    };

    async function started(endpoints = 1): Promise<void> {
      one = await startDouble(await open(), { endpoints });
      maker = one.chain.address('maker1');
      await one.send('maker1', 'deposit', [one.token('WETH'), 10n * ETHER]);
      await one.land();
    }

    /** Takes a row out of what was booked as if its log had been left out, postings and sums with it. */
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

    it('an omitted deposit that was booked to nobody is credited', async () => {
      await started();
      one.spoil[0] = omit(one, 'all');
      await one.send('maker1', 'deposit', [one.token('WETH'), ETHER]);
      await one.land();
      one.spoil[0] = null;
      expect(await one.balance(UNATTRIBUTED, 'WETH')).to.equal(ETHER);
      await one.mine(3);
      await one.catchUp();
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
      expect(await plan()).to.equal(null);
      await one.expectConserved();
      await one.verify();
    });

    it('an omitted swap halts, can not be resumed away, and is attributed to its maker as are those after it', async () => {
      await started();
      await quoted();
      one.spoil[0] = omit(one, 'all');
      await one.buy('taker2', ETHER);
      await one.land();
      expect((await readHalt(one.db.knex))?.code).to.equal('shortfall');
      one.spoil[0] = null;
      await one.buy('taker2', ETHER / 2n);
      await one.mine();
      expect(await causes()).to.deep.equal(['shortfall']);
      const found = (await plan())!;
      expect(found.missing.map(({ kind, what }) => [kind, what.replace(/0x\w+/g, 'x')])).to.deep.equal([
        ['fill', 'fill 1 of market 0 on curve 1: x bought 1000000000000000000 base units for 3000000000'],
      ]);
      await one.reconcile(found.reversal);
      expect(await readHalt(one.db.knex)).to.equal(null);
      expect(await one.balance(maker, 'WETH')).to.equal(10n * ETHER - (3n * ETHER) / 2n);
      expect(await one.balance(one.chain.address('owner'), 'USDC')).to.equal(0n);
      await one.expectConserved();
      expect(await one.verify()).to.include({ fills: 2, openSuspense: 0 });
    });

    it('a balance that was answered too high is taken back, and the halt ends', async () => {
      await started();
      let lie = 5n;
      one.spoil[0] = (method, params, answer) => {
        const call = params[0] as { data?: string; to?: string };
        const isWeth =
          method === 'eth_call' && call.data?.startsWith('0x70a08231') === true && call.to === one.token('WETH');
        return isWeth ? `0x${(BigInt(String(answer)) + lie).toString(16).padStart(64, '0')}` : answer;
      };
      await one.land();
      expect(await one.balance(UNATTRIBUTED, 'WETH')).to.equal(5n);
      lie = 0n;
      await one.land();
      expect((await readHalt(one.db.knex))?.code).to.equal('shortfall');
      expect(await causes()).to.deep.equal(['shortfall']);
      await one.reconcile((await plan())!.reversal);
      expect(await readHalt(one.db.knex)).to.equal(null);
      expect(await one.balance(UNATTRIBUTED, 'WETH')).to.equal(0n);
      await one.expectConserved();
      await one.verify();
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

/** Leaves every log of our contracts out, and the filters and receipts that would tell. */
function omit(_one: DoubleKeepers, _which: 'all'): Spoil {
  return (method, _params, answer) => {
    if (method === 'eth_getLogs') return [];
    if (method !== 'eth_getBlockByNumber' || answer === null) return answer;
    return { ...(answer as object), logsBloom: `0x${'00'.repeat(256)}` };
  };
}
