import { expect } from 'chai';
import { createAccountFeed, type AccountFeed } from '../../../server/stream/account-feed.js';
import type { UpdateListener } from '../../../server/stream/send-queue.js';
import type { Address, Market } from '../../../core/types.js';
import type { Db } from '../../../ledger/types.js';
import { until } from '../../support/gateway-suite.js';
import { forEachDatabase } from '../../support/db.js';
import { WETH_DAI, WETH_USDC } from '../../support/markets.js';

const USERS = Array.from({ length: 250 }, (_, i): Address => `0x${`${i}`.padStart(40, '0')}`);

describe('Account feed', () => {
  forEachDatabase((_name, open) => {
    let db: Db;
    let feed: AccountFeed;
    let markets: Market[];
    let nowMs: number;
    /** Accounts that were read, in order. */
    let read: unknown[];
    /** Frames by the turn of the event loop in which they were sent. */
    let frames: { text: string; turn: number }[];
    let turn: number;
    let isCounting: boolean;

    beforeEach(async () => {
      db = await open();
      markets = [WETH_USDC];
      nowMs = 0;
      turn = 0;
      read = [];
      frames = [];
      for (const knex of new Set([db.knex, db.reads]))
        knex.on('query', ({ sql, bindings }: { sql: string; bindings?: unknown[] }) => {
          if (sql.includes('from balances')) read.push(...(bindings ?? []));
        });
      const queue = {
        latest: (_key: string, frame: Buffer) => void frames.push({ text: frame.toString(), turn }),
        drop: () => undefined,
      };
      const self = { queue, lost: () => expect.fail('an account could not be read') } as unknown as UpdateListener;
      const deps = {
        ...{ db, gateway: { markets: () => markets }, clock: () => nowMs },
        ...{ limits: { coalesceMs: 1, repeatMs: 5_000 }, logger: { error: () => undefined } },
      };
      isCounting = true;
      const count = (): void => {
        turn += 1;
        if (isCounting) setImmediate(count);
      };
      count();
      feed = createAccountFeed(deps as unknown as Parameters<typeof createAccountFeed>[0]);
      for (const user of USERS) feed.subscribe(`spotState:${user}`, { type: 'spotState', user }, self);
      await sent(USERS.length);
      nowMs += 60_000;
      read = [];
    });
    afterEach(() => {
      isCounting = false;
      feed.stop();
    });

    async function sent(number: number): Promise<void> {
      for (let tries = 0; frames.length < number && tries < 500; tries += 1) await pause();
      expect(frames).to.have.length(number);
    }
    const pause = (ms = 10): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
    const generation = (...accounts: Address[]): void =>
      feed.onEvent({
        ...{ type: 'generations', from: 1, to: 1, makers: new Set(), markets: new Set(), changes: [] },
        accounts: new Set(accounts),
      });

    it('reads only the accounts that a generation changed', async () => {
      generation();
      await pause(50);
      expect(read).to.deep.equal([]);
      generation(USERS[7]!, '0xffffffffffffffffffffffffffffffffffffffff');
      await pause(50);
      expect(read).to.deep.equal([USERS[7]]);
    });

    it('goes on when the clock is set back', async () => {
      generation(USERS[7]!);
      await pause(50);
      expect(read).to.deep.equal([USERS[7]]);
      nowMs -= 120_000;
      generation(USERS[7]!);
      await pause(50);
      expect(read).to.deep.equal([USERS[7], USERS[7]]);
    });

    it('tells everybody of a token that is listed', async () => {
      markets = [WETH_USDC, WETH_DAI];
      generation();
      await sent(2 * USERS.length);
      expect(read).to.have.members(USERS);
      expect(frames.at(-1)!.text).to.include('DAI');
    });

    it('lets others have their turn while it makes many states', async () => {
      markets = [WETH_USDC, WETH_DAI];
      frames = [];
      generation();
      await sent(USERS.length);
      const perTurn = [...Map.groupBy(frames, (one) => one.turn).values()].map(({ length }) => length);
      expect(Math.max(...perTurn)).to.be.at.most(100);
    });

    describe('of gasless orders', () => {
      const [good, bad] = USERS as [Address, Address];
      let lost: string[];

      /** Follows balances of the first user and gasless orders of the first two, as `newest` reads them. */
      function followOrders(newest: (owner: Address) => Promise<object[]>): void {
        feed.stop();
        frames = [];
        lost = [];
        feed = createAccountFeed({
          ...{ db, gateway: { markets: () => markets }, clock: () => nowMs },
          ...{ limits: { coalesceMs: 1, repeatMs: 5_000 }, logger: { error: () => undefined } },
          swapOrders: { newest, marks: () => Promise.resolve(new Map()) },
        } as unknown as Parameters<typeof createAccountFeed>[0]);
        const queue = {
          latest: (key: string, frame: Buffer) => void frames.push({ text: `${key} ${frame.toString()}`, turn }),
          drop: () => undefined,
        };
        const follow = (type: 'swapOrders' | 'spotState', user: Address): void => {
          const key = `${type}:${user}`;
          const self = { queue, lost: () => void lost.push(key) } as unknown as UpdateListener;
          feed.subscribe(key, { type, user }, self);
        };
        for (const user of [bad, good]) follow('swapOrders', user);
        follow('spotState', good);
      }

      it('loses only followers of an owner whose orders can not be read', async () => {
        followOrders((owner) => (owner === bad ? Promise.reject(new Error('no quote')) : Promise.resolve([])));
        await sent(2);
        expect(lost).to.deep.equal([`swapOrders:${bad}`]);
        expect(frames.map(({ text }) => text.split(' ')[0]).sort()).to.deep.equal([
          ...[`spotState:${good}`, `swapOrders:${good}`],
        ]);
      });

      it('keeps balances waiting for none of them', async () => {
        let answer: (orders: object[]) => void = () => undefined;
        followOrders(() => new Promise((resolve) => (answer = resolve)));
        await sent(1);
        expect(frames[0]!.text).to.match(/^spotState:/);
        answer([]);
        await until(() => frames.length === 2 || lost.length > 0);
        expect(lost).to.deep.equal([]);
      });
    });
  });
});
