/** What an outbox sends while endpoints lie, and after its key was changed. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { Wallet } from 'ethers';
import { pino } from 'pino';
import type { Hex } from '../../../core/types.js';
import { FeeCeilingError } from '../../../keepers/chain/fees.js';
import type { OutboxDeps } from '../../../keepers/chain/outbox.js';
import { createRpcPool } from '../../../keepers/chain/pool.js';
import {
  RpcContradictionError,
  RpcResponseError,
  RpcUnavailableError,
  toQuantity,
  type Rpc,
} from '../../../keepers/chain/rpc.js';
import { listOutbox, readUnmined } from '../../../ledger/transactions/outbox.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { forEachDatabase } from '../../support/db.js';
import { createFakeNode } from '../../support/nodes/fake-node.js';
import { outboxOnFakeNode, KEY, BOOK, HEAD_SEC, request } from '../../support/nodes/outbox-on-fake-node.js';

const KEY_ADDRESS = new Wallet(KEY).address.toLowerCase();

forEachDatabase((_name, open) => {
  describe('outbox', () => {
    const suite = outboxOnFakeNode(open);
    const { start, dataOf, rows } = suite;

    describe('while endpoints lie', () => {
      /** What an endpoint answers instead of the truth. */
      type Lie = (method: string, truth: unknown) => unknown;

      /** Endpoints of the one node, each with a lie that may come and go. */
      function poolOf(lies: (Lie | null)[]) {
        return createRpcPool(
          lies.map((_, i) => `${i}`),
          {
            nowMs: () => suite.nowMs,
            logger: pino({ level: 'silent' }),
            connect: (url) => {
              const call = async (method: string, params: unknown[] = []) => {
                if (method === 'eth_sendRawTransaction') {
                  const said = lies[Number(url)]?.(method, undefined);
                  if (said !== undefined) return said;
                }
                const truth = await suite.node.rpc.call(method, params);
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

      /** It is the last to be heard of. */
      const dead: Lie = async () => {
        await delay(20);
        throw new RpcUnavailableError('dead');
      };

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
            suite.node.mine();
          }
          lies[0] = null;
          suite.nowMs += 60_000;
          await outbox.resume(HEAD_SEC);
          expect(suite.node.mined.map(dataOf)).to.deep.equal(['a', 'b', 'c']);
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
        suite.node.mine();
        lies[0] = adds(3_000);
        const refusal = () => outbox.send(request('b')).catch((error: unknown) => error);
        for (const atMs of [0, 6_000, 29_999]) {
          suite.nowMs = 1_000_000 + atMs;
          expect(await refusal(), `${atMs} ms`).to.be.instanceOf(RpcContradictionError);
        }
        expect(await rows()).to.have.length(1);
        lies[0] = null;
        expect((await outbox.send(request('b'))).nonce).to.equal(1);
        suite.node.mine();
        // As after a backup was restored: the chain has used more of its nonces than it knows.
        lies[0] = adds(5);
        await refusal();
        suite.nowMs += 30_000;
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
          suite.node.mine();
          await outbox.resume(HEAD_SEC);
          await outbox.send(request('b'));
          suite.node.mine();
          lies[0] = (method, truth) =>
            method === 'eth_getTransactionCount'
              ? '0x1'
              : swallows && method === 'eth_sendRawTransaction'
                ? `0x${'0'.repeat(64)}`
                : truth;
          await outbox.send(request('c'));
          if (swallows) suite.nowMs += 4_000;
          await outbox.resume(HEAD_SEC);
          expect(rpc.health()[0]).to.include({ healthy: false });
          expect((await outbox.send(request('d'))).nonce).to.equal(2);
          suite.node.mine();
          expect(suite.node.mined.map(dataOf)).to.deep.equal(['a', 'b', 'd']);
        });
      }

      for (const [what, swallows] of [
        ['refuses what follows', false],
        ['takes what follows and does nothing with it', true],
      ] as const) {
        it(`finds by a proof which of two endpoints repeats an old nonce and ${what}`, async () => {
          const lies: (Lie | null)[] = [null, null];
          const rpc = poolOf(lies);
          const outbox = await start({ rpc, provenBlock: () => Promise.resolve(suite.node.provenBlock()) });
          await outbox.send(request('a'));
          suite.node.mine();
          await outbox.resume(HEAD_SEC);
          await outbox.send(request('b'));
          suite.node.mine();
          lies[0] = (method, truth) =>
            method === 'eth_getTransactionCount'
              ? '0x1'
              : swallows && method === 'eth_sendRawTransaction'
                ? `0x${'0'.repeat(64)}`
                : truth;
          await outbox.send(request('c'));
          suite.nowMs += 4_000;
          await outbox.resume(HEAD_SEC);
          expect(rpc.health()[0]).to.include({ healthy: false });
          expect((await outbox.send(request('d'))).nonce).to.equal(2);
          suite.node.mine();
          expect(suite.node.mined.map(dataOf)).to.deep.equal(['a', 'b', 'd']);
          // Once its pause is over it says the same, and holds up nothing any more.
          suite.nowMs += 60_000;
          await outbox.resume(HEAD_SEC);
          expect((await outbox.send(request('e'))).nonce).to.equal(3);
          suite.nowMs += 4_000;
          await outbox.resume(HEAD_SEC);
          suite.node.mine();
          expect(suite.node.mined.map(dataOf)).to.deep.equal(['a', 'b', 'd', 'e']);
        });
      }

      it('says by a proof how many nonces were used up to a block, whichever of two endpoints says otherwise', async () => {
        for (const [i, count] of [-1, 1].entries()) {
          const lies: (Lie | null)[] = [null, null];
          const rpc = poolOf(lies);
          const writer = await acquireWriter(suite.db, i === 0 ? 'settlement' : 'swap');
          const outbox = await start({ rpc, writer, order: 'queue', provenBlock: () => suite.node.provenBlock() });
          await outbox.send(request(`a:${count}`));
          suite.node.mine();
          lies[0] = adds(count);
          const { number } = await suite.node.provenBlock();
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
        suite.node.mine();
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
        expect(suite.node.mine()).to.equal(0);
        suite.nowMs += 4_000;
        await outbox.resume(HEAD_SEC);
        expect(suite.node.mine()).to.equal(1);
      });

      it('goes on with what is stuck and known everywhere while one endpoint of three is dead', async () => {
        const outbox = await start({ rpc: poolOf([null, null, dead]), order: 'queue' });
        for (const key of ['a', 'b']) await outbox.send(request(key));
        const bids = (nonce: number) =>
          suite.node.received.filter((tx) => tx.nonce === nonce).map(({ maxFeePerGas }) => maxFeePerGas!);
        for (let raises = 1; raises <= 3; raises += 1) {
          for (let round = 0; round < 4; round += 1) {
            suite.nowMs += 1_000;
            await outbox.resume(HEAD_SEC);
          }
          for (const nonce of [0, 1]) expect(new Set(bids(nonce)).size, `nonce ${nonce}`).to.equal(1 + raises);
        }
        expect(outbox.status().lastRefusal).to.equal(null);
        suite.node.mine();
        await outbox.resume(HEAD_SEC);
        expect((await rows()).every(({ nonce, finished }) => finished || nonce > 1)).to.equal(true);
      });

      it('hears that a nonce is used while another endpoint is dead', async () => {
        const refused: Lie = (method, truth) => {
          if (method !== 'eth_sendRawTransaction') return truth;
          throw new RpcResponseError(method, -32_000, 'nonce too low', undefined);
        };
        const lies: (Lie | null)[] = [null, null, null];
        const outbox = await start({ rpc: poolOf(lies) });
        await outbox.send(request('a'));
        lies.splice(0, 3, refused, refused, dead);
        suite.nowMs += 4_000;
        await outbox.resume(HEAD_SEC);
        expect(outbox.status().lastRefusal).to.include('nonce too low');
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
        const sent = suite.node.received.length;
        suite.nowMs += 10_000;
        await outbox.resume(HEAD_SEC);
        expect(suite.node.received.length).to.be.greaterThan(sent);
        suite.node.mine();
        lies[0] = null;
        await outbox.resume(HEAD_SEC);
        expect((await rows()).every(({ finished }) => finished)).to.equal(true);
      });

      it('does not send again what only one of two endpoints forgets', async () => {
        const lies: (Lie | null)[] = [null, null];
        const outbox = await start({ rpc: poolOf(lies), order: 'queue' });
        await outbox.send(request('a'));
        suite.node.mine();
        await outbox.resume(HEAD_SEC);
        lies[0] = adds(-1);
        const sent = suite.node.received.length;
        await outbox.resume(HEAD_SEC);
        expect((await rows())[0]).to.include({ finished: true });
        expect(suite.node.received).to.have.length(sent);
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
        suite.nowMs += 30_000;
        expect(await outbox.affords(1_900_000_000n)).to.equal(false);
        expect(await outbox.send(request('c')).catch((error: unknown) => error)).to.be.instanceOf(FeeCeilingError);
      });

      it('bids what most endpoints call for, however dear or cheap one of them calls it', async () => {
        for (const wei of [10n ** 13n, 1n]) {
          const lie: Lie = (method, truth) =>
            method === 'eth_getBlockByNumber' ? { baseFeePerGas: toQuantity(wei) } : truth;
          const lies: (Lie | null)[] = [null, null, null];
          const writer = await acquireWriter(suite.db, wei === 1n ? 'swap' : 'settlement');
          const outbox = await start({ rpc: poolOf(lies), writer, feeCeilingWei: 10n ** 11n, order: 'queue' });
          await outbox.send(request(`first:${wei}`));
          lies[0] = lie;
          await outbox.send(request(`second:${wei}`));
          expect(suite.node.received.at(-1)!.maxFeePerGas).to.equal(2_001_000_000n);
        }
      });
    });

    it('fills no more gaps in a minute than it may, however many there are', async () => {
      const outbox = await start({ order: 'queue' });
      await outbox.send(request('a'));
      const [row] = await suite.db.knex('outbox').select<Record<string, unknown>[]>();
      await suite.db.knex('outbox').insert({ ...row, nonce: 3_000, hash: `0x${'cd'.repeat(32)}` });
      for (let round = 0; round < 3; round++) await outbox.resume(HEAD_SEC);
      expect(outbox.status().gapTransfers).to.equal(32);
      suite.nowMs += 60_000;
      await outbox.resume(HEAD_SEC);
      expect(outbox.status().gapTransfers, 'those of the next minute').to.be.within(33, 64);
    });

    describe('after the key was changed', () => {
      const NEXT: Hex = `0x${'22'.repeat(32)}`;

      /** Two accounts on one chain, of which the second one is the key in use. */
      async function change(mayAct: boolean | null, next: Partial<OutboxDeps> = {}) {
        const old = await start({ order: 'queue' });
        for (const key of ['a', 'b']) await old.send(request(key));
        suite.node.mine();
        await old.send(request('c', HEAD_SEC));
        await old.send(request('d'));
        const others = createFakeNode();
        const call: Rpc['call'] = (method, params = []) => {
          const isOther = method === 'eth_getTransactionCount' ? params[0] !== old.signer : method !== 'eth_getBalance';
          return (isOther ? others : suite.node).rpc.call(method, params);
        };
        const rpc: Rpc = { ...suite.node.rpc, call };
        const doubt = new RpcContradictionError('endpoints differ');
        const serves = {
          contract: BOOK,
          mayAct: () => (mayAct === null ? Promise.reject(doubt) : Promise.resolve(mayAct)),
        };
        const writer = await acquireWriter(suite.db, 'settlement');
        const outbox = await start({ rpc, privateKey: NEXT, serves, writer, ...next });
        const states = async (): Promise<string[]> =>
          (await listOutbox(suite.db.knex, { signer: old.signer, limit: 9 }))
            .reverse()
            .map(({ finished, givenUp }) => (givenUp ? 'given up' : finished ? 'used' : 'open'));
        return { old, outbox, others, states };
      }

      it('what the chain has used is done with, and what is too late is given up', async () => {
        const { outbox, states } = await change(true);
        await outbox.resume(HEAD_SEC);
        expect(await states()).to.deep.equal(['used', 'used', 'open', 'open']);
        suite.nowMs += 60_000;
        await outbox.resume(HEAD_SEC + 600);
        expect(await states()).to.deep.equal(['used', 'used', 'given up', 'open']);
      });

      it('what the contract refuses to the old key is given up', async () => {
        const { outbox, others, states } = await change(false);
        await outbox.resume(HEAD_SEC);
        expect(await states()).to.deep.equal(['used', 'used', 'given up', 'given up']);
        expect(others.received).to.deep.equal([]);
        expect(await readUnmined(suite.db.knex)).to.deep.include({ signer: KEY_ADDRESS, count: 0, oldestSentMs: null });
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
        const back = await start({ order: 'queue', writer: await acquireWriter(suite.db, 'swap') });
        await back.resume(HEAD_SEC);
        suite.node.mine();
        expect(suite.node.mined.map(dataOf)).to.deep.equal(['a', 'b', '', 'd']);
        expect((await back.send(request('e'))).nonce).to.equal(4);
      });
    });
  });
});
