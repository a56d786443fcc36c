/** More orders than the executor has turns for are not accepted. */
import { expect } from 'chai';
import type { Wallet } from 'ethers';
import { parseEther } from 'ethers';
import { randomUUID } from 'node:crypto';
import { MOST_TURNS, listPending } from '../../../ledger/swaps/swap-log.js';
import { forEachDatabase } from '../../support/db.js';
import type { ManualChain } from '../../support/keeper-stack.js';
import { forEachSwapStack } from '../../support/manual-suite.js';
import { createOwners, type ErrorAnswer, type SwapStack } from '../../support/swap-stack.js';

const SOME = { sellAmountBeforeFee: `${parseEther('0.01')}` };

describe('pending orders', () => {
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

    async function submitted(owner: Wallet): Promise<string> {
      const { status, body } = await stack.submit(await stack.quote(owner.address, SOME), owner);
      expect(status, JSON.stringify(body)).to.equal(200);
      return body.orderId;
    }

    async function refused(owner: Wallet): Promise<[number, string, string]> {
      const { status, body } = await stack.submit(await stack.quote(owner.address, SOME), owner);
      expect(body).to.have.property('error');
      const { error } = body as unknown as ErrorAnswer;
      return [status, error.code, error.message];
    }

    /** Adds older pending orders like one that there is, each of another new account. */
    async function add(like: string, count: number): Promise<void> {
      const { knex } = stack.db;
      const [order] = await knex('swap_orders').where({ id: like });
      const [quote] = await knex('swap_quotes').where({ id: order!.quote_id });
      const [pending] = await knex('swap_pending').where({ order_id: like });
      const rows = Array.from({ length: count }, () => ({
        id: randomUUID(),
        owner: `0x${randomUUID().replaceAll('-', '').padEnd(40, '0')}`,
      }));
      const insert = (table: string, of: (row: (typeof rows)[number]) => object): Promise<unknown> =>
        knex.batchInsert(table, rows.map(of), 50);
      await insert('swap_quotes', (row) => ({ ...quote!, ...row }));
      await insert('swap_orders', (row) => ({ ...order!, ...row, quote_id: row.id, client_order_id: null }));
      const created_ms = Number(pending!.created_ms) - 60_000;
      await insert('swap_pending', ({ id, owner }) => ({ ...pending!, order_id: id, owner, created_ms }));
    }

    it('are refused beyond so many, first those of accounts that have not traded, and all others have turns', async () => {
      const [trader, newcomer] = (await createOwners(chain, 'WETH', 2, parseEther('1'))) as [Wallet, Wallet];
      const traded = await submitted(trader);
      await stack.land();
      expect((await stack.order(traded)).status).to.equal('filled');

      const first = await submitted(taker);
      await add(first, MOST_TURNS - 2_500 - 2);
      await submitted(newcomer);
      const ofNewcomer = await refused(newcomer);
      expect(ofNewcomer.slice(0, 2)).to.deep.equal([503, 'TOO_MANY_ORDERS']);
      expect(ofNewcomer[2]).to.match(/of accounts that have not traded here/);

      await add(first, 1_499);
      const newest = await submitted(trader);
      const ofTrader = await refused(trader);
      expect(ofTrader.slice(0, 2)).to.deep.equal([503, 'TOO_MANY_ORDERS']);
      expect(ofTrader[2]).not.to.match(/have not traded here/);
      const turns = await listPending(stack.db.knex, MOST_TURNS, false);
      expect(turns.map(({ orderId }) => orderId)).to.include(newest);
      // Looking at each takes a minute.
      await stack.db.knex('swap_pending').whereNot({ order_id: newest }).delete();
      await stack.land();
      expect((await stack.order(newest)).status).to.equal('filled');
    }).timeout(240_000);
  }, forEachDatabase);
});
