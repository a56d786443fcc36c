import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ExchangeClient, HttpTransport, InfoClient } from '@nktkas/hyperliquid';
import { ethers } from 'ethers';
import Koa from 'koa';
import { bytesToHex, tradeId } from '../../core/hash.js';
import { quoteUnitsFloor } from '../../core/market.js';
import type { Address, Hex, Market, OpenOrder } from '../../core/types.js';
import { agentDigest } from '../../core/wire/digest.js';
import { connectionId, encodeAction } from '../../core/wire/encode.js';
import type { SourceLetter } from '../../core/wire/types.js';
import { openDb } from '../../ledger/db/db.js';
import { commitGeneration, lastGeneration } from '../../ledger/chain/ledger-log.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import {
  VAULT,
  type AttributedFill,
  type Db,
  type GenerationWrite,
  type LedgerEntry,
  type Writer,
} from '../../ledger/types.js';
import { listen } from '../../server/listen.js';
import { createGateway, type Gateway } from '../../server/orders/engine.js';
import type { GatewayConfig } from '../../server/orders/types.js';
import { exchangeReplySchema } from '../../server/orders/endpoints.js';
import { explainRoutes } from '../../server/orders/explain.js';
import { createMarketDataView } from '../../server/market-data/view.js';
import { createQueryBudget } from '../../server/orders/query-budget.js';
import { ordersRoutes } from '../../server/orders/endpoints.js';
import type { StreamLimits } from '../../server/stream/limits.js';
import type { PlatformFacts } from '../../server/stream/platform.js';
import { serveStream, type Stream } from '../../server/stream/server.js';
import { createSessions, type Sessions } from '../../server/stream/sessions.js';
import { USDC, WETH, WETH_DAI, WETH_USDC } from './markets.js';
import { giveBackSchema, takeSchema } from './databases/spare-schemas.js';
import { copyTemplate } from './databases/template.js';
import { nothingWritten } from './generations.js';

const OPERATOR: Address = `0x${'9'.repeat(40)}`;
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** Private keys of test accounts, which hold nothing of value. */
export const keyOf = (index: number): Hex => `0x${index.toString(16).padStart(64, '0')}`;
export const addressOf = (index: number): Address => ethers.computeAddress(keyOf(index)).toLowerCase() as Address;

/** A database of its own, with every table and no row; `dispose` removes it. */
export async function freshDatabase(
  kind: 'sqlite' | 'pg',
): Promise<{ open: () => Promise<Db>; dispose: () => Promise<void> }> {
  if (kind === 'pg') {
    const schema = `gateway_${process.pid}_${Date.now()}`;
    const open = () => openDb(process.env.DATABASE_URL ?? '', { schema });
    await withDb(open, takeSchema);
    return { open, dispose: () => withDb(open, giveBackSchema) };
  }
  const folder = await mkdtemp(join(tmpdir(), 'curvebook-gateway-'));
  const file = join(folder, 'test.sqlite');
  await copyTemplate(file);
  const open = () => openDb(`sqlite:${file}`);
  return { open, dispose: () => rm(folder, { recursive: true, force: true }) };
}

async function withDb(open: () => Promise<Db>, work: (db: Db) => Promise<void>): Promise<void> {
  const db = await open();
  try {
    await work(db);
  } finally {
    await db.close();
  }
}

const hash = (text: string): Hex => ethers.id(text).toLowerCase() as Hex;

/** Commits the next generation: one block, with the given changes. */
export async function addGeneration(db: Db, change: Partial<GenerationWrite>): Promise<void> {
  const last = await lastGeneration(db.knex);
  const generation = (last?.generation ?? 0) + 1;
  const write: GenerationWrite = {
    generation,
    fromBlock: generation,
    toBlock: generation,
    blocks: [
      {
        number: generation,
        hash: hash(`block ${generation}`),
        parentHash: last?.blockHash ?? hash('genesis'),
        timestampSec: 1_700_000_000 + generation,
      },
    ],
    scannedMs: 0,
    observedHead: generation,
    observedHeadTimestampMs: 0,
    ...nothingWritten(),
    ...change,
  };
  const writer = await acquireWriter(db, 'ledger');
  await writer.tx((tx) => commitGeneration(tx, db, write, { operator: OPERATOR }));
  await writer.release();
}

