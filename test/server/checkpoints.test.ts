import { StandardMerkleTree } from '@openzeppelin/merkle-tree';
import { expect } from 'chai';
import { parseUnits } from '../../core/amounts.js';
import { EMPTY_ROOT, LEAF_ENCODING } from '../../core/merkle.js';
import type { Address } from '../../core/types.js';
import { createCheckpointer } from '../../keepers/settler/checkpointer.js';
import { readBalancesSince, readCheckpointState } from '../../ledger/settlements/checkpoint-log.js';
import { readTx } from '../../ledger/db/db.js';
import { commitGeneration, lastGeneration } from '../../ledger/chain/ledger-log.js';
import { fillSeqs } from '../../ledger/views/reads.js';
import { insertOutcomes, insertSettlements } from '../../ledger/settlements/settlement-log.js';
import type { CheckpointHead, Db, GenerationWrite } from '../../ledger/types.js';
import { createApp } from '../../server/app.js';
import { listen, type Listening } from '../../server/listen.js';
import { checkpointSchema, proofSchema } from '../../server/read/checkpoint.js';
import { createCheckpointView, type CheckpointView } from '../../server/read/checkpoint-view.js';
import type { ReadDeps } from '../../server/read/deps.js';
import { feesSchema } from '../../server/read/fees.js';
import { readLimits } from '../../server/rate-limit.js';
import { readRoutes } from '../../server/read/endpoints.js';
import { errorSchema } from '../../server/read/schemas.js';
import { createReadStore } from '../../server/read/store.js';
import { withdrawalsSchema } from '../../server/read/accounts/withdrawals.js';
import { forEachDatabase } from '../support/db.js';
import { OPERATOR, TAKER, deposit, fillOf, generationOf, withFills } from '../support/generations.js';
import { DAI, USDC, WETH, WETH_DAI, WETH_USDC } from '../support/markets.js';
import { conform } from '../support/api/openapi.js';

const MARKETS = [WETH_USDC, WETH_DAI];
const [alice, bob] = [`0x${'a'.repeat(40)}`, `0x${'b'.repeat(40)}`] as const satisfies readonly Address[];
const WEI = 10n ** 18n;
const TOKENS = [WETH, USDC, DAI];
const NOW_MS = 1_800_000_000_000;
const PACE = { intervalMs: 60_000, smallIntervalMs: 600_000, smallBps: 100 };
const ENCODING = [...LEAF_ENCODING];

