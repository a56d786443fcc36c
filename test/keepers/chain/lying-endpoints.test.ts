/** What an endpoint leaves out is booked all the same, in the same poll; never as if it had not been. */
import { expect } from 'chai';
import { Interface } from 'ethers';
import { pino } from 'pino';
import type { Address, Hex } from '../../../core/types.js';
import { createRpcPool, type RpcPool } from '../../../keepers/chain/pool.js';
import { RpcUnavailableError, type Rpc } from '../../../keepers/chain/rpc.js';
import { standingCauses } from '../../../keepers/watcher/halt-causes.js';
import { planRepair } from '../../../keepers/watcher/repair.js';
import { createEventProof } from '../../../keepers/watcher/scan/event-proof.js';
import { NoMajorityError } from '../../../keepers/watcher/scan/majority.js';
import { proveRange } from '../../../keepers/watcher/scan/prove-range.js';
import { scanRange } from '../../../keepers/watcher/scan/scan.js';
import { readBalances } from '../../../ledger/chain/balances.js';
import { newestBlocks } from '../../../ledger/chain/blocks.js';
import { readHalt } from '../../../ledger/chain/halts.js';
import { readSuspense } from '../../../ledger/chain/suspense.js';
import { appendOperatorRow } from '../../../ledger/operator/operator-log.js';
import { requestReconcile } from '../../../ledger/operator/reconcile-requests.js';
import { UNATTRIBUTED, type Db } from '../../../ledger/types.js';
import { CurveBook__factory, Custodian__factory, Entrypoint__factory } from '../../../typechain-types/index.js';
import { balancesOf, createSite, type Site } from '../../support/archive.js';
import { forOneDatabase } from '../../support/db.js';
import type { KeeperStack } from '../../support/keeper-stack.js';
import { DEPTHS, hiding, inUpperCase } from '../../support/nodes/lies.js';
import type { RpcLogAnswer } from '../../support/nodes/real-blocks.js';

const CUSTODIAN = new Interface(Custodian__factory.abi);
const CURVE_BOOK = new Interface(CurveBook__factory.abi);
const ENTRYPOINT = new Interface(Entrypoint__factory.abi);
const MID = 250_000n;
const LOT = 10n ** 14n;
const ETHER = 10n ** 18n;
const SECOND_SWAP_UNITS = LOT * 333n;

