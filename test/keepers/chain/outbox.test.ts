import { expect } from 'chai';
import { Wallet } from 'ethers';
import { pino } from 'pino';
import type { Address, Hex } from '../../../core/types.js';
import { FeeCeilingError, bumpFee } from '../../../keepers/chain/fees.js';
import { createOutbox, type OutboxDeps, type TxRequest } from '../../../keepers/chain/outbox.js';
import { createRpcPool } from '../../../keepers/chain/pool.js';
import { RpcContradictionError, toQuantity, type Rpc } from '../../../keepers/chain/rpc.js';
import { listOutbox, readUnmined } from '../../../ledger/transactions/outbox.js';
import type { Db } from '../../../ledger/types.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { forEachDatabase } from '../../support/db.js';
import { createFakeNode, type FakeNode } from '../../support/nodes/fake-node.js';

const KEY: Hex = `0x${'11'.repeat(32)}`;
const KEY_ADDRESS = new Wallet(KEY).address.toLowerCase();
const BOOK: Address = `0x${'bb'.repeat(20)}`;
const HEAD_SEC = 1_000;

function request(txKey: string, validUntilSec: number | null = null): TxRequest {
  return { txKey, to: BOOK, data: `0x${Buffer.from(txKey).toString('hex')}`, gasLimit: 100_000n, validUntilSec };
}

