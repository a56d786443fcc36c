/** The second phase of a simulation: faults heal for a healthy core, some stay for good, and things must get done. */
import type { Market } from '../../core/types.js';
import { HOLDINGS_PACE } from '../../keepers/watcher/tokens/holdings.js';
import { MAKER_ROLES } from '../support/worlds/ledger-world.js';
import type { Clients } from './clients.js';
import type { Endpoints } from './endpoints.js';
import type { Backend } from './processes.js';
import type { OrderAuditor } from './order-auditor.js';
import type { Weather } from './weather.js';
import type { Simulation } from './world.js';

interface ProgressDeps {
  world: Simulation;
  backend: Backend;
  endpoints: Endpoints;
  weather: Weather;
  clients: Clients;
  orders: OrderAuditor;
  afterEach(): void;
}

/** By then all who can be are ready. */
const READY_MS = 90_000;
const STEP_MS = 1_000;
/** A token that was silent stays in quarantine until it has answered rightly for so long, and it is asked each ten seconds. */
const DOUBT_MS = HOLDINGS_PACE.calmSec * 1_000 + 30_000;

/** Violates what is still not done when its time is over. */
export async function demandProgress(deps: ProgressDeps): Promise<void> {
  const { world, backend, endpoints, weather, clients, orders, afterEach } = deps;
  const { scheduler, record, decisions, faults, chain } = world;
  weather.calm();
  // One endpoint never gets well.
  const bad = decisions.pick('bad endpoint', endpoints.all);
  const never = { untilMs: Number.POSITIVE_INFINITY };
  if (faults.lies.length > 0 && decisions.int('bad how', 0, 1) === 0)
    Object.assign(bad, { state: 'lying', lie: decisions.pick('bad lie', faults.lies), ...never });
  else if (faults.endpointDown > 0) Object.assign(bad, { state: 'down', ...never });
  // And perhaps a token does not: its market stops, and nothing else.
  if (faults.tokenSilent > 0 && decisions.int('token stays silent', 0, 1) === 0) {
    endpoints.silentTokens.add(chain.setting.markets.at(-1)!.quote.address);
    record.count('token silent for good');
  }
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

  /** Both ways, since the book may have one side. */
  async function trade({ base, quote }: Market): Promise<void> {
    await chain.swap('taker3', quote.address, base.address, 5n * 10n ** BigInt(quote.decimals));
    await chain.swap('taker3', base.address, quote.address, 10n ** BigInt(base.decimals) / 500n);
  }

  /** Enough for several orders of either side. */
  async function fund(role: string, { base, quote }: Market): Promise<void> {
    await chain.deposit(role, base.address, 10n ** BigInt(base.decimals) / 10n);
    await chain.deposit(role, quote.address, 250n * 10n ** BigInt(quote.decimals));
  }

  // Ready by what was scanned before the calm, a ledger may not know yet of blocks that are gone.
  const calmBlock = chain.head().number;
  const isReady = (): boolean => {
    const place = backend.activeGateway();
    if (place === undefined || place.readiness === null || place.status === null) return false;
    const { nextBlock, scannedBlockHash } = place.status();
    if (nextBlock <= calmBlock || chain.at(nextBlock - 1)?.hash !== scannedBlockHash) return false;
    return scheduler.as(place.actor, place.readiness).ready;
  };
  await within(READY_MS, 'the gateway is ready', isReady);
  const countOf = (what: string): number => record.counts.get(what) ?? 0;
  function growing(what: string): () => boolean {
    const before = countOf(what);
    return () => countOf(what) > before;
  }
  const isSettled = growing('settled on-chain');
  // A token that is in doubt stops its own markets alone.
  const isSilent = ({ base, quote }: Market): boolean =>
    [base, quote].some(({ address }) => endpoints.silentTokens.has(address));
  const wasSilent = (market: Market): boolean =>
    countOf('fault tokenSilent') > 0 && market.quote.address === chain.setting.markets.at(-1)!.quote.address;
  /** Endpoints that lied or hung may have put a token into quarantine, too. */
  const isQuarantined = ({ base, quote }: Market): boolean =>
    (backend.activeGateway()?.status?.().findings ?? []).some(
      ({ token, state }) => state === 'quarantined' && [base.address, quote.address].includes(token),
    );
  for (const market of chain.setting.markets.filter((one) => !isSilent(one))) {
    const hasCurve = growing(`curve of ${market.id}`);
    const hasFill = growing(`fill of ${market.id}`);
    const fresh = { oid: null as number | null, isUnderWay: false };
    async function placeFunded(): Promise<void> {
      fresh.oid = await clients.placeOne('maker1', market);
      // Orders and requests may hold all that it has. Who has deposited must be able to offer it.
      if (fresh.oid === null) await fund('maker1', market).catch(() => undefined);
      fresh.isUnderWay = false;
    }
    await within(30_000, `an order in ${market.pair} is acknowledged`, () => {
      if (fresh.oid === null && !fresh.isUnderWay) {
        fresh.isUnderWay = true;
        void placeFunded();
      }
      return fresh.oid !== null;
    });
    const doubtMs = wasSilent(market) || isQuarantined(market) ? DOUBT_MS : 0;
    await within(60_000 + doubtMs, `a curve of ${market.pair} is posted`, hasCurve);
    let looks = 0;
    await within(120_000, `a fill in ${market.pair} is booked`, () => {
      if ((looks += 1) % 5 === 0) void trade(market).catch(() => undefined);
      return hasFill();
    });
  }
  await chain.deposit('maker1', chain.setting.markets[0]!.quote.address, 5_000_000n);
  // As many as pay for a settlement, should a claim stand.
  for (let i = 0; i < 3; i++) await chain.request('maker1', chain.setting.markets[0]!.quote.address, 1_000_000n);
  await within(120_000, 'a withdrawal is settled', isSettled);
  const signed = { id: '', isUnderWay: false };
  let makers = 0;
  await within(120_000, 'a signed order is filled', () => {
    // Both sides must have something: takers may have bought all that makers had, and without asks nothing prices gas.
    const role = MAKER_ROLES[(makers += 1) % MAKER_ROLES.length]!;
    if (!orders.isFilled(signed.id)) void clients.placeOne(role, chain.setting.markets[0]!).catch(() => undefined);
    if (!signed.isUnderWay && !orders.isFilled(signed.id)) {
      signed.isUnderWay = true;
      // Whose order reverted gets no other one executed before it has swapped by itself.
      const { quote, base } = chain.setting.markets[0]!;
      void chain.swap('taker3', quote.address, base.address, 5_000_001n).catch(() => undefined);
      void clients.swappers.swap('taker3', chain.setting.markets[0]!, true, 20).then(async (promise) => {
        signed.id = promise?.orderId ?? '';
        for (let looks = 0; looks < 10 && promise !== null && !orders.isFilled(signed.id); looks += 1) {
          await scheduler.sleep(STEP_MS);
          await orders.look();
        }
        signed.isUnderWay = false;
      });
    }
    return orders.isFilled(signed.id);
  });
  const looked = { isUnderWay: false };
  await within(180_000, 'every signed order ends', () => {
    if (!looked.isUnderWay) {
      looked.isUnderWay = true;
      void orders.look().then(() => (looked.isUnderWay = false));
    }
    return orders.allEnded();
  });
}