const move = (
  ref: string,
  from: LedgerEntry['account'],
  to: LedgerEntry['account'],
  token: Address,
  amountUnits: bigint,
) => {
  const kind: LedgerEntry['kind'] = ref.startsWith('fill') ? 'fill' : 'deposit';
  return [
    { ref, kind, account: from, token, amountUnits: -amountUnits },
    { ref, kind, account: to, token, amountUnits },
  ];
};

/** A deposit as postings. */
export const deposit = (ref: string, maker: Address, token: Address, units: bigint): LedgerEntry[] =>
  move(`deposit:${ref}`, VAULT, maker, token, units);

/** A fill of one order at its own price, with no residual, and its postings: the taker's side of it is the vault's. */
export function fillOf(market: Market, order: OpenOrder, baseUnits: bigint, fillSeq: number) {
  const { maker, side, oid, priceTicks } = order;
  const quoteUnits = quoteUnitsFloor(market, priceTicks, baseUnits);
  const txHash = hash(`tx ${fillSeq}`);
  const attributed: AttributedFill = {
    fill: {
      market: market.index,
      fillSeq,
      curveSeq: 1,
      side,
      baseUnits,
      quoteUnits,
      feeUnits: 0n,
      inputFeeUnits: 0n,
      consumedBeforeUnits: 0n,
      taker: addressOf(77),
      recipient: addressOf(77),
      blockNumber: 1,
      blockHash: hash('block'),
      txHash,
      logIndex: fillSeq,
      timestampMs: 1_700_000_000_000 + fillSeq,
    },
    decomposition: {
      legs: [{ maker, priceTicks, baseUnits, quoteUnits, orders: [{ oid, baseUnits }] }],
      residualUnits: 0n,
      roundingUnits: 0n,
      compressionResidualUnits: 0n,
      operatorGainUnits: 0n,
      missingBaseUnits: 0n,
    },
    orderFills: [
      {
        oid,
        maker,
        market: market.index,
        side,
        priceTicks,
        baseUnits,
        tid: tradeId('test', market.id, { txHash, fillSeq }, oid),
        cloid: order.cloid,
      },
    ],
  };
  const ref = `fill:${market.id}:${fillSeq}`;
  const [base, quote] = [market.base.address, market.quote.address];
  const entries =
    side === 'ask'
      ? [...move(ref, maker, VAULT, base, baseUnits), ...move(ref, VAULT, maker, quote, quoteUnits)]
      : [...move(ref, VAULT, maker, base, baseUnits), ...move(ref, maker, VAULT, quote, quoteUnits)];
  return { fills: [attributed], entries };
}

/** Markets listed, makers 1 and 2 approved and funded with 10 WETH and 30,000 USDC each; 3 is funded only. */
export async function seed(db: Db): Promise<void> {
  const entries = [1, 2, 3].flatMap((index) => [
    ...deposit(`${index}:weth`, addressOf(index), WETH.address, 10n * 10n ** 18n),
    ...deposit(`${index}:usdc`, addressOf(index), USDC.address, 30_000n * 10n ** 6n),
  ]);
  await addGeneration(db, { listed: [WETH_USDC, WETH_DAI], entries });
  for (const index of [1, 2]) await operate(db, 'approve', addressOf(index));
}

export async function operate(db: Db, kind: 'approve' | 'suspend', maker: Address): Promise<void> {
  await appendOperatorRow(db, { timeMs: 0, kind, maker, note: '' });
}

export async function operateMarket(db: Db, kind: 'delist' | 'relist', market: number): Promise<void> {
  await appendOperatorRow(db, { timeMs: 0, kind, maker: null, note: '', market });
}

export interface RunningGateway {
  gateway: Gateway;
  url: string;
  /** What the gateway's clock says; tests may set it. */
  time: { nowMs: (() => number) | null };
  ready: { reason: string | null };
  /** Tokens whose markets take no orders. */
  quarantined: Set<Address>;
  sessions: Sessions;
  stream: Stream;
  stop: () => Promise<void>;
}

