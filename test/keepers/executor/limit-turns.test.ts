/** Limit orders of which no round has the time for all. */
import { expect } from 'chai';
import { parseEther, parseUnits, type Wallet } from 'ethers';
import { forEachDatabase } from '../../support/db.js';
import { forEachSwapStack } from '../../support/manual-suite.js';
import { createOwners } from '../../support/swap-stack.js';

const QUARTER = parseEther('0.25');
/** Above the best bid of 2,499.90 by far. */
const UNREACHABLE = parseUnits('1250', 6);

describe('limit orders in short rounds', () => {
  forEachSwapStack((begin) => {
    it('are each looked at in turn, those of one owner and of others', async () => {
      let clockMs = 0;
      const { chain, stack, taker } = await begin({}, { monotonicMs: () => (clockMs += 300) });
      try {
        await stack.makeMarket();
        const [first, second] = (await createOwners(chain, 'WETH', 2, QUARTER * 2n)) as [Wallet, Wallet];
        const ids: string[] = [];
        for (const owner of [first, first, second, taker]) {
          const quote = await stack.quote(owner.address, {
            orderClass: 'limit',
            sellAmountBeforeFee: QUARTER.toString(),
            minBuyAmount: UNREACHABLE.toString(),
            routingPreference: 'onlyService',
          });
          const { status, body } = await stack.submit(quote, owner);
          expect(status, JSON.stringify(body)).to.equal(200);
          ids.push(body.orderId);
        }
        for (let i = 0; i < 6; i++) {
          await chain.mine();
          await stack.keepers.watcher.scan();
          await stack.executor.round();
        }
        const orders = await Promise.all(ids.map((id) => stack.order(id)));
        expect(orders.map(({ reason }) => reason?.code)).to.deep.equal(ids.map(() => 'LIMIT_NOT_REACHED'));
      } finally {
        await stack.stop();
      }
    }).timeout(60_000);
  }, forEachDatabase);
});
