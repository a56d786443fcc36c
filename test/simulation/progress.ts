/** The second phase of a simulation: faults heal for a healthy core, some stay for good, and things must get done. */
import type { Clients } from './clients.js';
import type { Endpoints } from './endpoints.js';
import type { Backend } from './processes.js';
import type { Weather } from './weather.js';
import type { Simulation } from './world.js';

export interface ProgressDeps {
  world: Simulation;
  backend: Backend;
  endpoints: Endpoints;
  weather: Weather;
  clients: Clients;
  afterEach(): void;
}

/** By then all who can be are ready. */
const READY_MS = 90_000;
const STEP_MS = 1_000;

/** Violates what is still not done when its time is over. */
export async function demandProgress(deps: ProgressDeps): Promise<void> {
  const { world, backend, endpoints, weather, clients, afterEach } = deps;
  const { scheduler, record, decisions, faults, chain } = world;
  weather.calm();
  // One endpoint never gets well.
  const bad = decisions.pick('bad endpoint', endpoints.all);
  const never = { untilMs: Number.POSITIVE_INFINITY };
  if (faults.lies.length > 0 && decisions.int('bad how', 0, 1) === 0)
    Object.assign(bad, { state: 'lying', lie: decisions.pick('bad lie', faults.lies), ...never });
  else if (faults.endpointDown > 0) Object.assign(bad, { state: 'down', ...never });
  record.trace(() => `${scheduler.nowMs()} calm; ${bad.name} stays ${bad.state} ${bad.lie}`);

  async function within(limitMs: number, what: string, isDone: () => boolean): Promise<void> {
    const untilMs = scheduler.nowMs() + limitMs;
    while (!isDone() && record.violations.length === 0) {
      if (scheduler.nowMs() >= untilMs) {
        record.violate(`${scheduler.nowMs()} no progress: ${what} within ${limitMs / 1_000} s of calm`);
        return;
      }
      await scheduler.runUntil(scheduler.nowMs() + STEP_MS, afterEach);
    }
  }

  const isReady = (): boolean => {
    const place = backend.activeGateway();
    return place !== undefined && place.readiness !== null && scheduler.as(place.actor, place.readiness).ready;
  };
  await within(READY_MS, 'the gateway is ready', isReady);
  const fresh = { oid: null as number | null };
  const tries = { isUnderWay: false };
  await within(30_000, 'an order is acknowledged', () => {
    if (fresh.oid === null && !tries.isUnderWay) {
      tries.isUnderWay = true;
      void clients.placeOne('maker1').then((oid) => {
        tries.isUnderWay = false;
        fresh.oid = oid;
      });
    }
    return fresh.oid !== null;
  });
  const countOf = (what: string): number => record.counts.get(what) ?? 0;
  const before = new Map(['posted on-chain', 'fill on-chain', 'settled on-chain'].map((what) => [what, countOf(what)]));
  const grown = (what: string) => (): boolean => countOf(what) > before.get(what)!;
  await within(60_000, 'a curve is posted', grown('posted on-chain'));
  await within(120_000, 'a fill is booked', grown('fill on-chain'));
  await chain.deposit('maker1', chain.setting.markets[0]!.quote.address, 5_000_000n);
  await chain.request('maker1', chain.setting.markets[0]!.quote.address, 1_000_000n);
  await within(120_000, 'a withdrawal is settled', grown('settled on-chain'));
}