/** A gateway with its routes on a free port. `wrap` may interfere with its writer; null starts a standby, which has none. */
export async function startGateway(
  db: Db,
  wrap: ((writer: Writer) => Writer) | null = (writer) => writer,
  change: Partial<GatewayConfig> = {},
  limits: Partial<StreamLimits> = {},
  queriesPerMinute = 1_000_000,
): Promise<RunningGateway> {
  const time: RunningGateway['time'] = { nowMs: null };
  const ready: RunningGateway['ready'] = { reason: null };
  const quarantined = new Set<Address>();
  const clock = (): number => time.nowMs?.() ?? Date.now();
  const writer = wrap === null ? null : wrap(await acquireWriter(db, 'order'));
  const config = {
    sources: ['a', 'b'] as const,
    signatureChainIds: null,
    failuresPerMinute: 50,
    pollMs: 20,
    referencePrices: { 'WETH-DAI': '2400.5' },
    minOrderUnits: () => 0n,
    ...change,
  };
  const readiness = () => ({ ready: ready.reason === null, reason: ready.reason });
  const gateway = await createGateway({
    ...{ db, writer, config, readiness, clock, logger: silent },
    quarantined: () => quarantined,
  });
  const abort = new AbortController();
  const running = gateway.run(abort.signal);
  const app = new Koa();
  app.silent = true;
  const marketData = createMarketDataView({ db, generation: gateway.generation, clock });
  const info = { gateway, db, config, clock, marketData, queries: createQueryBudget(queriesPerMinute, clock) };
  app.use(ordersRoutes(info).routes());
  app.use(explainRoutes(info).routes());
  const { server, url } = await listen(app, 0, '127.0.0.1');
  const sessions = createSessions();
  const platform: PlatformFacts = {
    fills: async () => [],
    status: () => Promise.reject(new Error('no status is served here')),
  };
  const stream = serveStream({
    server,
    gateway,
    info,
    platform,
    swapOrders: null,
    sessions,
    logger: silent,
    clock,
    limits,
  });
  return {
    gateway,
    url,
    time,
    ready,
    quarantined,
    sessions,
    stream,
    stop: async () => {
      await stream.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      abort.abort();
      await running;
      await gateway.idle();
      await writer?.release();
    },
  };
}

/** A published client acting for one of the keys. */
export function clientOf(url: string, index: number, isTestnet = false) {
  const transport = new HttpTransport({ apiUrl: url, isTestnet });
  const wallet = new ethers.Wallet(keyOf(index));
  return {
    exchange: new ExchangeClient({ transport, wallet }),
    info: new InfoClient({ transport }),
    user: addressOf(index),
  };
}

/** A request that signs exactly the given action, byte for byte. */
export function signRequest(
  action: object,
  index: number,
  nonce: number,
  options: { source?: SourceLetter; expiresAfter?: number; vaultAddress?: Address } = {},
): object {
  const context = { nonce, vaultAddress: options.vaultAddress ?? null, expiresAfter: options.expiresAfter ?? null };
  const digest = agentDigest(options.source ?? 'a', connectionId(encodeAction(action), context));
  const { r, s, v } = new ethers.SigningKey(keyOf(index)).sign(bytesToHex(digest));
  return { action, signature: { r, s, v }, ...context };
}

/** POSTs a body as JSON text; the answer's text and, when it is JSON, its value. */
export async function post(url: string, body: unknown, contentType = 'application/json') {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(url, { method: 'POST', body: text, headers: { 'content-type': contentType } });
  const answer = await response.text();
  const type = response.headers.get('content-type') ?? '';
  // Whatever a test sends, the reply must be one that the OpenAPI document describes.
  if (url.endsWith('/exchange') && response.status === 200) exchangeReplySchema.parse(JSON.parse(answer));
  return {
    status: response.status,
    type,
    text: answer,
    json: type.startsWith('application/json') ? JSON.parse(answer) : null,
  };
}
