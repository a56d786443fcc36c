/**
 * A market maker on Curvebook, written with a published exchange client; only `apiUrl` differs from its use elsewhere.
 *
 *   node --import tsx examples/maker.ts [manifest] [role]
 *
 * Every second it replaces its ladders around the price feed. Ctrl-C cancels its orders and ends it.
 */
import { ApiRequestError, ExchangeClient, HttpTransport, InfoClient } from '@nktkas/hyperliquid';
import { Wallet } from 'ethers';
import { referenceTicks, usdMicros } from './price-feed.js';
import { accountOf, onGrid, pause, readManifest, reason, scaled, stopSignal } from './support.js';
import type { Manifest } from './support.js';

const REQUOTE_MS = 1_000;
const READY_POLL_MS = 500;

/** Distance from the reference in hundredths of a basis point, and the size in dollars, per level and side. */
type Ladder = readonly (readonly [offset: bigint, dollars: bigint])[];

const LADDERS: Record<string, Ladder> = {
  maker1: [
    [400n, 1_000n],
    [600n, 1_500n],
    [900n, 2_000n],
    [1_300n, 3_000n],
    [1_800n, 4_000n],
  ],
  maker2: [
    [600n, 1_500n],
    [800n, 2_500n],
    [1_200n, 4_000n],
    [2_000n, 5_000n],
    [3_000n, 6_000n],
  ],
};

type Order = Parameters<ExchangeClient['order']>[0]['orders'][number];

interface QuotedMarket {
  asset: number;
  pair: string;
  tickSize: string;
  lotSize: string;
}

const [manifestPath = '.curvebook/sandbox.json', role = 'maker1'] = process.argv.slice(2);
const manifest = readManifest(manifestPath);
const account = accountOf(manifest, role);
const ladder = LADDERS[role] ?? LADDERS.maker1 ?? [];
const signal = stopSignal();

const transport = new HttpTransport({ apiUrl: manifest.serverUrl });
const exchange = new ExchangeClient({ transport, wallet: new Wallet(account.privateKey) });
const info = new InfoClient({ transport });
const user = account.address as `0x${string}`;

const log = (text: string): void => console.log(`${role}: ${text}`);

await main();

async function main(): Promise<void> {
  await untilReady();
  if (signal.aborted) return;
  const markets = await quotedMarkets();
  await cancelAll(markets);
  log(`quoting ${markets.map((market) => market.pair).join(', ')}`);
  while (!signal.aborted) {
    const startedMs = Date.now();
    for (const market of markets) {
      await requote(market).catch((error: unknown) => log(`${market.pair}: ${reason(error)}`));
      if (signal.aborted) break;
    }
    await pause(Math.max(0, startedMs + REQUOTE_MS - Date.now()), signal);
  }
  const count = await cancelAll(markets);
  log(`stopped, ${count} orders cancelled`);
}

/** A maker may quote once the platform's ledger is ready and shows its deposits. */
async function untilReady(): Promise<void> {
  while (!signal.aborted) {
    const answer = await fetch(`${manifest.serverUrl}/v0/makers/${user}/limits`).catch(() => null);
    const limits = answer?.ok ? ((await answer.json()) as { ledger: { ready: boolean } }) : null;
    if (limits?.ledger.ready) return;
    await pause(READY_POLL_MS, signal);
  }
}

/** Matches the manifest's markets to asset ids, as a client of any spot venue on this wire does. */
async function quotedMarkets(): Promise<QuotedMarket[]> {
  const meta = await info.spotMeta();
  const name = (index: number | undefined): string => meta.tokens.find((token) => token.index === index)?.name ?? '';
  const assets = new Map(
    meta.universe.map((one) => [`${name(one.tokens[0])}-${name(one.tokens[1])}`, 10_000 + one.index]),
  );
  return manifest.markets.map((market: Manifest['markets'][number]) => {
    const asset = assets.get(market.pair);
    if (asset === undefined) throw new Error(`${market.pair} is not served`);
    return { asset, ...market };
  });
}

/** Takes the old ladder out of the book and puts the new one in. */
async function requote(market: QuotedMarket): Promise<void> {
  const open = await info.openOrders({ user });
  const coin = `@${market.asset - 10_000}`;
  const oids = open.filter((order) => order.coin === coin).map((order) => order.oid);
  const orders = ladderOrders(market);
  await cancel(market, oids);
  const refused = await refusals(() => exchange.order({ orders, grouping: 'na' }));
  if (refused.length > 0) log(`${market.pair}: ${refused.length} of ${orders.length} orders refused: ${refused[0]}`);
}

/** Prices are whole ticks and sizes whole lots, computed without floating point. */
function ladderOrders(market: QuotedMarket): Order[] {
  const nowMs = Date.now();
  const reference = referenceTicks(market.pair, market.tickSize, nowMs);
  const lotMicros = usdMicros(market.pair.split('-')[0] ?? '', nowMs) * scaled(market.lotSize);
  return ladder.flatMap(([offset, dollars]) => {
    const distance = (reference * offset) / 1_000_000n + 1n;
    const lots = (dollars * 1_000_000n * scaled('1')) / lotMicros;
    return [true, false].map((isBuy) => ({
      a: market.asset,
      b: isBuy,
      p: onGrid(isBuy ? reference - distance : reference + distance, market.tickSize),
      s: onGrid(lots, market.lotSize),
      r: false,
      t: { limit: { tif: 'Alo' as const } },
    }));
  });
}

/** Cancels by order id. An order that was filled meanwhile is refused, which is as good. */
async function cancel(market: QuotedMarket, oids: readonly number[]): Promise<void> {
  if (oids.length === 0) return;
  await refusals(() => exchange.cancel({ cancels: oids.map((o) => ({ a: market.asset, o })) }));
}

/** Cancels whatever this account has open; returns how many orders that were. */
async function cancelAll(markets: readonly QuotedMarket[]): Promise<number> {
  const open = await info.openOrders({ user });
  for (const market of markets) {
    const coin = `@${market.asset - 10_000}`;
    await cancel(
      market,
      open.filter((order) => order.coin === coin).map((order) => order.oid),
    );
  }
  return open.length;
}

/** The client throws when any entry of a batch was refused; the others stand. Throws when the batch was refused as a whole. */
async function refusals(send: () => Promise<unknown>): Promise<string[]> {
  try {
    await send();
    return [];
  } catch (error) {
    if (!(error instanceof ApiRequestError)) throw error;
    const reply = error.response as { status?: string; response?: { data?: { statuses?: unknown[] } } };
    if (reply.status !== 'ok') throw error;
    const statuses = reply.response?.data?.statuses ?? [];
    return statuses.flatMap((status) =>
      typeof status === 'object' && status !== null && 'error' in status ? [String(status.error)] : [],
    );
  }
}
