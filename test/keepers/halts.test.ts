/** What halts the ledger by itself: tokens that are gone, fills that its books do not explain, and a history that most nodes deny. */
import { expect } from 'chai';
import { pino } from 'pino';
import type { ChainFill, Hex } from '../../core/types.js';
import { createRpcPool, type RpcPool } from '../../keepers/chain/pool.js';
import { createRpc, toQuantity, type Rpc } from '../../keepers/chain/rpc.js';
import { createAttributor } from '../../keepers/watcher/derive/attributor.js';
import { createProgress } from '../../keepers/watcher/progress.js';
import { readBalances } from '../../ledger/chain/balances.js';
import { readHalt } from '../../ledger/chain/halts.js';
import { readPublication } from '../../ledger/publications/publication-log.js';
import { dueRaise } from '../../ledger/publications/raises.js';
import { createSnapshotStore } from '../../ledger/orders/snapshots.js';
import { UNATTRIBUTED } from '../../ledger/types.js';
import { GAS, type Custody } from '../support/custody.js';
import type { KeeperStack, ManualChain } from '../support/keeper-stack.js';
import { forEachDatabase } from '../support/db.js';
import { forEachKeepers } from '../support/manual-suite.js';

const logger = pino({ level: 'silent' });
const HASH: Hex = `0x${'12'.repeat(32)}`;

