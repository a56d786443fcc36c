import { expect } from 'chai';
import { FeeCeilingError, bumpFee } from '../../../keepers/chain/fees.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { forEachDatabase } from '../../support/db.js';
import { outboxOnFakeNode, HEAD_SEC, request } from '../../support/nodes/outbox-on-fake-node.js';

forEachDatabase((_name, open) => {
  describe('outbox', () => {
    const suite = outboxOnFakeNode(open);
    const { start, dataOf, rows } = suite;

    it('signs at the first unused nonce, and marks it finished once it is mined', async () => {
      const outbox = await start();
      const sent = await outbox.send(request('post:1'));
      expect(sent).to.include({ nonce: 0, replaced: false });
      expect(suite.node.mine()).to.equal(1);
      await outbox.resume(HEAD_SEC);
      expect(await rows()).to.have.length(1);
      expect((await rows())[0]).to.include({ finished: true, hash: sent.hash, txKey: 'post:1' });
      expect((await outbox.send(request('post:2'))).nonce).to.equal(1);
    });

    it('stores before it broadcasts, and sends the same bytes after a crash', async () => {
      suite.node.unreachable = true;
      const failed = (await start()).send(request('post:1'));
      expect(await failed.catch((error: Error) => error.name)).to.equal('RpcUnavailableError');
      const [stored] = await rows();
      expect(stored).to.include({ txKey: 'post:1', finished: false });

      suite.node.unreachable = false;
      const writer = await acquireWriter(suite.db, 'settlement');
      await (await start({ writer })).resume(HEAD_SEC);
      expect(suite.node.received.map((tx) => tx.hash)).to.deep.equal([stored?.hash]);
      expect(suite.node.mine()).to.equal(1);
    });

    it('replaces an unmined transaction, outbidding it in both prices', async () => {
      const outbox = await start();
      await outbox.send(request('post:1'));
      const second = await outbox.send(request('post:2'));
      expect(second).to.include({ nonce: 0, replaced: true });
      const [first, replacement] = suite.node.received;
      expect(replacement!.maxFeePerGas! * 1_000n >= first!.maxFeePerGas! * 1_125n).to.equal(true);
      expect(replacement!.maxPriorityFeePerGas! * 1_000n >= first!.maxPriorityFeePerGas! * 1_125n).to.equal(true);
      suite.node.mine();
      expect(suite.node.mined.map(dataOf)).to.deep.equal(['post:2']);
    });

    it('queues behind what is unmined when it may not be replaced', async () => {
      const outbox = await start({ order: 'queue' });
      const nonces = [];
      for (const key of ['settle:1', 'settle:2', 'settle:3']) nonces.push((await outbox.send(request(key))).nonce);
      expect(nonces).to.deep.equal([0, 1, 2]);
      suite.node.mine();
      expect(suite.node.mined.map(dataOf)).to.deep.equal(['settle:1', 'settle:2', 'settle:3']);
    });

    it('rebroadcasts the same bytes until it is stuck, then raises the fee at the same nonce', async () => {
      const outbox = await start({ stuckMs: 5_000 });
      await outbox.send(request('post:1'));
      suite.nowMs += 4_999;
      await outbox.resume(HEAD_SEC);
      expect(new Set(suite.node.received.map((tx) => tx.hash)).size).to.equal(1);
      suite.nowMs += 1;
      await outbox.resume(HEAD_SEC);
      const raised = suite.node.received.at(-1)!;
      expect(raised.nonce).to.equal(0);
      expect(dataOf(raised)).to.equal('post:1');
      expect(raised.maxFeePerGas).to.equal(bumpFee(suite.node.received[0]!.maxFeePerGas!));
      expect(suite.node.pool.get(0)?.hash).to.equal(raised.hash);
    });

    it('does not go beyond the ceiling, and keeps what it has in the pool', async () => {
      const outbox = await start({ stuckMs: 1_000, feeCeilingWei: 2_100_000_000n });
      await outbox.send(request('post:1'));
      suite.nowMs += 1_000;
      await outbox.resume(HEAD_SEC);
      expect(suite.node.pool.size).to.equal(1);
      expect(await rows()).to.have.length(1);
      const refused = await outbox.send(request('post:2')).catch((error: unknown) => error);
      expect(refused).to.be.instanceOf(FeeCeilingError);
      expect(await rows()).to.have.length(1);
    });

    it('never bids more for an act than the act may, also after a restart', async () => {
      const maxFeeWei = 2_300_000_000n;
      const outbox = await start({ stuckMs: 1_000, order: 'queue' });
      await outbox.send({ ...request('order:1'), maxFeeWei });
      const again = await start({
        stuckMs: 1_000,
        order: 'queue',
        writer: await acquireWriter(suite.db, 'settlement'),
      });
      await again.resume(HEAD_SEC);
      for (let round = 0; round < 8; round++) {
        suite.nowMs += 1_000;
        await again.resume(HEAD_SEC);
      }
      const bids = suite.node.received.map((tx) => tx.maxFeePerGas!);
      expect(
        bids.every((wei) => wei <= maxFeeWei),
        bids.join(),
      ).to.equal(true);
      expect(new Set(suite.node.received.map(dataOf))).to.deep.equal(new Set(['order:1']));
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
      suite.node.baseFeeWei = 3_000_000_000n;
      suite.nowMs += 1_000;
      await outbox.resume(HEAD_SEC);
      expect(suite.node.pool.get(0)?.data, 'it waits while nothing waits for it').to.not.equal('0x');
      await outbox.send(request('order:2'));
      suite.nowMs += 1_000;
      await outbox.resume(HEAD_SEC);
      expect(suite.node.pool.get(0)).to.include({ data: '0x', value: 0n, gasLimit: 21_000n });
      suite.node.mine();
      expect(suite.node.mined.map(dataOf)).to.deep.equal(['', 'order:2']);
    });

    it('puts a transfer to itself in the place of one that is out of date', async () => {
      const outbox = await start({ order: 'queue' });
      await outbox.send(request('order:1', HEAD_SEC));
      await outbox.send(request('order:2', HEAD_SEC + 100));
      await outbox.resume(HEAD_SEC - 1);
      expect(suite.node.pool.get(0)?.data).to.not.equal('0x');
      await outbox.resume(HEAD_SEC);
      expect(suite.node.pool.get(0)).to.include({ data: '0x', value: 0n });
      expect(suite.node.pool.get(0)?.to?.toLowerCase()).to.equal(outbox.signer);
      suite.node.mine();
      expect(suite.node.mined.map(dataOf)).to.deep.equal(['', 'order:2']);
      await outbox.resume(HEAD_SEC);
      expect((await rows()).every((row) => row.finished)).to.equal(true);
    });

    it('fills a gap between nonces', async () => {
      const outbox = await start({ order: 'queue' });
      for (const key of ['a', 'b', 'c']) await outbox.send(request(key));
      // A restored backup has forgotten one row, and the node its pool.
      await suite.db.knex('outbox').where({ nonce: 1 }).delete();
      suite.node.pool.clear();
      await outbox.resume(HEAD_SEC);
      expect(suite.node.mine()).to.equal(3);
      expect(suite.node.mined.map(dataOf)).to.deep.equal(['a', '', 'c']);
    });

    it('sends mined transactions again when the chain drops them', async () => {
      const outbox = await start({ order: 'queue' });
      for (const key of ['a', 'b']) await outbox.send(request(key));
      suite.node.mine();
      await outbox.resume(HEAD_SEC);
      expect((await rows()).map((row) => row.finished)).to.deep.equal([true, true]);
      suite.node.reorg(2);
      await outbox.resume(HEAD_SEC);
      suite.node.mine();
      expect(suite.node.mined.map(dataOf)).to.deep.equal(['a', 'b']);
      expect((await outbox.send(request('c'))).nonce).to.equal(2);
    });

    it('times what is unmined by a clock that does not step', async () => {
      let monotonicMs = 0;
      const outbox = await start({ stuckMs: 5_000, monotonicMs: () => monotonicMs });
      await outbox.send(request('a'));
      suite.nowMs += 3_600_000;
      await outbox.resume(HEAD_SEC);
      expect(new Set(suite.node.received.map((tx) => tx.hash)).size, 'an hour ahead').to.equal(1);
      suite.nowMs -= 7_200_000;
      monotonicMs += 5_000;
      await outbox.resume(HEAD_SEC);
      expect(new Set(suite.node.received.map((tx) => tx.hash)).size, 'an hour behind').to.equal(2);
    });

    it('reports a low balance, refusals, and what is unmined', async () => {
      const outbox = await start({ lowBalanceWei: 10n ** 17n, order: 'queue' });
      await outbox.send(request('a'));
      await outbox.send(request('b'));
      await outbox.resume(HEAD_SEC);
      expect(outbox.status()).to.include({ balanceWei: 10n ** 18n, lowBalance: false, unminedCount: 2 });
      expect(outbox.status().oldestSentMs).to.equal(1_000_000);
      suite.node.balanceWei = 10n ** 17n - 1n;
      suite.nowMs += 30_000;
      await outbox.resume(HEAD_SEC);
      expect(outbox.status().lowBalance).to.equal(true);
    });
  });
});