forEachDatabase((name, open) => {
  describe(`checkpoints, fees and withdrawals over HTTP, ${name}`, () => {
    let listening: Listening | null = null;
    let db: Db;
    let view: CheckpointView;
    let checkpointer: ReturnType<typeof createCheckpointer>;

    beforeEach(async () => {
      db = await open();
      checkpointer = createCheckpointer(db);
      view = viewOf();
      const deps: Partial<ReadDeps> = {
        markets: () => MARKETS,
        store: createReadStore(db),
        checkpoints: { latest: () => view.latest(), proofsOf: (account) => view.proofsOf(account) },
        nowMs: () => NOW_MS,
        settlePace: PACE,
        limits: readLimits(10_000),
      };
      const silent = (): void => undefined;
      const app = createApp({ routers: [readRoutes(deps as ReadDeps)], logger: { info: silent, error: silent } });
      listening = await listen(app, 0, '127.0.0.1');
    });

    afterEach(async () => {
      await listening?.close();
      listening = null;
    });

    const viewOf = () =>
      createCheckpointView({
        db,
        deploymentId: '0123456789abcdef',
        pollIntervalMs: 10,
        logger: { error: () => undefined },
      });

    async function get(path: string): Promise<{ status: number; body: unknown }> {
      const response = await fetch(`${listening!.url}${path}`);
      const body: unknown = await response.json();
      conform('GET', path, response.status, body);
      return { status: response.status, body };
    }

    const commit = (write: GenerationWrite) =>
      db.knex.transaction((tx) => commitGeneration(tx, db, write, { operator: OPERATOR }));

    /** Lists the markets and gives both makers something; alice's WETH goes through a fill that costs the operator money. */
    async function fund(): Promise<void> {
      await commit(generationOf(1, { listed: MARKETS }));
      const deposits = [
        deposit(2, 0, alice, WETH.address, 10n * WEI),
        deposit(2, 1, bob, USDC.address, 50_000_000_000n),
      ];
      await commit(
        generationOf(2, {
          custody: deposits.flatMap((one) => one.custody),
          entries: deposits.flatMap((one) => one.entries),
          netCapital: deposits.flatMap((one) => one.netCapital),
        }),
      );
      const part = { oid: 1, maker: bob, priceTicks: 250_000n, baseUnits: WEI };
      const sell = fillOf(3, WETH_USDC, 1, 'bid', [part], {
        residualUnits: 1_500_001n,
        feeUnits: 5n,
        inputFeeUnits: 0n,
      });
      await commit(generationOf(3, withFills(MARKETS, [sell])));
    }

    async function publish(timestampMs: number): Promise<CheckpointHead> {
      const since = await checkpointer.generation();
      const cutView = await readTx(db, async (q) => ({
        head: (await lastGeneration(q))!,
        changed: await readBalancesSince(q, since),
        ackFillSeqs: Object.fromEntries(await fillSeqs(q)),
      }));
      const cut = await checkpointer.cut(cutView, timestampMs);
      await checkpointer.commit(cut, (store) => db.knex.transaction(store));
      await view.refresh();
      return cut.head;
    }

    /** The tree that anybody builds from the listing with the published library. */
    function treeOf(body: unknown): StandardMerkleTree<[string, string, bigint]> {
      const { makers } = checkpointSchema.parse(body);
      const leaves = makers.flatMap(({ maker, balances }) =>
        balances.map(({ token, balance }): [string, string, bigint] => {
          const { address, decimals } = TOKENS.find(({ symbol }) => symbol === token)!;
          return [maker, address, balance.startsWith('-') ? 0n : parseUnits(balance, decimals)];
        }),
      );
      return StandardMerkleTree.of(leaves, ENCODING);
    }

    it('answers NOT_READY before the first checkpoint', async () => {
      for (const path of ['/v0/checkpoints/latest', `/v0/checkpoints/latest/proof?maker=${alice}`]) {
        const { status, body } = await get(path);
        expect([status, errorSchema.parse(body).error.code], path).to.deep.equal([503, 'NOT_READY']);
      }
    });

    it('publishes an empty ledger, too', async () => {
      await commit(generationOf(1, { listed: MARKETS }));
      await publish(7);
      const latest = checkpointSchema.parse((await get('/v0/checkpoints/latest')).body);
      expect([latest.seq, latest.root, latest.makers]).to.deep.equal([1, EMPTY_ROOT, []]);
    });

    it('lists every balance under a root that the published library gives, the debtor included', async () => {
      await fund();
      await publish(77);
      const { body } = await get('/v0/checkpoints/latest');
      const latest = checkpointSchema.parse(body);
      expect(latest).to.deep.equal({
        seq: 1,
        deployment_id: '0123456789abcdef',
        generation: 3,
        block_number: 103,
        block_hash: (await lastGeneration(db.knex))!.blockHash,
        timestamp_ms: 77,
        root: treeOf(body).root,
        makers: [
          { maker: TAKER, balances: [{ token: 'USDC', balance: '0.000005', reserved: '0' }] },
          { maker: OPERATOR, balances: [{ token: 'USDC', balance: '-1.500001', reserved: '0' }] },
          { maker: alice, balances: [{ token: 'WETH', balance: '10', reserved: '0' }] },
          {
            maker: bob,
            balances: [
              { token: 'WETH', balance: '1', reserved: '0' },
              { token: 'USDC', balance: '47500', reserved: '0' },
            ],
          },
        ],
        ack_fill_seqs: { 'WETH-USDC': 1, 'WETH-DAI': 0 },
      });
    });

    it('proves the balances of an address, for the published library to verify', async () => {
      await fund();
      const { root } = await publish(77);
      for (const [maker, rows] of [
        [alice, 1],
        [bob, 2],
        [OPERATOR, 1],
        [`0x${'1'.repeat(40)}`, 0],
      ] as const) {
        const mixedCase = `0x${maker.slice(2).toUpperCase()}`;
        const proof = proofSchema.parse((await get(`/v0/checkpoints/latest/proof?maker=${mixedCase}`)).body);
        expect([proof.seq, proof.root, proof.maker, proof.balances.length]).to.deep.equal([1, root, maker, rows]);
        for (const { leaf, proof: siblings } of proof.balances) {
          expect(StandardMerkleTree.verify(root, ENCODING, leaf, siblings)).to.equal(true);
          const more = [leaf[0], leaf[1], `${BigInt(leaf[2]) + 1n}`];
          expect(StandardMerkleTree.verify(root, ENCODING, more, siblings), 'not for another amount').to.equal(false);
        }
      }
      for (const query of ['', '?maker=', '?maker=0x12', `?maker=${alice}&maker=${bob}`]) {
        expect((await get(`/v0/checkpoints/latest/proof${query}`)).status, query).to.equal(400);
      }
    });

    it('follows changes, and reads the same after a restart of whoever writes and whoever shows', async () => {
      await fund();
      await publish(1);
      const more = deposit(4, 0, alice, DAI.address, 3n);
      const all = { ref: 'executed:x', kind: 'execution' as const, token: WETH.address };
      const paid = [
        { ...all, account: bob, amountUnits: -WEI },
        { ...all, account: 'vault' as const, amountUnits: WEI },
      ];
      const reservations = [{ account: alice, token: WETH.address, deltaUnits: 4n * WEI }];
      await commit(generationOf(4, { ...more, entries: [...more.entries, ...paid], reservations }));
      checkpointer = createCheckpointer(db);
      const second = await publish(2);
      const shown = view.latest()!.body.toString();
      expect(second.root).to.equal(treeOf(JSON.parse(shown)).root);
      const { makers } = checkpointSchema.parse(JSON.parse(shown));
      expect(makers.find(({ maker }) => maker === alice)?.balances).to.deep.equal([
        { token: 'WETH', balance: '10', reserved: '4' },
        { token: 'DAI', balance: '0.000000000000000003', reserved: '0' },
      ]);
      expect(makers.find(({ maker }) => maker === bob)?.balances.map(({ token }) => token)).to.deep.equal(['USDC']);

      // The ledger moves on after the checkpoint; a view that starts then still shows the checkpoint.
      await commit(generationOf(5, deposit(5, 0, alice, WETH.address, WEI)));
      view = viewOf();
      await view.refresh();
      expect(view.latest()!.body.toString()).to.equal(shown);
      const changedRows = (await db.knex('checkpoint_rows').where({ checkpoint_seq: 2 }).count({ n: '*' }).first()) as {
        n: number;
      };
      expect(changedRows.n, 'only what changed is stored').to.equal(3);
    });

    it('refuses to publish over rows that do not give the stored root', async () => {
      await fund();
      await publish(1);
      await db.knex('checkpoint_rows').where({ account: alice }).update({ balance_units: '1' });
      await db.knex('balances').where({ account: alice }).update({ generation: 4 });
      const last = createCheckpointer(db);
      await commit(generationOf(4));
      const failure = await last.generation().catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(RangeError);
      const broken = viewOf();
      expect(await broken.refresh().catch((error: unknown) => error)).to.be.instanceOf(RangeError);
      expect(broken.latest()).to.equal(null);
    });

    it('reads thousands of rows back exactly', async function () {
      this.timeout(60_000);
      await commit(generationOf(1, { listed: MARKETS }));
      const count = 1_600;
      const many = Array.from({ length: count }, (_, i) =>
        deposit(2, i, `0x${(i + 1).toString(16).padStart(40, '0')}`, WETH.address, BigInt(i + 1)),
      );
      await commit(
        generationOf(2, {
          entries: many.flatMap((one) => one.entries),
          netCapital: many.flatMap((one) => one.netCapital),
        }),
      );
      const head = await publish(1);
      expect(head.leafCount).to.equal(count);
      const { body } = await get('/v0/checkpoints/latest');
      expect(checkpointSchema.parse(body).makers).to.have.length(count);
      expect(await readTx(db, (q) => readCheckpointState(q, head))).to.have.length(count);
    });

    it('shows what takers accrued, beside their balances', async () => {
      expect((await get('/v0/fees')).body).to.deep.equal([]);
      await fund();
      await commit(generationOf(4, deposit(4, 0, TAKER, USDC.address, 1_000_000n)));
      expect(feesSchema.parse((await get('/v0/fees')).body)).to.deep.equal([
        { taker: TAKER, fees: [{ token: 'USDC', accrued: '0.000005', balance: '1.000005' }] },
      ]);
    });

    it('shows where withdrawals stand', async () => {
      await fund();
      const claim = {
        maker: alice,
        token: WETH.address,
        claimUnits: 3n * WEI,
        basis: 1n,
        readyAtSec: 1_900_000_000,
        outstandingUnits: 4n * WEI,
        advanceUnits: 0n,
        pendingSinceBlock: 104,
        paidGas: 0n,
      };
      const event = {
        kind: 'settled' as const,
        maker: alice,
        token: WETH.address,
        amountUnits: 3n * WEI,
        basis: 0n,
        readyAtSec: 1_900_000_000,
        settlementNo: 1,
        paidGas: 0n,
        blockNumber: 104,
        txHash: `0x${'e'.repeat(64)}` as const,
        logIndex: 0,
      };
      const reservations = [{ account: alice, token: WETH.address, deltaUnits: 4n * WEI }];
      await commit(generationOf(4, { claims: [claim], reservations, custody: [event] }));
      const settlement = { maker: alice, token: WETH.address, amountUnits: 3n * WEI, basis: 0n, previousUnits: 0n };
      const cut = { cutGeneration: 3, cutBlock: 103, checkpointSeq: 1, preparedMs: NOW_MS - 1_000 };
      const by = { preparedBy: 'settler' as const, operatorSeq: null, txKey: 'settle:1' };
      await db.knex.transaction(async (tx) => {
        await insertSettlements(tx, [{ settlementNo: 1, ...settlement, ...cut, ...by }]);
        await insertOutcomes(tx, [{ settlementNo: 1, outcome: 'landed' }], NOW_MS);
      });
      const body = withdrawalsSchema.parse((await get(`/v0/makers/${alice}/withdrawals`)).body);
      const none = { state: 'none', outstanding: '0', claim: '0', ready_at_sec: null, pending: false };
      expect(body.withdrawals).to.deep.equal([
        {
          token: 'WETH',
          state: 'settled',
          outstanding: '4',
          claim: '3',
          ready_at_sec: 1_900_000_000,
          pending: true,
          pending_since_block: 104,
          settles_from_ms: NOW_MS - 1_000 + PACE.intervalMs,
          requests_short: 3,
        },
        { token: 'USDC', ...none, pending_since_block: null, settles_from_ms: null, requests_short: 0 },
        { token: 'DAI', ...none, pending_since_block: null, settles_from_ms: null, requests_short: 0 },
      ]);
      expect(body.events.map((one) => [one.event, one.amount])).to.deep.equal([
        ['deposited', '10'],
        ['settled', '3'],
      ]);
      const stranger = withdrawalsSchema.parse((await get(`/v0/makers/0x${'c'.repeat(40)}/withdrawals`)).body);
      expect(stranger.events).to.deep.equal([]);
    });
  });
});