describe('halts', function () {
  this.timeout(60_000);

  forEachKeepers((begin) => {
    let chain: ManualChain;
    let stack: KeeperStack;
    let custody: Custody;

    async function start(rpc?: RpcPool): Promise<void> {
      ({ chain, stack, custody } = await begin(rpc === undefined ? {} : { watcher: { rpc } }));
      await custody.mined();
    }

    afterEach(() => stack.stop());

    const differences = (): bigint[] => stack.watcher.status().solvency.map(({ differenceUnits }) => differenceUnits);
    const haltCode = async (): Promise<string | undefined> => (await readHalt(stack.db.knex))?.code;

    it('a shortfall of one unit of two tokens in the vault, and not a surplus', async () => {
      await start();
      const custodian = chain.manifest.contracts['custodian'];
      await custody.mined(() => chain.tokenAs('USDC', 'taker1').getFunction('transfer')(custodian, 9n, GAS));
      expect(await haltCode(), "a surplus is nobody's").to.equal(undefined);
      const surplus = async (): Promise<bigint[]> =>
        (await readBalances(stack.db.knex, { account: UNATTRIBUTED })).map(({ balanceUnits }) => balanceUnits);
      expect(await surplus()).to.deep.equal([9n]);
      await custody.mined();
      expect(await surplus(), 'booked once').to.deep.equal([9n]);
      expect(new Set(differences()), 'what is booked to nobody is explained').to.deep.equal(new Set([0n]));

      // Only a broken custodian could do this to two tokens.
      await chain.provider.send('hardhat_impersonateAccount', [custodian]);
      await chain.provider.send('hardhat_setBalance', [custodian, '0xde0b6b3a7640000']);
      for (const symbol of ['USDC', 'WETH']) {
        const token = chain.tokenAs(symbol, 'taker1');
        const data = token.interface.encodeFunctionData('transfer', [chain.address('taker1'), 1n]);
        await chain.provider.send('eth_sendTransaction', [{ from: custodian, to: token.target, data, gas: '0x30d40' }]);
      }
      await custody.mined();
      expect(await haltCode()).to.equal('shortfall');
      expect(differences().sort()).to.deep.equal([-1n, -1n, ...differences().slice(2).fill(0n)]);
      const scanned = stack.watcher.status().nextBlock;
      await custody.mined();
      expect(stack.watcher.status().nextBlock, 'nothing is scanned any more').to.equal(scanned);
      expect(await stack.poster.round()).to.equal(null);
    });

    it('a shortfall beside something else that is wrong: the scan is kept all the same, so that it can be gone on from', async () => {
      await start();
      const custodian = chain.manifest.contracts['custodian'];
      await chain.provider.send('hardhat_impersonateAccount', [custodian]);
      await chain.provider.send('hardhat_setBalance', [custodian, '0xde0b6b3a7640000']);
      for (const symbol of ['USDC', 'WETH']) {
        const token = chain.tokenAs(symbol, 'taker1');
        const data = token.interface.encodeFunctionData('transfer', [chain.address('taker1'), 1n]);
        await chain.provider.send('eth_sendTransaction', [{ from: custodian, to: token.target, data, gas: '0x30d40' }]);
      }
      const before = stack.watcher.status().nextBlock;
      await custody.mined(() =>
        custody.as('settler').settleWithdraw(chain.address('maker1'), custody.token('WETH'), 1n, 0n, GAS),
      );
      expect(await haltCode()).to.equal('shortfall');
      expect(stack.watcher.status()).to.include({ nextBlock: before + 1, failedWrite: false });
    });

    it('no holdings that another endpoint tells of another history', async () => {
      let elsewhere = false;
      const own = createRpc(chain.rpcUrl);
      /** Its block has another hash, and its vault has less. */
      const other: Rpc = {
        ...own,
        batch: async (requests) =>
          (await own.batch(requests)).map((answer, i) => {
            if (requests[i]!.method === 'eth_call') return toQuantity(BigInt(answer as Hex) - 1n);
            return { ...(answer as object), hash: HASH };
          }),
      };
      const isHoldings = (requests: Parameters<Rpc['batch']>[0]) =>
        requests.some(({ method }) => method === 'eth_call');
      // The endpoint is another node from one request to the next.
      const shifting: Rpc = {
        ...own,
        batch: (requests) => (elsewhere && isHoldings(requests) ? other : own).batch(requests),
      };
      await start(createRpcPool([chain.rpcUrl], { nowMs: () => Date.now(), logger, connect: () => shifting }));
      const scanned = stack.watcher.status().nextBlock;
      elsewhere = true;
      await chain.mine();
      expect(String(await stack.watcher.scan().catch((error: unknown) => error))).to.match(/another block/);
      expect([await haltCode(), stack.watcher.status().nextBlock]).to.deep.equal([undefined, scanned]);
      elsewhere = false;
      await stack.watcher.scan();
      expect([await haltCode(), stack.watcher.status().nextBlock]).to.deep.equal([undefined, scanned + 1]);
    });

    it('a fill that entered its curve elsewhere than the ledger knows, or that took more than was quoted', async () => {
      await start();
      await stack.order(chain.address('maker1'), [{ side: 'ask', priceTicks: 300_000n, sizeLots: 10_000n }]);
      await stack.poster.round();
      await custody.mined();
      const [market] = stack.markets;
      const attributor = createAttributor(chain.manifest.deploymentId, createSnapshotStore(stack.markets));
      const taker = chain.address('taker1');
      const fill: ChainFill = {
        ...{ market: 0, fillSeq: 1, curveSeq: 1, side: 'ask', baseUnits: 10n ** 18n, quoteUnits: 3_000_000_000n },
        ...{ feeUnits: 0n, inputFeeUnits: 0n, consumedBeforeUnits: 0n, taker, recipient: taker },
        ...{ blockNumber: 1, blockHash: HASH, txHash: HASH, logIndex: 0, timestampMs: 0 },
      };
      const faultsOf = async (change: Partial<ChainFill>) => {
        const run = attributor.begin(stack.db.knex);
        const { decomposition } = await run.attribute(market!, { ...fill, ...change });
        return { codes: run.faults().map(({ code }) => code), decomposition };
      };
      expect((await faultsOf({})).codes).to.deep.equal([]);
      expect((await faultsOf({ consumedBeforeUnits: 1n })).codes).to.deep.equal(['carry_mismatch']);
      const { codes, decomposition } = await faultsOf({ baseUnits: 10n ** 18n + 7n });
      expect(codes).to.deep.equal(['missing_depth']);
      expect(decomposition.missingBaseUnits, 'no maker pays for it').to.equal(7n);
      expect(decomposition.legs.reduce((sum, leg) => sum + leg.baseUnits, 0n)).to.equal(10n ** 18n);
      expect((await faultsOf({ curveSeq: 9 })).codes).to.deep.equal(['unexplained_curve']);
    });

    it('a raise that the carry rule does not give, and a curve that costs the operator more than rounding', async () => {
      await start();
      const maker = chain.address('maker1');
      const order = { side: 'ask' as const, priceTicks: 300_000n, sizeLots: 10_000n };
      const oids = await stack.order(maker, [order]);
      await stack.poster.round();
      await custody.mined();
      const ladder = Array.from({ length: 40 }, (_, i) => ({
        ...order,
        priceTicks: 300_000n + 100n * BigInt(i * i),
        sizeLots: 250n,
      }));
      await stack.order(maker, ladder, oids);
      await stack.poster.round();
      const market = stack.markets[0]!;
      const publication = (await readPublication(stack.db.knex, 0, 2))!;
      const taker = chain.address('taker1');
      const late: ChainFill = {
        ...{ market: 0, fillSeq: 1, curveSeq: 1, side: 'ask', baseUnits: 7n * 10n ** 16n, quoteUnits: 210_000_000n },
        ...{ feeUnits: 0n, inputFeeUnits: 0n, consumedBeforeUnits: 0n, taker, recipient: taker },
        ...{ blockNumber: 1, blockHash: HASH, txHash: HASH, logIndex: 0, timestampMs: 0 },
      };
      const dueUnits = dueRaise(market, publication, 'ask', late.baseUnits);
      expect(dueUnits > 0n).to.equal(true);
      /** A late fill, a landing with such a raise, and a fill for so many quote units. */
      const faultsOf = async (raisedUnits: bigint, quoteUnits: bigint) => {
        const attributor = createAttributor(chain.manifest.deploymentId, createSnapshotStore(stack.markets));
        const run = attributor.begin(stack.db.knex);
        await run.attribute(market, late);
        await run.land(market, {
          ...{ market: 0, seq: 2, baseSeq: 2, deadlineSec: publication.deadlineSec, wordsHash: publication.wordsHash },
          ...{ snapAskUnits: BigInt.asUintN(92, -raisedUnits), snapBidUnits: 0n },
          ...{ blockNumber: 1, blockTimestampSec: 1, txHash: HASH },
        });
        const { decomposition } = await run.attribute(market, {
          ...{ ...late, fillSeq: 2, curveSeq: 2, baseUnits: 10n ** 16n, quoteUnits },
          consumedBeforeUnits: late.baseUnits + raisedUnits,
        });
        return { codes: run.faults().map(({ code }) => code), gainUnits: decomposition.operatorGainUnits };
      };
      const legsUnits = -(await faultsOf(dueUnits, 0n)).gainUnits;
      expect((await faultsOf(dueUnits, legsUnits)).codes).to.deep.equal([]);
      expect((await faultsOf(dueUnits, legsUnits - 1n)).codes).to.deep.equal(['operator_loss']);
      // As contracts without the rule leave it, which nothing bounds.
      expect((await faultsOf(0n, legsUnits - 1n)).codes).to.deep.equal([]);
      for (const other of [dueUnits - 1n, dueUnits + 1n]) {
        expect((await faultsOf(other, legsUnits)).codes).to.deep.equal(['unexplained_raise']);
      }
    });

    /** Endpoints of the chain, of which the first `liars` tell another hash of the block at `height`. */
    function poolOf(count: number, liars: number, height: () => number): RpcPool {
      const lie = (rpc: Rpc): Rpc => {
        const spoil = (answer: unknown): unknown => {
          const block = answer as { number?: Hex } | null;
          const isThat = typeof block === 'object' && block?.number !== undefined && Number(block.number) === height();
          return isThat ? { ...block, hash: HASH } : answer;
        };
        return {
          ...rpc,
          call: async (method, params) => spoil(await rpc.call(method, params)),
          batch: async (requests) => (await rpc.batch(requests)).map(spoil),
        };
      };
      const urls = Array.from({ length: count }, (_, i) => `${i}`);
      const connect = (url: string): Rpc => {
        const rpc = createRpc(chain.rpcUrl);
        return Number(url) < liars ? lie(rpc) : rpc;
      };
      return createRpcPool(urls, { nowMs: () => Date.now(), logger, connect });
    }

    for (const [count, liars, halts] of [
      [3, 1, false],
      [3, 2, true],
      [4, 2, false],
      [1, 1, true],
    ] as const) {
      it(`another history, ${halts ? 'since' : 'not when only'} ${liars} of ${count} endpoints tell it`, async () => {
        let height = -1;
        const pool = poolOf(count, liars, () => height);
        await start(pool);
        const scanned = stack.watcher.status().nextBlock - 1;
        height = scanned;
        await chain.mine();
        await stack.watcher.scan();
        expect(await haltCode()).to.equal(halts ? 'canonical_mismatch' : undefined);
        const followed = () => stack.watcher.status().nextBlock - 1;
        expect(followed(), 'it goes on in the same step unless it halted').to.equal(halts ? scanned : scanned + 1);
        const isHealthy = pool.health().map(({ healthy }) => healthy);
        if (!halts) expect(isHealthy).to.deep.equal(Array.from({ length: count }, (_, i) => i >= liars));
        height = -1;
        await chain.mine();
        await stack.watcher.scan();
        expect(followed()).to.equal(halts ? scanned : scanned + 2);
      });
    }
  }, forEachDatabase);
});

describe('progress of a catch-up', () => {
  it('tells blocks per second and what is left, once a second, and starts anew with the next one', () => {
    let nowMs = 0;
    const progress = createProgress(() => nowMs);
    const at = (nextBlock: number, catchingUp = true) => progress.line({ nextBlock, head: 1_000, catchingUp });
    expect(at(1)).to.deep.include({ nextBlock: 1, head: 1_000, blocksLeft: 1_000, blocksPerSec: 0, secondsLeft: null });
    nowMs = 999;
    expect(at(100)).to.equal(null);
    nowMs = 2_000;
    expect(at(401)).to.deep.include({ blocksLeft: 600, blocksPerSec: 200, secondsLeft: 3 });
    nowMs = 4_000;
    expect(at(999, false), 'nothing to catch up with').to.equal(null);
    nowMs = 10_000;
    expect(at(901)).to.deep.include({ blocksPerSec: 0, blocksLeft: 100 });
    nowMs = 11_000;
    expect(at(951)).to.deep.include({ blocksPerSec: 50, secondsLeft: 1 });
  });
});