forEachDatabase((_name, open) => {
  describe('outbox', () => {
    let db: Db;
    let node: FakeNode;
    let nowMs: number;

    beforeEach(async () => {
      db = await open();
      node = createFakeNode();
      nowMs = 1_000_000;
    });

    /** An outbox as a process would make it; a second call is a restart. */
    async function start(change: Partial<OutboxDeps> = {}) {
      return createOutbox({
        db,
        writer: change.writer ?? (await acquireWriter(db, 'publication')),
        rpc: node.rpc,
        chainId: 8453,
        privateKey: KEY,
        nowMs: () => nowMs,
        logger: pino({ level: 'silent' }),
        ...change,
      });
    }

    const dataOf = (tx: { data: string } | undefined) => Buffer.from((tx?.data ?? '0x').slice(2), 'hex').toString();
    const rows = () => listOutbox(db.knex, { limit: 100 });

    it('signs at the first unused nonce, and marks it finished once it is mined', async () => {
      const outbox = await start();
      const sent = await outbox.send(request('post:1'));
      expect(sent).to.include({ nonce: 0, replaced: false });
      expect(node.mine()).to.equal(1);
      await outbox.resume(HEAD_SEC);
      expect(await rows()).to.have.length(1);
      expect((await rows())[0]).to.include({ finished: true, hash: sent.hash, txKey: 'post:1' });
      expect((await outbox.send(request('post:2'))).nonce).to.equal(1);
    });

    it('stores before it broadcasts, and sends the same bytes after a crash', async () => {
      node.unreachable = true;
      const failed = (await start()).send(request('post:1'));
      expect(await failed.catch((error: Error) => error.name)).to.equal('RpcUnavailableError');
      const [stored] = await rows();
      expect(stored).to.include({ txKey: 'post:1', finished: false });

      node.unreachable = false;
      const writer = await acquireWriter(db, 'settlement');
      await (await start({ writer })).resume(HEAD_SEC);
      expect(node.received.map((tx) => tx.hash)).to.deep.equal([stored?.hash]);
      expect(node.mine()).to.equal(1);
    });

    it('replaces an unmined transaction, outbidding it in both prices', async () => {
      const outbox = await start();
      await outbox.send(request('post:1'));
      const second = await outbox.send(request('post:2'));
      expect(second).to.include({ nonce: 0, replaced: true });
      const [first, replacement] = node.received;
      expect(replacement!.maxFeePerGas! * 1_000n >= first!.maxFeePerGas! * 1_125n).to.equal(true);
      expect(replacement!.maxPriorityFeePerGas! * 1_000n >= first!.maxPriorityFeePerGas! * 1_125n).to.equal(true);
      node.mine();
      expect(node.mined.map(dataOf)).to.deep.equal(['post:2']);
    });

    it('queues behind what is unmined when it may not be replaced', async () => {
      const outbox = await start({ order: 'queue' });
      const nonces = [];
      for (const key of ['settle:1', 'settle:2', 'settle:3']) nonces.push((await outbox.send(request(key))).nonce);
      expect(nonces).to.deep.equal([0, 1, 2]);
      node.mine();
      expect(node.mined.map(dataOf)).to.deep.equal(['settle:1', 'settle:2', 'settle:3']);
    });

    it('rebroadcasts the same bytes until it is stuck, then raises the fee at the same nonce', async () => {
      const outbox = await start({ stuckMs: 5_000 });
      await outbox.send(request('post:1'));
      nowMs += 4_999;
      await outbox.resume(HEAD_SEC);
      expect(new Set(node.received.map((tx) => tx.hash)).size).to.equal(1);
      nowMs += 1;
      await outbox.resume(HEAD_SEC);
      const raised = node.received.at(-1)!;
      expect(raised.nonce).to.equal(0);
      expect(dataOf(raised)).to.equal('post:1');
      expect(raised.maxFeePerGas).to.equal(bumpFee(node.received[0]!.maxFeePerGas!));
      expect(node.pool.get(0)?.hash).to.equal(raised.hash);
    });

    it('does not go beyond the ceiling, and keeps what it has in the pool', async () => {
      const outbox = await start({ stuckMs: 1_000, feeCeilingWei: 2_100_000_000n });
      await outbox.send(request('post:1'));
      nowMs += 1_000;
      await outbox.resume(HEAD_SEC);
      expect(node.pool.size).to.equal(1);
      expect(await rows()).to.have.length(1);
      const refused = await outbox.send(request('post:2')).catch((error: unknown) => error);
      expect(refused).to.be.instanceOf(FeeCeilingError);
      expect(await rows()).to.have.length(1);
    });

    it('never bids more for an act than the act may, also after a restart', async () => {
      const maxFeeWei = 2_300_000_000n;
      const outbox = await start({ stuckMs: 1_000, order: 'queue' });
      await outbox.send({ ...request('order:1'), maxFeeWei });
      const again = await start({ stuckMs: 1_000, order: 'queue', writer: await acquireWriter(db, 'settlement') });
      await again.resume(HEAD_SEC);
      for (let round = 0; round < 8; round++) {
        nowMs += 1_000;
        await again.resume(HEAD_SEC);
      }
      const bids = node.received.map((tx) => tx.maxFeePerGas!);
      expect(
        bids.every((wei) => wei <= maxFeeWei),
        bids.join(),
      ).to.equal(true);
      expect(new Set(node.received.map(dataOf))).to.deep.equal(new Set(['order:1']));
      expect(new Set(bids).size, 'it was raised as far as it may').to.equal(2);
    });

    it('refuses a fresh transaction whose act may not even pay the base fee', async () => {
      const outbox = await start({ order: 'queue' });
      const refused = await outbox
        .send({ ...request('order:1'), maxFeeWei: 10n ** 9n })
        .catch((error: unknown) => error);
      expect(refused).to.be.instanceOf(FeeCeilingError);
      expect(await rows()).to.have.length(0);
    });

    it('lets what may not pay the base fee any more give way to what waits behind it', async () => {
      const outbox = await start({ stuckMs: 1_000, order: 'queue' });
      await outbox.send({ ...request('order:1'), maxFeeWei: 2_100_000_000n });
      node.baseFeeWei = 3_000_000_000n;
      nowMs += 1_000;
      await outbox.resume(HEAD_SEC);
      expect(node.pool.get(0)?.data, 'it waits while nothing waits for it').to.not.equal('0x');
      await outbox.send(request('order:2'));
      nowMs += 1_000;
      await outbox.resume(HEAD_SEC);
      expect(node.pool.get(0)).to.include({ data: '0x', value: 0n, gasLimit: 21_000n });
      node.mine();
      expect(node.mined.map(dataOf)).to.deep.equal(['', 'order:2']);
    });

    it('puts a transfer to itself in the place of one that is out of date', async () => {
      const outbox = await start({ order: 'queue' });
      await outbox.send(request('order:1', HEAD_SEC));
      await outbox.send(request('order:2', HEAD_SEC + 100));
      await outbox.resume(HEAD_SEC - 1);
      expect(node.pool.get(0)?.data).to.not.equal('0x');
      await outbox.resume(HEAD_SEC);
      expect(node.pool.get(0)).to.include({ data: '0x', value: 0n });
      expect(node.pool.get(0)?.to?.toLowerCase()).to.equal(outbox.signer);
      node.mine();
      expect(node.mined.map(dataOf)).to.deep.equal(['', 'order:2']);
      await outbox.resume(HEAD_SEC);
      expect((await rows()).every((row) => row.finished)).to.equal(true);
    });

    it('fills a gap between nonces', async () => {
      const outbox = await start({ order: 'queue' });
      for (const key of ['a', 'b', 'c']) await outbox.send(request(key));
      // A restored backup has forgotten one row, and the node its pool.
      await db.knex('outbox').where({ nonce: 1 }).delete();
      node.pool.clear();
      await outbox.resume(HEAD_SEC);
      expect(node.mine()).to.equal(3);
      expect(node.mined.map(dataOf)).to.deep.equal(['a', '', 'c']);
    });

    it('sends mined transactions again when the chain drops them', async () => {
      const outbox = await start({ order: 'queue' });
      for (const key of ['a', 'b']) await outbox.send(request(key));
      node.mine();
      await outbox.resume(HEAD_SEC);
      expect((await rows()).map((row) => row.finished)).to.deep.equal([true, true]);
      node.reorg(2);
      await outbox.resume(HEAD_SEC);
      node.mine();
      expect(node.mined.map(dataOf)).to.deep.equal(['a', 'b']);
      expect((await outbox.send(request('c'))).nonce).to.equal(2);
    });

    describe('while endpoints lie', () => {
      /** What an endpoint answers instead of the truth. */
      type Lie = (method: string, truth: unknown) => unknown;

      /** Endpoints of the one node, each with a lie that may come and go. */
      function poolOf(lies: (Lie | null)[]) {
        return createRpcPool(
          lies.map((_, i) => `${i}`),
          {
            nowMs: () => nowMs,
            logger: pino({ level: 'silent' }),
            connect: (url) => {
              const call = async (method: string, params: unknown[] = []) => {
                if (method === 'eth_sendRawTransaction') {
                  const said = lies[Number(url)]?.(method, undefined);
                  if (said !== undefined) return said;
                }
                const truth = await node.rpc.call(method, params);
                return lies[Number(url)]?.(method, truth) ?? truth;
              };
              const batch: Rpc['batch'] = (requests) =>
                Promise.all(requests.map(({ method, params }) => call(method, params)));
              return { name: url, call, batch };
            },
          },
        );
      }
      const adds =
        (count: number): Lie =>
        (method, truth) =>
          method === 'eth_getTransactionCount' ? toQuantity(Number(truth) + count) : truth;

      for (const [count, what] of [
        [3, 'three endpoints'],
        [2, 'two endpoints'],
      ] as const) {
        it(`signs nothing beyond its own nonces when one of ${what} adds 3,000 to them`, async () => {
          const lies: (Lie | null)[] = Array.from({ length: count }, () => null);
          const rpc = poolOf(lies);
          const outbox = await start({ rpc, order: 'queue' });
          await outbox.send(request('a'));
          lies[0] = adds(3_000);
          for (const key of ['b', 'c']) {
            await outbox.send(request(key));
            await outbox.resume(HEAD_SEC);
            node.mine();
          }
          lies[0] = null;
          nowMs += 60_000;
          await outbox.resume(HEAD_SEC);
          expect(node.mined.map(dataOf)).to.deep.equal(['a', 'b', 'c']);
          expect((await rows()).map(({ nonce, finished }) => [nonce, finished])).to.deep.equal([
            [2, true],
            [1, true],
            [0, true],
          ]);
          expect(outbox.status()).to.include({ gapTransfers: 0 });
          expect(outbox.status().nonceDoubts).to.be.greaterThan(0);
          expect(rpc.health()[0]!.counts.contradiction).to.be.greaterThan(0);
        });
      }

      it('sends nothing while the only endpoint adds 3,000 to its nonces, and goes on when that stands', async () => {
        const lies: (Lie | null)[] = [null];
        const outbox = await start({ rpc: poolOf(lies), order: 'queue' });
        await outbox.send(request('a'));
        node.mine();
        lies[0] = adds(3_000);
        const refusal = () => outbox.send(request('b')).catch((error: unknown) => error);
        for (const atMs of [0, 6_000, 29_999]) {
          nowMs = 1_000_000 + atMs;
          expect(await refusal(), `${atMs} ms`).to.be.instanceOf(RpcContradictionError);
        }
        expect(await rows()).to.have.length(1);
        lies[0] = null;
        expect((await outbox.send(request('b'))).nonce).to.equal(1);
        node.mine();
        // As after a backup was restored: the chain has used more of its nonces than it knows.
        lies[0] = adds(5);
        await refusal();
        nowMs += 30_000;
        expect((await outbox.send(request('c'))).nonce).to.equal(7);
      });

      for (const [what, swallows] of [
        ['refuses what follows', false],
        ['takes what follows and does nothing with it', true],
      ] as const) {
        it(`passes over an endpoint that repeats an old nonce and ${what}`, async () => {
          const lies: (Lie | null)[] = [null, null, null];
          const rpc = poolOf(lies);
          const outbox = await start({ rpc, order: 'replace' });
          await outbox.send(request('a'));
          node.mine();
          await outbox.resume(HEAD_SEC);
          await outbox.send(request('b'));
          node.mine();
          lies[0] = (method, truth) =>
            method === 'eth_getTransactionCount'
              ? '0x1'
              : swallows && method === 'eth_sendRawTransaction'
                ? `0x${'0'.repeat(64)}`
                : truth;
          await outbox.send(request('c'));
          if (swallows) nowMs += 4_000;
          await outbox.resume(HEAD_SEC);
          expect(rpc.health()[0]).to.include({ healthy: false });
          expect((await outbox.send(request('d'))).nonce).to.equal(2);
          node.mine();
          expect(node.mined.map(dataOf)).to.deep.equal(['a', 'b', 'd']);
        });
      }

      for (const [what, swallows] of [
        ['refuses what follows', false],
        ['takes what follows and does nothing with it', true],
      ] as const) {
        it(`finds by a proof which of two endpoints repeats an old nonce and ${what}`, async () => {
          const lies: (Lie | null)[] = [null, null];
          const rpc = poolOf(lies);
          const outbox = await start({ rpc, provenBlock: () => Promise.resolve(node.provenBlock()) });
          await outbox.send(request('a'));
          node.mine();
          await outbox.resume(HEAD_SEC);
          await outbox.send(request('b'));
          node.mine();
          lies[0] = (method, truth) =>
            method === 'eth_getTransactionCount'
              ? '0x1'
              : swallows && method === 'eth_sendRawTransaction'
                ? `0x${'0'.repeat(64)}`
                : truth;
          await outbox.send(request('c'));
          nowMs += 4_000;
          await outbox.resume(HEAD_SEC);
          expect(rpc.health()[0]).to.include({ healthy: false });
          expect((await outbox.send(request('d'))).nonce).to.equal(2);
          node.mine();
          expect(node.mined.map(dataOf)).to.deep.equal(['a', 'b', 'd']);
          // Once its pause is over it says the same, and holds up nothing any more.
          nowMs += 60_000;
          await outbox.resume(HEAD_SEC);
          expect((await outbox.send(request('e'))).nonce).to.equal(3);
          nowMs += 4_000;
          await outbox.resume(HEAD_SEC);
          node.mine();
          expect(node.mined.map(dataOf)).to.deep.equal(['a', 'b', 'd', 'e']);
        });
      }

      it('says by a proof how many nonces were used up to a block, whichever of two endpoints says otherwise', async () => {
        for (const [i, count] of [-1, 1].entries()) {
          const lies: (Lie | null)[] = [null, null];
          const rpc = poolOf(lies);
          const writer = await acquireWriter(db, i === 0 ? 'settlement' : 'swap');
          const outbox = await start({ rpc, writer, order: 'queue', provenBlock: () => node.provenBlock() });
          await outbox.send(request(`a:${count}`));
          node.mine();
          lies[0] = adds(count);
          const { number } = await node.provenBlock();
          expect(await outbox.usedAt(number), `${count}`).to.equal(number);
          expect(rpc.health().map(({ healthy }) => healthy)).to.deep.equal([false, true]);
        }
      });

      it('believes no proof of another block than the ledger has', async () => {
        const lies: (Lie | null)[] = [null, null];
        const rpc = poolOf(lies);
        const outbox = await start({
          rpc,
          provenBlock: () => Promise.resolve({ number: 7, hash: `0x${'ef'.repeat(32)}` }),
        });
        await outbox.send(request('a'));
        node.mine();
        await outbox.resume(HEAD_SEC);
        lies[0] = adds(-1);
        await outbox.resume(HEAD_SEC);
        expect((await rows())[0]).to.include({ finished: true });
      });

      it('sends what is stuck to every endpoint, so that none holds it back by taking it', async () => {
        const lies: (Lie | null)[] = [
          (method, truth) => (method === 'eth_sendRawTransaction' ? `0x${'0'.repeat(64)}` : truth),
          null,
        ];
        const outbox = await start({ rpc: poolOf(lies) });
        await outbox.send(request('a'));
        expect(node.mine()).to.equal(0);
        nowMs += 4_000;
        await outbox.resume(HEAD_SEC);
        expect(node.mine()).to.equal(1);
      });

      it('is not done with a transaction that only one of two endpoints says was mined', async () => {
        const lies: (Lie | null)[] = [adds(1), null];
        const outbox = await start({ rpc: poolOf(lies), order: 'queue' });
        lies[0] = null;
        await outbox.send(request('a'));
        lies[0] = adds(1);
        await outbox.resume(HEAD_SEC);
        expect((await rows())[0]).to.include({ finished: false });
        expect(await outbox.usedAt(1)).to.equal(0);
        // Nor does it wait for ever to look after it.
        const sent = node.received.length;
        nowMs += 10_000;
        await outbox.resume(HEAD_SEC);
        expect(node.received.length).to.be.greaterThan(sent);
        node.mine();
        lies[0] = null;
        await outbox.resume(HEAD_SEC);
        expect((await rows()).every(({ finished }) => finished)).to.equal(true);
      });

      it('does not send again what only one of two endpoints forgets', async () => {
        const lies: (Lie | null)[] = [null, null];
        const outbox = await start({ rpc: poolOf(lies), order: 'queue' });
        await outbox.send(request('a'));
        node.mine();
        await outbox.resume(HEAD_SEC);
        lies[0] = adds(-1);
        const sent = node.received.length;
        await outbox.resume(HEAD_SEC);
        expect((await rows())[0]).to.include({ finished: true });
        expect(node.received).to.have.length(sent);
      });

      it('stops for no base fee above the ceiling that only one endpoint calls for', async () => {
        const lies: (Lie | null)[] = [null, null, null];
        const outbox = await start({ rpc: poolOf(lies), feeCeilingWei: 1_500_000_000n, order: 'queue' });
        await outbox.send(request('a'));
        // Less than twice what was said before, and more than may be bid.
        const dear: Lie = (method, truth) =>
          method === 'eth_getBlockByNumber' ? { baseFeePerGas: toQuantity(1_900_000_000n) } : truth;
        lies[0] = dear;
        expect(await outbox.affords(1_900_000_000n)).to.equal(true);
        expect((await outbox.send(request('b'))).nonce).to.equal(1);
        [lies[1], lies[2]] = [dear, dear];
        nowMs += 30_000;
        expect(await outbox.affords(1_900_000_000n)).to.equal(false);
        expect(await outbox.send(request('c')).catch((error: unknown) => error)).to.be.instanceOf(FeeCeilingError);
      });

      it('bids what most endpoints call for, however dear or cheap one of them calls it', async () => {
        for (const wei of [10n ** 13n, 1n]) {
          const lie: Lie = (method, truth) =>
            method === 'eth_getBlockByNumber' ? { baseFeePerGas: toQuantity(wei) } : truth;
          const lies: (Lie | null)[] = [null, null, null];
          const writer = await acquireWriter(db, wei === 1n ? 'swap' : 'settlement');
          const outbox = await start({ rpc: poolOf(lies), writer, feeCeilingWei: 10n ** 11n, order: 'queue' });
          await outbox.send(request(`first:${wei}`));
          lies[0] = lie;
          await outbox.send(request(`second:${wei}`));
          expect(node.received.at(-1)!.maxFeePerGas).to.equal(2_001_000_000n);
        }
      });
    });

    it('fills no more gaps in a minute than it may, however many there are', async () => {
      const outbox = await start({ order: 'queue' });
      await outbox.send(request('a'));
      const [row] = await db.knex('outbox').select<Record<string, unknown>[]>();
      await db.knex('outbox').insert({ ...row, nonce: 3_000, hash: `0x${'cd'.repeat(32)}` });
      for (let round = 0; round < 3; round++) await outbox.resume(HEAD_SEC);
      expect(outbox.status().gapTransfers).to.equal(32);
      nowMs += 60_000;
      await outbox.resume(HEAD_SEC);
      expect(outbox.status().gapTransfers, 'those of the next minute').to.be.within(33, 64);
    });

    describe('after the key was changed', () => {
      const NEXT: Hex = `0x${'22'.repeat(32)}`;

      /** Two accounts on one chain, of which the second one is the key in use. */
      async function change(mayAct: boolean | null, next: Partial<OutboxDeps> = {}) {
        const old = await start({ order: 'queue' });
        for (const key of ['a', 'b']) await old.send(request(key));
        node.mine();
        await old.send(request('c', HEAD_SEC));
        await old.send(request('d'));
        const others = createFakeNode();
        const call: Rpc['call'] = (method, params = []) => {
          const isOther = method === 'eth_getTransactionCount' ? params[0] !== old.signer : method !== 'eth_getBalance';
          return (isOther ? others : node).rpc.call(method, params);
        };
        const rpc: Rpc = { ...node.rpc, call };
        const doubt = new RpcContradictionError('endpoints differ');
        const serves = {
          contract: BOOK,
          mayAct: () => (mayAct === null ? Promise.reject(doubt) : Promise.resolve(mayAct)),
        };
        const writer = await acquireWriter(db, 'settlement');
        const outbox = await start({ rpc, privateKey: NEXT, serves, writer, ...next });
        const states = async (): Promise<string[]> =>
          (await listOutbox(db.knex, { signer: old.signer, limit: 9 }))
            .reverse()
            .map(({ finished, givenUp }) => (givenUp ? 'given up' : finished ? 'used' : 'open'));
        return { old, outbox, others, states };
      }

      it('what the chain has used is done with, and what is too late is given up', async () => {
        const { outbox, states } = await change(true);
        await outbox.resume(HEAD_SEC);
        expect(await states()).to.deep.equal(['used', 'used', 'open', 'open']);
        nowMs += 60_000;
        await outbox.resume(HEAD_SEC + 600);
        expect(await states()).to.deep.equal(['used', 'used', 'given up', 'open']);
      });

      it('what the contract refuses to the old key is given up', async () => {
        const { outbox, others, states } = await change(false);
        await outbox.resume(HEAD_SEC);
        expect(await states()).to.deep.equal(['used', 'used', 'given up', 'given up']);
        expect(others.received).to.deep.equal([]);
        expect(await readUnmined(db.knex)).to.deep.include({ signer: KEY_ADDRESS, count: 0, oldestSentMs: null });
      });

      it('nothing is given up while endpoints differ, and the new key goes on', async () => {
        const { outbox, others, states } = await change(null);
        await outbox.resume(HEAD_SEC);
        expect(await states()).to.deep.equal(['used', 'used', 'open', 'open']);
        await outbox.send(request('e'));
        expect(others.mine()).to.equal(1);
      });

      it('what was given up is looked after again once the old key is back', async () => {
        const { outbox } = await change(false);
        await outbox.resume(HEAD_SEC);
        const back = await start({ order: 'queue', writer: await acquireWriter(db, 'swap') });
        await back.resume(HEAD_SEC);
        node.mine();
        expect(node.mined.map(dataOf)).to.deep.equal(['a', 'b', '', 'd']);
        expect((await back.send(request('e'))).nonce).to.equal(4);
      });
    });

    it('times what is unmined by a clock that does not step', async () => {
      let monotonicMs = 0;
      const outbox = await start({ stuckMs: 5_000, monotonicMs: () => monotonicMs });
      await outbox.send(request('a'));
      nowMs += 3_600_000;
      await outbox.resume(HEAD_SEC);
      expect(new Set(node.received.map((tx) => tx.hash)).size, 'an hour ahead').to.equal(1);
      nowMs -= 7_200_000;
      monotonicMs += 5_000;
      await outbox.resume(HEAD_SEC);
      expect(new Set(node.received.map((tx) => tx.hash)).size, 'an hour behind').to.equal(2);
    });

    it('reports a low balance, refusals, and what is unmined', async () => {
      const outbox = await start({ lowBalanceWei: 10n ** 17n, order: 'queue' });
      await outbox.send(request('a'));
      await outbox.send(request('b'));
      await outbox.resume(HEAD_SEC);
      expect(outbox.status()).to.include({ balanceWei: 10n ** 18n, lowBalance: false, unminedCount: 2 });
      expect(outbox.status().oldestSentMs).to.equal(1_000_000);
      node.balanceWei = 10n ** 17n - 1n;
      nowMs += 30_000;
      await outbox.resume(HEAD_SEC);
      expect(outbox.status().lowBalance).to.equal(true);
    });
  });
});
