/** Orders that their owners take back. */
import { expect } from 'chai';
import { parseUnits, type Wallet } from 'ethers';
import { cancellationTypedData } from '../../../core/swap/typed-data.js';
import type { Address, Hex } from '../../../core/types.js';
import { cancelOrder } from '../../../ledger/swaps/swap-cancellations.js';
import type { Outbox } from '../../../keepers/chain/outbox.js';
import { forksOf } from '../../support/nodes/fork.js';
import type { ManualChain } from '../../support/keeper-stack.js';
import { forEachSwapStack } from '../../support/manual-suite.js';
import { createOwners, type ErrorAnswer, type SwapStack } from '../../support/swap-stack.js';

/** Says that any signature is valid. */
const TRUSTING = '0x631626ba7e60e01b5f5260205ff3';

describe('cancelled orders', () => {
  forEachSwapStack((begin) => {
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;

    beforeEach(async function () {
      this.timeout(60_000);
      ({ chain, stack, taker } = await begin());
      await stack.makeMarket();
    });

    afterEach(() => stack.stop());

    async function submitted(signer: Wallet = taker): Promise<string> {
      const quote = await stack.quote(signer.address, { sellAmountBeforeFee: parseUnits('1', 18).toString() });
      const { status, body } = await stack.submit(quote, signer);
      expect(status, JSON.stringify(body)).to.equal(200);
      return body.orderId;
    }

    async function signed(orderId: string, signer: Wallet = taker, change: object = {}): Promise<Hex> {
      const settler = chain.manifest.contracts['orderSettler']!.toLowerCase() as Address;
      const { domain, types, message } = cancellationTypedData(orderId, { chainId: chain.manifest.chainId, settler });
      const { EIP712Domain: _, ...rest } = types;
      return (await signer.signTypedData({ ...domain, ...change }, rest, message)) as Hex;
    }

    const cancel = async (orderId: string, signature: Hex) =>
      stack.request<{ status: string } & ErrorAnswer>('DELETE', `/orders/${orderId}`, { signature });

    it('are never sent, say so, and free what they were to take', async () => {
      const orderId = await submitted();
      const signature = await signed(orderId);
      for (let again = 0; again < 2; again++) {
        const { status, body } = await cancel(orderId, signature);
        expect([status, body.status]).to.deep.equal([200, 'failed']);
      }
      await stack.land();
      await stack.land();
      const { status, reason, attempts } = await stack.order(orderId);
      expect([status, reason?.code, attempts.length]).to.deep.equal(['failed', 'CANCELLED', 0]);
      const next = await submitted();
      await stack.land();
      expect((await stack.order(next)).status).to.equal('filled');
      expect((await stack.order(orderId)).status).to.equal('failed');
    });

    it('are those of their owner, of this order, chain and deployment', async () => {
      const [orderId, other] = [await submitted(), await submitted()];
      const wrong = [
        await signed(orderId, chain.wallet('taker2')),
        await signed(other),
        await signed(orderId, taker, { chainId: 1 }),
        await signed(orderId, taker, { verifyingContract: taker.address }),
      ];
      for (const signature of wrong) {
        const { status, body } = await cancel(orderId, signature);
        expect([status, body.error.code]).to.deep.equal([400, 'BAD_REQUEST']);
      }
      expect((await cancel('00000000-0000-4000-8000-000000000000', wrong[0]!)).status).to.equal(404);
      await stack.land();
      expect((await stack.order(orderId)).status).to.equal('filled');
    });

    it('can not be taken back once something was sent, nor once they ended', async () => {
      const orderId = await submitted();
      const signature = await signed(orderId);
      await stack.executor.round();
      const late = await cancel(orderId, signature);
      expect([late.status, late.body.error.code]).to.deep.equal([409, 'ORDER_SENT']);
      await stack.land();
      const after = await cancel(orderId, signature);
      expect([after.status, after.body.error.code]).to.deep.equal([409, 'ORDER_ENDED']);
      expect((await stack.order(orderId)).status).to.equal('filled');
    });

    it('can be taken back while nothing is signed, though an executor is about to', async () => {
      const orderId = await submitted();
      const signature = await signed(orderId);
      const failing = (outbox: Outbox): Outbox => ({ ...outbox, send: () => Promise.reject(new Error('no answer')) });
      await stack.restartExecutor({ outbox: failing });
      await stack.executor.round();
      const { attempts } = await stack.order(orderId);
      expect(attempts).to.have.lengthOf(1);
      expect(attempts[0]).to.deep.include({ result: 'sent', txHashes: [] });
      const { status, body } = await cancel(orderId, signature);
      expect([status, body.status]).to.deep.equal([200, 'failed']);
      await stack.restartExecutor();
      await stack.land();
      expect((await stack.order(orderId)).reason?.code).to.equal('CANCELLED');
    });

    it('are not signed when they are taken back between the two', async () => {
      const orderId = await submitted();
      const signature = await signed(orderId);
      let cancelled = 0;
      const late = (outbox: Outbox): Outbox => ({
        ...outbox,
        async send(request) {
          cancelled = (await cancel(orderId, signature)).status;
          return outbox.send(request);
        },
      });
      await stack.restartExecutor({ outbox: late });
      await stack.land();
      await stack.land();
      expect(cancelled).to.equal(200);
      const { status, reason, attempts } = await stack.order(orderId);
      expect([status, reason?.code]).to.deep.equal(['failed', 'CANCELLED']);
      expect(attempts.flatMap(({ txHashes }) => txHashes)).to.deep.equal([]);
      expect(stack.outbox.status().unminedCount).to.equal(0);
    });

    it('stay so when a reorganisation takes back a fill of before the log was restored', async () => {
      const forks = forksOf(chain, stack.keepers);
      const mark = await forks.mark();
      const orderId = await submitted();
      await stack.land();
      expect((await stack.order(orderId)).status).to.equal('filled');
      // As in a log of before the transaction, in which the owner took the order back.
      await stack.db.knex('swap_attempts').delete();
      await stack.db.knex('outbox').delete();
      await stack.db.knex('order_costs').delete();
      await stack.db.knex('swap_cancellations').insert({ order_id: orderId, signature: '0x01', time_ms: Date.now() });
      await stack.db.knex('swap_pending').delete();
      await forks.fork(mark);
      await forks.reconcile();
      await stack.restartExecutor();
      for (let round = 0; round < 2; round++) await stack.land();
      const { status, reason } = await stack.order(orderId);
      expect([status, reason?.code]).to.deep.equal(['failed', 'CANCELLED']);
    });

    it('are taken back by the code of an account that has some', async () => {
      const [owner] = await createOwners(chain, 'WETH', 1, parseUnits('3', 18));
      const orderId = await submitted(owner);
      await chain.provider.send('hardhat_setCode', [owner!.address, TRUSTING]);
      expect((await cancel(orderId, '0x01')).status).to.equal(200);
    });

    it('are sent or taken back, never both, however the two meet', async () => {
      const ids: string[] = [];
      for (const owner of await createOwners(chain, 'WETH', 6, parseUnits('3', 18))) ids.push(await submitted(owner));
      const [, ...results] = await Promise.all([
        stack.executor.round(),
        ...ids.map((orderId) => cancelOrder(stack.db, { orderId, signature: '0x01', timeMs: Date.now() })),
      ]);
      await stack.land();
      for (const [i, orderId] of ids.entries()) {
        const { status, attempts } = await stack.order(orderId);
        const wasSent = attempts.some(({ txHashes }) => txHashes.length > 0);
        expect(results[i], `${i}`).to.equal(wasSent ? 'sent' : 'cancelled');
        expect(status).to.equal(wasSent ? 'filled' : 'failed');
      }
    });
  });
});
