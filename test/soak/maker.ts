import { ApiRequestError, ExchangeClient, HttpTransport } from '@nktkas/hyperliquid';
import { Contract, Wallet, parseUnits, type JsonRpcProvider } from 'ethers';
import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxManifest } from '../../deploy/manifest.js';
import { mined } from '../../deploy/transactions.js';
import { referenceTicks, usdMicros } from '../../examples/price-feed.js';
import { onGrid, scaled } from '../../examples/support.js';
import { Custodian__factory } from '../../typechain-types/factories/Custodian__factory.js';

const REQUOTE_MS = 200;
/** Distance from the reference in hundredths of a basis point, and dollars, of a level, the best one being 0. */
const levelAt = (level: bigint) => ({
  offset: 500n + 400n * level + 150n * level * (level - 1n),
  dollars: 1_000n * (level + 1n),
});
const DEPOSITS: Record<string, string> = { WETH: '50', USDC: '150000', DAI: '150000', cbBTC: '2' };

/** Deposits of a maker that starts with its tokens in its wallet. */
export async function depositAll(manifest: SandboxManifest, provider: JsonRpcProvider, role: string): Promise<void> {
  const wallet = new Wallet(manifest.accounts.find((one) => one.role === role)!.privateKey, provider);
  const custodian = Custodian__factory.connect(manifest.contracts['custodian'], wallet);
  const abi = ['function approve(address spender, uint256 amount) returns (bool)'];
  for (const { symbol, address, decimals } of manifest.tokens) {
    const amount = parseUnits(DEPOSITS[symbol] ?? '0', decimals);
    await mined(new Contract(address, abi, wallet).getFunction('approve').send(custodian.target, amount));
    await mined(custodian.deposit(address, amount));
  }
}

/** What one maker did. */
export interface Quoted {
  role: string;
  rounds: number;
  refused: number;
  failed: number;
}

/** Takes all quotes of all markets out and puts new ones in, so many a side, every 200 ms, until the signal. */
export async function startMaker(
  manifest: SandboxManifest,
  role: string,
  levels: number,
  signal: AbortSignal,
): Promise<Quoted> {
  const { privateKey } = manifest.accounts.find((one) => one.role === role)!;
  const transport = new HttpTransport({ apiUrl: manifest.serverUrl });
  const exchange = new ExchangeClient({ transport, wallet: new Wallet(privateKey) });
  const quoted: Quoted = { role, rounds: 0, refused: 0, failed: 0 };
  let resting: { a: number; o: number }[] = [];
  while (!signal.aborted) {
    const startedMs = Date.now();
    try {
      if (resting.length > 0) await statusesOf(exchange.cancel({ cancels: resting }));
      const orders = manifest.markets.flatMap((market, index) => ordersOf(market, 10_000 + index, startedMs, levels));
      const statuses = await statusesOf(exchange.order({ orders, grouping: 'na' }));
      resting = statuses.flatMap((status, i) =>
        typeof status === 'object' && status !== null && 'resting' in status
          ? [{ a: orders[i]!.a, o: (status as { resting: { oid: number } }).resting.oid }]
          : [],
      );
      quoted.rounds += 1;
      quoted.refused += statuses.length - resting.length;
    } catch {
      quoted.failed += 1;
    }
    await delay(Math.max(0, startedMs + REQUOTE_MS - Date.now()), undefined, { signal }).catch(() => undefined);
  }
  return quoted;
}

function ordersOf(market: SandboxManifest['markets'][number], asset: number, nowMs: number, levels: number) {
  const { pair, tickSize, lotSize } = market;
  const reference = referenceTicks(pair, tickSize, nowMs);
  const lotMicros = usdMicros(pair.split('-')[0] ?? '', nowMs) * scaled(lotSize);
  return Array.from({ length: levels }, (_, level) => levelAt(BigInt(level))).flatMap(({ offset, dollars }) => {
    const distance = (reference * offset) / 1_000_000n + 1n;
    const lots = (dollars * 1_000_000n * scaled('1')) / lotMicros;
    return [true, false].map((isBuy) => ({
      a: asset,
      b: isBuy,
      p: onGrid(isBuy ? reference - distance : reference + distance, tickSize),
      s: onGrid(lots, lotSize),
      r: false,
      t: { limit: { tif: 'Gtc' as const } },
    }));
  });
}

/** The statuses of a batch, also of one in which some entries were refused, which the client throws. */
async function statusesOf(sent: Promise<{ response: { data: { statuses: unknown[] } } }>): Promise<unknown[]> {
  try {
    return (await sent).response.data.statuses;
  } catch (error) {
    if (!(error instanceof ApiRequestError)) throw error;
    const reply = error.response as { status?: string; response?: { data?: { statuses?: unknown[] } } };
    if (reply.status !== 'ok') throw error;
    return reply.response?.data?.statuses ?? [];
  }
}
