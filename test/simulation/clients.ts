/** Makers and takers. They write down what they were promised. */
import { ethers } from 'ethers';
import { bytesToHex } from '../../core/hash.js';
import { lotsToSize, ticksToPrice } from '../../core/market.js';
import type { Address, Market } from '../../core/types.js';
import { agentDigest } from '../../core/wire/digest.js';
import { connectionId, encodeAction } from '../../core/wire/encode.js';
import { SPOT_ASSET_BASE } from '../../server/orders/limits.js';
import type { ExchangeReply } from '../../server/orders/types.js';
import { MAKER_ROLES, TAKER_ROLES } from '../support/worlds/ledger-world.js';
import type { Backend } from './processes.js';
import { createSwappers, type Swappers } from './swappers.js';
import type { Simulation } from './world.js';

/** What makers were told and may rely on. */
export interface Promises {
  /** Acknowledged orders, by their maker. */
  readonly placed: Map<number, Address>;
  /** Orders whose cancel was acknowledged. */
  readonly canceled: Set<number>;
}

export interface Clients {
  readonly swappers: Swappers;
  readonly promises: Promises;
  /** Has everybody act from now on. */
  start(): void;
  /**
   * Nobody relies any more on orders that are not among these, and on signed orders that are not among those: the database that had them is lost.
   * Returns how many orders that are.
   */
  forget(kept: ReadonlySet<number>, keptSwaps: ReadonlySet<string>): number;
  /** One order of a maker, of little worth; its id once it is acknowledged, null when it is not. */
  placeOne(role: string, market: Market): Promise<number | null>;
}

const MID_TICKS = 250_000;
const ANSWER_MS = 5_000;
const NET_MS = 30;
/** So many times what it has, about, asks a maker for that asks for too much. */
const GREED = 10n;

