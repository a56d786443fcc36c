/** Blocks, and what befalls whole processes, endpoints and the database for a while. */
import type { Endpoints } from './endpoints.js';
import type { Locks } from './locks.js';
import type { Backend } from './processes.js';
import { strikes, type Simulation } from './world.js';

const BLOCK_MS = 2_000;
const LOOK_MS = 5_000;
/** Longer than a ledger that nobody updates may be called ready. */
const MOST_OFFLINE_MS = 36_000;

export interface Weather {
  start(): void;
  /** Blocks mined. */
  blocks(): number;
  /** When the chain was reorganised last. */
  reorganisedMs(): number;
  /** Ends what is under way and heals. */
  calm(): void;
}

export function createWeather(world: Simulation, backend: Backend, endpoints: Endpoints, locks: Locks): Weather {
  const { scheduler, decisions, chain, record, faults } = world;
  let blocks = 0;
  let reorganisedMs = Number.NEGATIVE_INFINITY;
  let stalledUntilMs = 0;
  let silentUntilMs = 0;
  /** Of one market only: the others must go on without it. */
  const lastToken = chain.setting.markets.at(-1)!.quote.address;

  async function block(): Promise<void> {
    const nowMs = scheduler.nowMs();
    if (nowMs < stalledUntilMs && !world.isCalm) return;
    if (strikes(world, 'stall')) stalledUntilMs = nowMs + decisions.int('stallMs', 4_000, 25_000);
    if (chain.head().number > 12 && strikes(world, 'reorg')) {
      const depth = decisions.int('depth', 1, 6);
      const before = chain.head().hash;
      await chain.reorganise(depth, nowMs, () => decisions.unit('keeps') < 0.8);
      reorganisedMs = nowMs;
      blocks += 1;
      for (const one of endpoints.all) {
        if (!strikes(world, 'endpointStale', one.name)) continue;
        Object.assign(one, {
          state: 'stale',
          staleHead: before,
          untilMs: nowMs + decisions.int('staleMs', 2_000, 15_000),
        });
      }
      record.trace(() => `${nowMs} reorganised ${depth}`);
      return;
    }
    await chain.mine(nowMs);
    blocks += 1;
    record.trace(() => `${nowMs} block ${chain.head().number} ${chain.head().hash}`);
  }

  function look(): void {
    const nowMs = scheduler.nowMs();
    for (const one of endpoints.all) if (one.untilMs <= nowMs) one.state = 'honest';
    for (const one of endpoints.all) {
      if (one.state !== 'honest') continue;
      const untilMs = nowMs + decisions.int(`spell ${one.name}`, 4_000, 30_000);
      const others = endpoints.all.filter((other) => other !== one && other.state === 'honest').length;
      // A majority answers as things are; of the rest nothing is to be feared.
      if (2 * others <= endpoints.all.length) continue;
      if (strikes(world, 'endpointDown', one.name)) Object.assign(one, { state: 'down', untilMs });
      else if (strikes(world, 'endpointLag', one.name))
        Object.assign(one, { state: 'lagging', untilMs, lagBlocks: decisions.int('lagBlocks', 1, 8) });
      else if (faults.lies.length > 0 && strikes(world, 'endpointLie', one.name))
        Object.assign(one, { state: 'lying', untilMs, lie: decisions.pick('lie', faults.lies) });
      if (one.state !== 'honest') record.trace(() => `${nowMs} ${one.name} is ${one.state} ${one.lie}`);
    }
    for (const place of backend.places) {
      const { actor } = place;
      if (actor === null) continue;
      if (strikes(world, 'freeze', place.name)) {
        actor.frozenUntilMs = nowMs + decisions.int('freezeMs', 500, 12_000);
        // The server ends the session of whoever has not been heard of.
        if (actor.frozenUntilMs - nowMs > 4_000)
          scheduler.after(
            4_000,
            () => {
              const survive = decisions.int('sessions survive', 0, 1) === 0;
              for (const end of actor.onSevered) end(survive);
              locks.sever(actor);
            },
            null,
          );
      }
      if (strikes(world, 'offline', place.name)) {
        actor.offlineUntilMs = nowMs + decisions.int('offlineMs', 2_000, MOST_OFFLINE_MS);
        record.trace(() => `${nowMs} ${place.name} is offline`);
      }
      if (strikes(world, 'clockStep', place.name)) {
        actor.clockAheadMs = decisions.pick('ahead', [3_600_000, -3_600_000, 30_000, -30_000]);
        scheduler.after(decisions.int('aheadMs', 1_000, 20_000), () => (actor.clockAheadMs = 0), null);
      }
    }
    // One that is silent in the calm stays so.
    if (nowMs >= silentUntilMs && !world.isCalm) endpoints.silentTokens.clear();
    // What a token says at the block of its listing is kept for good: one that says nothing there is listed as that.
    const isListed = (record.counts.get('says market listed') ?? 0) >= chain.setting.markets.length;
    if (isListed && silentUntilMs <= nowMs && strikes(world, 'tokenSilent')) {
      silentUntilMs = nowMs + decisions.int('silentMs', 2_000, 30_000);
      endpoints.silentTokens.add(lastToken);
      record.trace(() => `${nowMs} ${lastToken} is silent`);
    }
    if (strikes(world, 'promote')) {
      record.trace(() => `${nowMs} the replica is promoted`);
      for (const place of backend.places) if (place.actor !== null) scheduler.kill(place.actor);
    }
  }

  function every(intervalMs: number, act: () => Promise<void> | void): void {
    const again = (): void => {
      scheduler.after(intervalMs, () => void Promise.resolve(act()).then(again), null);
    };
    again();
  }

  return {
    start() {
      every(BLOCK_MS, block);
      every(LOOK_MS, look);
    },
    blocks: () => blocks,
    reorganisedMs: () => reorganisedMs,
    calm() {
      world.isCalm = true;
      for (const one of endpoints.all) one.state = 'honest';
      endpoints.silentTokens.clear();
      for (const { actor } of backend.places) {
        if (actor === null) continue;
        actor.frozenUntilMs = 0;
        actor.offlineUntilMs = 0;
        actor.clockAheadMs = 0;
      }
    },
  };
}
