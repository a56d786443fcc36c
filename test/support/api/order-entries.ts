/** Order actions without a server: a book of two makers, and what each entry is answered. */
import { expect } from 'chai';
import { createAgents } from '../../../core/book/agents.js';
import type { Book } from '../../../core/book.js';
import { createBook } from '../../../core/book/create-book.js';
import type { Address } from '../../../core/types.js';
import { readAction } from '../../../core/wire/action.js';
import { judgeAction } from '../../../server/orders/actions/registry.js';
import type { ActionOutcome, EntryStatus } from '../../../server/orders/types.js';
import { USDC, WETH, WETH_DAI, WETH_USDC } from '../markets.js';

export const ALICE: Address = `0x${'a'.repeat(40)}`;
export const BOB: Address = `0x${'b'.repeat(40)}`;
export const CLOID = '0x1234567890abcdef1234567890abcdef';
export const markets = [WETH_USDC, WETH_DAI];

interface Venue {
  book: Book;
  available: Map<string, bigint>;
  reason: string | null;
  /** Least value of an order, in quote units. */
  minUnits: bigint;
  nowMs: number;
  quarantined: Set<Address>;
  /** Judges an action and applies what it does. */
  act(maker: Address, action: object): ActionOutcome;
}

export function createVenue(): Venue {
  const book = createBook(markets);
  const venue: Venue = {
    book,
    available: new Map([
      [WETH.address, 10n * 10n ** 18n],
      [USDC.address, 30_000n * 10n ** 6n],
    ]),
    reason: null,
    quarantined: new Set(),
    minUnits: 0n,
    nowMs: 1,
    act: (maker, action) => {
      const outcome = judgeAction(readAction(action), maker, {
        book,
        markets,
        available: (_maker, token) => venue.available.get(token) ?? 0n,
        minOrderUnits: () => venue.minUnits,
        readiness: { ready: venue.reason === null, reason: venue.reason },
        quarantined: venue.quarantined,
        delisted: new Set(),
        agents: createAgents(),
        isAccount: () => false,
        nowMs: venue.nowMs,
        rowMs: venue.nowMs,
      });
      const row = {
        timeMs: venue.nowMs,
        maker,
        signer: maker,
        nonce: book.lastOrderSeq(),
        kind: 'x',
        effects: outcome.effects,
      };
      book.apply({ ...row, orderSeq: book.lastOrderSeq() + 1 });
      return outcome;
    },
  };
  return venue;
}

export const entry = (change: object = {}): object => ({
  a: 10000,
  b: true,
  p: '2500',
  s: '1',
  r: false,
  t: { limit: { tif: 'Gtc' } },
  ...change,
});
export const orders = (...changes: object[]): object => ({ type: 'order', orders: changes.map(entry), grouping: 'na' });

export function statusesOf(outcome: ActionOutcome): EntryStatus[] {
  if (outcome.reply.status !== 'ok') throw new Error(outcome.reply.response);
  return outcome.reply.response.data?.statuses ?? [];
}

/** One order's error, or null when it rests. */
export function errorOf(venue: Venue, change: object, maker = ALICE): string | null {
  const [status] = statusesOf(venue.act(maker, orders(change)));
  expect(Object.keys(status ?? {})).to.have.length(1);
  return typeof status === 'object' && 'error' in status ? status.error : null;
}
