/** Gasless orders as they are pushed to those who follow their owner. */
import { expect } from 'chai';
import { parseUnits, type Wallet } from 'ethers';
import type { Address } from '../../../core/types.js';
import { cancelOrder } from '../../../ledger/swaps/swap-cancellations.js';
import { insertHalt } from '../../../ledger/chain/halts.js';
import { readOrderMarks } from '../../../ledger/swaps/owner-orders.js';
import { createAccountFeed, type AccountFeed, type SwapOrdersSource } from '../../../server/stream/account-feed.js';
import { newestOrders } from '../../../server/swap/order.js';
import { conformFrame } from '../../support/api/asyncapi.js';
import { until } from '../../support/gateway-suite.js';
import { forEachSwapStack } from '../../support/manual-suite.js';
import type { OrderAnswer, SwapStack } from '../../support/swap-stack.js';

const NOBODY: Address = `0x${'ab'.repeat(20)}`;
const SOMEBODY: Address = `0x${'cd'.repeat(20)}`;

interface Pushed {
  channel: string;
  data: { user: Address; orders: OrderAnswer[] };
}

describe('orders that are followed', () => {
  forEachSwapStack((begin) => {
    let stack: SwapStack;
    let taker: Wallet;
    let owner: Address;
    let feed: AccountFeed | null;

    beforeEach(async function () {
      this.timeout(60_000);
      ({ stack, taker } = await begin());
      owner = taker.address.toLowerCase() as Address;
      feed = null;
      await stack.makeMarket();
    });
    afterEach(async () => {
      feed?.stop();
      await stack.stop();
    });

    const submitted = async (): Promise<string> => {
      const quote = await stack.quote(owner, { sellAmountBeforeFee: parseUnits('1', 18).toString() });
      return (await stack.submit(quote, taker)).body.orderId;
    };
    const mark = async (): Promise<string> => (await readOrderMarks(stack.db.knex, [NOBODY, owner])).get(owner)!;

    function follow(users: readonly Address[], swapOrders: SwapOrdersSource | null): Pushed[] {
      const frames: Pushed[] = [];
      const latest = (_key: string, frame: Buffer): void => {
        const told = JSON.parse(frame.toString()) as Pushed;
        conformFrame(told);
        frames.push(told);
      };
      const listener = { queue: { latest, drop: () => undefined }, lost: () => expect.fail('could not be read') };
      feed = createAccountFeed({
        ...{ db: stack.db, gateway: { markets: () => stack.keepers.markets }, clock: Date.now, swapOrders },
        ...{
          limits: { coalesceMs: 1, repeatMs: 5_000 },
          logger: { error: (told: unknown) => expect.fail(String(told)) },
        },
      } as unknown as Parameters<typeof createAccountFeed>[0]);
      for (const user of users)
        feed.subscribe(
          `swapOrders:${user}`,
          { type: 'swapOrders', user },
          listener as unknown as Parameters<AccountFeed['subscribe']>[2],
        );
      return frames;
    }

    it('have another mark after each change, and those of others the same', async () => {
      const marks = [await mark()];
      await submitted();
      marks.push(await mark());
      // A second one, so that the count of what is pending is not what tells the next changes.
      await submitted();
      marks.push(await mark());
      await stack.executor.round();
      marks.push(await mark());
      await stack.land();
      marks.push(await mark());
      const orderId = await submitted();
      await cancelOrder(stack.db, { orderId, signature: '0x', timeMs: Date.now() });
      marks.push(await mark());
      expect(new Set(marks).size, marks.join(' ')).to.equal(marks.length);
      await stack.db.knex.transaction((tx) =>
        insertHalt(tx, { code: 'canonical_mismatch', message: 'block 1 is another one', timeMs: 1, fromBlock: 1 }),
      );
      expect(await mark()).not.to.equal(marks.at(-1));
      const idle = await readOrderMarks(stack.db.knex, [NOBODY, SOMEBODY]);
      expect(idle.get(NOBODY)).to.be.a('string');
      expect(idle.get(NOBODY)).to.equal(idle.get(SOMEBODY));
    });

    it('are pushed whole at once, and again when one is accepted, sent and filled', async () => {
      const deps = { db: stack.db, markets: () => stack.keepers.markets, explorerUrl: null };
      let reads = 0;
      const frames = follow([owner, NOBODY], {
        newest(user) {
          reads += 1;
          return newestOrders(deps, user);
        },
        marks: (owners) => readOrderMarks(stack.db.reads, owners),
      });
      const ofOwner = (): Pushed[] => frames.filter(({ data }) => data.user === owner);
      const told = () =>
        ofOwner()
          .at(-1)
          ?.data.orders.map(({ status, attempts }) => [status, attempts.length]);
      await until(() => frames.length === 2);
      expect(frames.map(({ data }) => data.orders)).to.deep.equal([[], []]);
      const orderId = await submitted();
      await until(() => ofOwner().length === 2);
      expect(told()).to.deep.equal([['pending', 0]]);
      await stack.executor.round();
      await until(() => told()?.[0]?.[1] === 1);
      await stack.land();
      await until(() => told()?.[0]?.[0] === 'filled');
      expect(ofOwner().at(-1)!.data.orders).to.deep.equal([await stack.order(orderId)]);
      expect(frames.filter(({ data }) => data.user === NOBODY)).to.have.length(1);
      // What has not changed is not read again.
      const before = reads;
      await new Promise((resolve) => setTimeout(resolve, 2_500));
      expect(reads - before).to.be.at.most(1);
    });

    it('are not known where the swap API is not served', () => {
      follow([], null);
      expect(feed!.serves('swapOrders')).to.equal(false);
      expect(feed!.serves('openOrders')).to.equal(true);
    });
  });
});