/** Everybody outside of the backend. `markets` are those of the chain. */
export function createClients(world: Simulation, backend: Backend, markets: readonly Market[]): Clients {
  const { scheduler, decisions, chain, record } = world;
  const promises: Promises = { placed: new Map(), canceled: new Set() };
  const open = new Map<string, number[]>();
  const nonces = new Map<string, number>();

  /** Sends a signed action to whoever serves orders; null without an answer. */
  async function act(role: string, action: object): Promise<ExchangeReply | null> {
    const nonce = Math.max(scheduler.nowMs(), (nonces.get(role) ?? 0) + 1);
    nonces.set(role, nonce);
    const context = { nonce, vaultAddress: null, expiresAfter: null };
    const digest = agentDigest('a', connectionId(encodeAction(action), context));
    const key = new ethers.SigningKey(chain.setting.wallet(role).privateKey);
    const { r, s, v } = key.sign(bytesToHex(digest));
    await scheduler.sleep(decisions.int('net', 1, NET_MS));
    const place = backend.activeGateway();
    if (place === undefined) return null;
    const { gateway, actor } = place;
    const era = backend.era();
    const answered = scheduler
      .as(actor, () => gateway.submit({ action, signature: { r, s, v }, ...context }))
      .then(
        ({ reply }) => reply,
        () => null,
      );
    const reply = await Promise.race([answered, scheduler.sleep(ANSWER_MS).then(() => null)]);
    await scheduler.sleep(decisions.int('net', 1, NET_MS));
    // Who answered has been lost since, with what it answered of.
    if (backend.era() !== era) return null;
    // Answers are lost, too.
    if (decisions.happens('answer lost', world.isCalm ? 0 : 0.02)) return null;
    record.count(reply === null ? 'action unanswered' : `action ${reply.status}`);
    if (reply?.status === 'err') record.trace(() => `${role} refused: ${reply.response}`);
    return reply;
  }

  async function place(
    role: string,
    quotes: readonly { market: Market; isBuy: boolean; ticks: number; lots: number }[],
  ) {
    const orders = quotes.map(({ market, isBuy, ticks, lots }) => ({
      a: SPOT_ASSET_BASE + market.index,
      b: isBuy,
      p: ticksToPrice(market, BigInt(ticks)),
      s: lotsToSize(market, BigInt(lots)),
      r: false,
      t: { limit: { tif: 'Gtc' } },
    }));
    const reply = await act(role, { type: 'order', orders, grouping: 'na' });
    const statuses = reply?.status === 'ok' ? (reply.response.data?.statuses ?? []) : [];
    const oids: number[] = [];
    for (const status of statuses) {
      if (typeof status === 'object' && 'resting' in status) oids.push(status.resting.oid);
      else record.trace(() => `${role}: ${JSON.stringify(status)}`);
    }
    for (const oid of oids) promises.placed.set(oid, chain.setting.address(role));
    if (oids.length > 0) record.count('orders acknowledged');
    return oids;
  }

  const drawn = (role: string, market: Market) => {
    const isBuy = decisions.int(`side ${role}`, 0, 1) === 0;
    const away = decisions.int(`away ${role}`, 1, 400);
    return {
      market,
      isBuy,
      ticks: MID_TICKS + (isBuy ? -away : away),
      lots: decisions.int(`lots ${role}`, 100, 20_000),
    };
  };

  async function quote(role: string): Promise<void> {
    const market = decisions.pick(`market ${role}`, markets);
    const count = decisions.int(`count ${role}`, 1, 3);
    const oids = await place(
      role,
      Array.from({ length: count }, () => drawn(role, market)),
    );
    open.set(role, [...(open.get(role) ?? []), ...oids]);
  }

  async function cancel(role: string): Promise<void> {
    const own = open.get(role) ?? [];
    const oids = own.splice(0, decisions.int(`cancels ${role}`, 1, Math.max(1, own.length)));
    if (oids.length === 0) return;
    const marketOf = (oid: number): number => backend.activeGateway()?.gateway.order(oid)?.order.market ?? 0;
    const reply = await act(role, {
      type: 'cancel',
      cancels: oids.map((oid) => ({ a: SPOT_ASSET_BASE + marketOf(oid), o: oid })),
    });
    const statuses = reply?.status === 'ok' ? (reply.response.data?.statuses ?? []) : [];
    statuses.forEach((status, i) => {
      if (status === 'success') promises.canceled.add(oids[i]!);
    });
  }

  const tokens = chain.setting.manifest.tokens.map(({ address }) => address.toLowerCase() as Address);
  /** Around five thousand of a dollar's worth. */
  const worth = (token: Address, permille: number): bigint => {
    const { decimals } = chain.setting.manifest.tokens.find((one) => one.address.toLowerCase() === token)!;
    const whole = token === markets[0]!.base.address ? 2n : 5_000n;
    return (whole * 10n ** BigInt(decimals) * BigInt(permille)) / 1_000n + BigInt(permille % 7);
  };

  const swappers = createSwappers(world, backend, worth);

  async function makerActs(role: string): Promise<void> {
    const what = decisions.int(`act ${role}`, 0, 99);
    const token = decisions.pick(`token ${role}`, tokens);
    if (what < 45) return quote(role);
    if (what < 70) return cancel(role);
    if (what < 78) return chain.deposit(role, token, worth(token, decisions.int(`units ${role}`, 1, 1_000)));
    if (what < 88) {
      const units = worth(token, decisions.int(`units ${role}`, 1, 1_500));
      // Anybody may ask for any amount. The others have to have something left to quote.
      const isGreedy = role === MAKER_ROLES.at(-1) && decisions.int(`greedy ${role}`, 0, 1) === 0;
      return chain.request(role, token, isGreedy ? GREED * units : units);
    }
    return chain.execute(role, token);
  }

  async function takerActs(role: string): Promise<void> {
    const market = decisions.pick(`market ${role}`, markets);
    const isBuy = decisions.int(`side ${role}`, 0, 1) === 0;
    const [tokenIn, tokenOut] = isBuy ? [market.quote, market.base] : [market.base, market.quote];
    const permille = decisions.int(`units ${role}`, 1, 400);
    if (decisions.int(`signs ${role}`, 0, 3) === 0) {
      await swappers.swap(role, market, isBuy, permille);
      return;
    }
    if (decisions.int(`gift ${role}`, 0, 99) === 0) return chain.transfer(role, tokenIn.address, 1n + BigInt(permille));
    return chain.swap(role, tokenIn.address, tokenOut.address, worth(tokenIn.address, permille));
  }

  function keepsActing(role: string, paceMs: number, acts: (role: string) => Promise<void>): void {
    const again = (): void => {
      scheduler.after(
        decisions.int(`pace ${role}`, paceMs / 4, paceMs * 2),
        () => {
          void acts(role)
            .catch((error: unknown) => record.trace(() => `${role}: ${String(error)}`))
            .then(again);
        },
        null,
      );
    };
    again();
  }

  return {
    promises,
    swappers,
    forget(kept, keptSwaps) {
      let lost = 0;
      for (const oid of promises.placed.keys()) {
        if (kept.has(oid)) continue;
        promises.placed.delete(oid);
        lost += 1;
      }
      for (const oid of promises.canceled) if (!kept.has(oid)) promises.canceled.delete(oid);
      swappers.forget(keptSwaps);
      return lost;
    },
    start() {
      for (const role of MAKER_ROLES) {
        for (const token of tokens) void chain.deposit(role, token, worth(token, 5_000));
        keepsActing(role, 3_000, makerActs);
      }
      for (const role of TAKER_ROLES) keepsActing(role, 3_000, takerActs);
    },
    async placeOne(role, market) {
      const [oid] = await place(role, [{ ...drawn(role, market), lots: 100 }]);
      return oid ?? null;
    },
  };
}