forOneDatabase((name, open) => {
  describe(`endpoints that leave out an event, ${name}`, function () {
    this.timeout(60_000);
    let site: Site;
    let db: Db;
    let stack: KeeperStack;
    let pool: RpcPool;
    let nowMs: number;
    let hidden: Set<string>;

    afterEach(async () => {
      await stack.stop();
      site.close();
    });

    /** The second deposit, execution and swap of their blocks. */
    function hides(log: RpcLogAnswer): boolean {
      const topic = (abi: Interface, event: string): string => abi.getEvent(event)!.topicHash;
      const ofSecond = log.topics[1]?.endsWith(site.chain.address('maker2').slice(2)) === true;
      const what =
        log.topics[0] === topic(CUSTODIAN, 'Deposited') && ofSecond
          ? 'deposit'
          : log.topics[0] === topic(CUSTODIAN, 'WithdrawExecuted') && ofSecond
            ? 'execution'
            : log.topics[0] === topic(ENTRYPOINT, 'Swap') &&
                log.data.includes(SECOND_SWAP_UNITS.toString(16).padStart(64, '0'))
              ? 'swap'
              : null;
      if (what !== null) hidden.add(what);
      return what !== null;
    }

    /** The watcher asks these; everybody else asks the chain. */
    async function start(
      endpoints: (honest: Rpc) => Rpc[],
      change: Parameters<typeof createSite>[0] = {},
    ): Promise<void> {
      site = createSite(change);
      nowMs = 0;
      hidden = new Set();
      const all = endpoints(site.chain.rpc);
      pool = createRpcPool(
        all.map((_, i) => String(i)),
        {
          nowMs: () => nowMs,
          logger: pino({ level: 'silent' }),
          connect: (url) => all[Number(url)]!,
        },
      );
      db = await open();
      stack = await site.start(db, { watcher: { rpc: pool } });
    }

    const honestOne = (label: string, rpc: Rpc): Rpc => ({ ...rpc, name: label });

    /** One poll, with whoever was caught before first again. */
    async function land(): Promise<void> {
      await site.mine();
      nowMs += 3_600_000;
      await stack.watcher.scan();
    }

    /** Everything that makers and takers do, two of each in a block. */
    async function live(each: () => Promise<void>): Promise<void> {
      const { address, rpc, manifest } = site.chain;
      const { custodian } = manifest.contracts as Record<string, Hex>;
      const send = (role: string, call: string, args: unknown[]) =>
        rpc.call('eth_sendTransaction', [
          { from: address(role), to: custodian, data: CUSTODIAN.encodeFunctionData(call, args) },
        ]);
      const weth = manifest.tokens.find(({ symbol }) => symbol === 'WETH')!.address;
      await land();
      await site.fund();
      await land();
      await each();
      await stack.order(address('maker1'), [{ side: 'ask', priceTicks: MID + 5n, sizeLots: 4_000n }]);
      await stack.order(address('maker2'), [{ side: 'bid', priceTicks: MID - 5n, sizeLots: 4_000n }]);
      await stack.poster.round();
      await land();
      await site.swap(true, LOT * 700n);
      await site.swap(true, SECOND_SWAP_UNITS);
      await land();
      await each();
      for (const maker of ['maker1', 'maker2']) await send(maker, 'requestWithdraw', [weth, ETHER]);
      await land();
      await stack.settler.round();
      await land();
      await rpc.call('evm_increaseTime', [60]);
      for (const maker of ['maker1', 'maker2']) await send(maker, 'executeWithdraw', [weth]);
      await land();
      await each();
    }

    function deployment() {
      const { contracts, deploymentBlock } = site.chain.manifest;
      const { custodian, curveBook, entrypoint } = contracts as unknown as Record<string, Address>;
      return { deploymentBlock, contracts: { custodian: custodian!, curveBook: curveBook!, entrypoint: entrypoint! } };
    }

    /** Right to the last unit as the chain has it, and up to the head. */
    async function right(): Promise<void> {
      const status = stack.watcher.status();
      expect(status.halt).to.equal(null);
      expect(status.nextBlock - 1).to.equal(await site.headBlock());
      expect(status.solvency.every(({ differenceUnits }) => differenceUnits === 0n)).to.equal(true);
      const rows = await readBalances(db.knex);
      expect(rows.filter(({ account, balanceUnits }) => account === UNATTRIBUTED && balanceUnits !== 0n)).to.deep.equal(
        [],
      );
      await site.verify(db);
    }

    for (const depth of DEPTHS) {
      it(`in ${depth}: the first of three`, async () => {
        await start((rpc) => [hiding('liar', rpc, depth, hides), honestOne('b', rpc), honestOne('c', rpc)]);
        await live(right);
        expect([...hidden].sort()).to.deep.equal(['deposit', 'execution', 'swap']);
        expect(pool.health()[0]!.counts.contradiction).to.be.greaterThan(2);
        expect(
          pool
            .health()
            .slice(1)
            .map(({ counts }) => counts.contradiction),
        ).to.deep.equal([0, 0]);
      });
    }

    it('and one that writes upper-case hex hides nothing, and is believed like any other', async () => {
      await start((rpc) => [inUpperCase('a', rpc), honestOne('b', rpc), honestOne('c', rpc)]);
      await live(right);
      expect(await readSuspense(db.knex, { open: false })).to.deep.equal([]);
      expect(pool.health().map(({ counts }) => counts.contradiction)).to.deep.equal([0, 0, 0]);
    });

    it('in logs: a single one, and two alike of three', async () => {
      await start((rpc) => [hiding('liar', rpc, 'logs', hides)]);
      await live(right);
      await stack.stop();
      site.close();
      await start((rpc) => [hiding('a', rpc, 'receipts', hides), hiding('b', rpc, 'logs', hides), honestOne('c', rpc)]);
      await live(right);
      expect(stack.watcher.proofCounts()).to.include({ unconfirmed: 0, unreadableHeaders: 0, unreadableReceipts: 0 });
      expect(stack.watcher.proofCounts().proven).to.be.greaterThan(3);
    });

    it('in logs of two alike, where filters are full: the next fill, and the next touch, tell of it', async () => {
      // Of a fill or a post of which another event in the same scan tells.
      for (const event of ['Swap', 'CurvePosted']) {
        let isLying = false;
        const left: string[] = [];
        const leaves = (log: RpcLogAnswer): boolean => {
          if (!isLying || log.topics[0] !== (event === 'Swap' ? ENTRYPOINT : CURVE_BOOK).getEvent(event)!.topicHash)
            return false;
          const place = `${log.blockNumber} ${log.logIndex}`;
          if (left.length === 0) left.push(place);
          return left[0] === place;
        };
        await start((rpc) => [hiding('a', rpc, 'logs', leaves), hiding('b', rpc, 'logs', leaves)], {
          strangers: 3_000,
        });
        await land();
        await site.fund();
        await land();
        await stack.order(site.chain.address('maker1'), [{ side: 'ask', priceTicks: MID + 5n, sizeLots: 4_000n }]);
        await stack.poster.round();
        isLying = true;
        if (event === 'Swap') await land();
        await site.mine();
        for (const units of [700n, 300n]) {
          await site.swap(true, LOT * units);
          await site.mine();
        }
        await land();
        await right();
        expect(left).to.have.length(1);
        if (event === 'Swap') {
          await stack.stop();
          site.close();
        }
      }
    });

    it('and when no receipts are to be had meanwhile: the later proof halts, and a repair credits the deposit', async () => {
      let isLying = false;
      const leaves = (log: RpcLogAnswer): boolean =>
        isLying && log.topics[0] === CUSTODIAN.getEvent('Deposited')!.topicHash;
      const withoutReceipts = (rpc: Rpc): Rpc => {
        const check = (method: string): void => {
          if (isLying && method.includes('Receipt')) throw new RpcUnavailableError('no receipts');
        };
        const call: Rpc['call'] = async (method, params) => {
          check(method);
          return rpc.call(method, params);
        };
        return { ...rpc, call, batch: (all) => Promise.all(all.map(({ method, params }) => call(method, params))) };
      };
      const liar = (label: string, rpc: Rpc): Rpc => withoutReceipts(hiding(label, rpc, 'logs', leaves));
      await start((rpc) => [liar('a', rpc), liar('b', rpc)], { strangers: 3_000 });
      await land();
      await site.fund();
      await land();
      const maker = site.chain.address('maker1');
      const before = await balancesOf(db);
      isLying = true;
      await site.fund();
      await land();
      expect(await balancesOf(db), 'nobody is credited, and nothing is booked to nobody').to.deep.equal(before);
      isLying = false;
      await land().catch(() => undefined);
      expect((await readHalt(db.knex))?.code).to.equal('missing_event');

      const of = deployment();
      const causes = async () =>
        (await standingCauses({ ...of, db, rpc: pool, operator: null, nowMs: Date.now() })).map(({ halt, remedy }) => [
          halt.code,
          remedy,
        ]);
      expect(await causes()).to.deep.equal([['missing_event', 'curvebook reconcile']]);
      const plan = (await planRepair(db, pool, of))!;
      expect(plan.excess).to.deep.equal([]);
      expect(plan.missing.map(({ kind, account }) => [kind, account]).sort()).to.deep.equal(
        [maker, site.chain.address('maker2')].flatMap((one) => Array(2).fill(['deposited', one]) as string[][]).sort(),
      );
      await requestReconcile(db, { reversal: plan.reversal, capitalOrigin: false }, 1);
      await land();
      await stack.watcher.scan();
      expect(await causes()).to.deep.equal([]);
      await appendOperatorRow(db, { timeMs: 2, kind: 'resume', maker: null, note: '' });
      await land();
      await right();
      const twice = ([units, reserved]: string[]): string => `${BigInt(units!) * 2n} ${reserved}`;
      const doubled = Object.fromEntries(Object.entries(before).map(([key, text]) => [key, twice(text.split(' '))]));
      expect(await balancesOf(db)).to.deep.equal(doubled);
    });

    it('and a proof that finds other blocks than were scanned says nothing about the ledger', async () => {
      await start((rpc) => [honestOne('a', rpc)]);
      await land();
      const { rpc, manifest } = site.chain;
      const before = await rpc.call('evm_snapshot', []);
      await site.fund();
      await land();
      const prove = createEventProof({
        ...{ db, rpc: pool, nowMs: () => nowMs, logger: pino({ level: 'silent' }) },
        addresses: Object.values(manifest.contracts as Record<string, Address>),
      });
      const head = (await newestBlocks(db.knex, 1))[0]!.number;
      const lookBack = () => prove({ from: head, to: head }, { blocks: [], events: [] }, rpc);
      await lookBack();
      // The chain goes another way, with deposits at the same height that the ledger has not booked.
      await rpc.call('evm_revert', [before]);
      for (let i = 0; i < 2; i += 1) await site.fund();
      await site.mine();
      const error = await lookBack().catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(NoMajorityError);
      expect(String(error)).to.include(`another block ${head} than was scanned`);
    });

    it('and the operator plans no repair on the word of one of three', async () => {
      await start((rpc) => [honestOne('a', rpc)]);
      await live(right);
      const of = deployment();
      for (const depth of DEPTHS) {
        const all = [
          hiding('liar', site.chain.rpc, depth, hides),
          honestOne('b', site.chain.rpc),
          honestOne('c', site.chain.rpc),
        ];
        const three = createRpcPool(['0', '1', '2'], {
          nowMs: () => 0,
          logger: pino({ level: 'silent' }),
          connect: (url) => all[Number(url)]!,
        });
        expect(await planRepair(db, three, of), depth).to.equal(null);
      }
    });

    it('in a history of its own: one of two stops the ledger until they agree', async () => {
      let answering: Rpc | null = null;
      await start((rpc) => {
        answering = hiding('a', rpc, 'hash', hides);
        const switched: Rpc = {
          name: 'a',
          call: (method, params) => answering!.call(method, params),
          batch: (requests) => answering!.batch(requests),
        };
        return [switched, honestOne('b', rpc)];
      });
      await land();
      const before = stack.watcher.status().nextBlock;
      await site.fund();
      for (let poll = 0; poll < 2; poll += 1) {
        expect(await land().catch((error: Error) => error.name)).to.equal('NoMajorityError');
        expect(stack.watcher.status()).to.include({ nextBlock: before, halt: null });
      }
      answering = site.chain.rpc;
      await stack.watcher.scan();
      await right();
    });

    it('which is found again by proving the range', async () => {
      await start((rpc) => [honestOne('a', rpc)]);
      await live(right);
      const { custodian, curveBook, entrypoint } = site.chain.manifest.contracts as Record<string, Hex>;
      const range = { from: 1, to: await site.headBlock(), addresses: [custodian!, curveBook!, entrypoint!] };
      const honest = await scanRange(site.chain.rpc, { ...range, parent: null });
      const liars = [0, 1].map((i) => hiding(String(i), site.chain.rpc, 'logs', () => true));
      const lied = createRpcPool(['0', '1'], {
        nowMs: () => 0,
        logger: pino({ level: 'silent' }),
        connect: (url) => liars[Number(url)]!,
      });
      const proven = await proveRange(lied, range);
      expect(proven).to.deep.equal(honest);
      expect(proven.events.length).to.be.greaterThan(10);
    });
  });
});
