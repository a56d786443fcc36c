import { Contract, type JsonRpcProvider, Wallet } from 'ethers';
import { pino } from 'pino';
import type { Address, Hex, Market, OrderEffect, Side } from '../../core/types.js';
import { startChain } from '../../deploy/sandbox/chain.js';
import type { SandboxManifest } from '../../deploy/manifest.js';
import { deploySandbox, type SandboxOptions } from '../../deploy/sandbox/sandbox.js';
import { connect } from '../../deploy/transactions.js';
import { createOutbox } from '../../keepers/chain/outbox.js';
import { mayPost } from '../../keepers/chain/quorum.js';
import { createRpcPool } from '../../keepers/chain/pool.js';
import { createRpc, type Rpc } from '../../keepers/chain/rpc.js';
import { createSettler, type Settler, type SettlerDeps } from '../../keepers/settler/settler.js';
import { createPoster, type Poster, type PosterDeps } from '../../keepers/poster/poster.js';
import { HOLDINGS_PACE } from '../../keepers/watcher/tokens/holdings.js';
import { judgeReadiness } from '../../keepers/watcher/status.js';
import { createWatcher, type Watcher, type WatcherDeps } from '../../keepers/watcher/watcher.js';
import { bindDeployment } from '../../ledger/db/db.js';
import { readCompactionPosition } from '../../ledger/orders/compacted-book.js';
import { appendOrderRows, lastOrderSeq, readOrderRows } from '../../ledger/orders/order-log.js';
import { createSnapshotStore } from '../../ledger/orders/snapshots.js';
import type { Db, Writer } from '../../ledger/types.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { Entrypoint__factory, type Entrypoint } from '../../typechain-types/index.js';

const ERC20 = [
  'function balanceOf(address) view returns (uint256)',
  'function transfer(address,uint256) returns (bool)',
  'function approve(address,uint256) returns (bool)',
];

/** A local chain that mines when it is told to, with the sandbox's contracts and accounts on it. */
export interface ManualChain {
  manifest: SandboxManifest;
  provider: JsonRpcProvider;
  rpcUrl: string;
  wallet(role: string): Wallet;
  address(role: string): Address;
  entrypointAs(role: string): Entrypoint;
  tokenAs(symbol: string, role: string): Contract;
  /** Mines everything that waits, highest fee first. */
  mine(): Promise<void>;
  /** Takes the chain back to where it was after the deployment, so that a fresh database can follow it; its clock goes on. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** The part of a chain that keepers need. */
export type KeeperChain = Pick<ManualChain, 'manifest' | 'rpcUrl' | 'address' | 'wallet'>;

type ManualChainOptions = Pick<SandboxOptions, 'pools' | 'pairs' | 'managedPools' | 'router'>;

/** A chain in this process with the sandbox on it. */
interface Deployed {
  /** How it was made. */
  key: string;
  rpcUrl: string;
  manifest: SandboxManifest;
  /** Of the state after the deployment. */
  snapshot: string;
  close(): Promise<void>;
}

/**
 * Chains that test files have given back, for later ones of this process. Only a process of `npm test`, which runs many files, keeps them: it is told
 * when there are no more.
 */
const spare: Deployed[] = [];
const keepsChains = process.env.TRANSPILED !== undefined && process.connected;
if (keepsChains) process.once('disconnect', () => void Promise.all(spare.splice(0).map((chain) => chain.close())));

/** A chain in this process with the sandbox on it, as it is after the deployment, which is up to the caller until it is closed. */
export async function startManualChain(marketCount = 1, options: ManualChainOptions = {}): Promise<ManualChain> {
  const key = JSON.stringify([marketCount, options]);
  const at = spare.findIndex((one) => one.key === key);
  if (at < 0) return manualChain(await deployed(key, marketCount, options));
  const chain = manualChain(spare.splice(at, 1)[0]!);
  // Whoever had it may have let it mine by itself.
  await mineByHand(chain.provider);
  await chain.reset();
  return chain;
}

async function deployed(key: string, marketCount: number, options: ManualChainOptions): Promise<Deployed> {
  const { rpcUrl, close } = await startChain({ host: '127.0.0.1', port: 0, blockTimeMs: 60_000 });
  const provider = connect(rpcUrl);
  try {
    const site = { rpcUrl, serverUrl: 'http://127.0.0.1:1', marketCount };
    const manifest = await deploySandbox({ ...site, ...options, log: () => undefined });
    await mineByHand(provider);
    const snapshot = (await provider.send('evm_snapshot', [])) as string;
    return { key, rpcUrl, manifest, snapshot, close };
  } catch (error) {
    await close();
    throw error;
  } finally {
    provider.destroy();
  }
}

async function mineByHand(provider: JsonRpcProvider): Promise<void> {
  await provider.send('evm_setAutomine', [false]);
  await provider.send('evm_setIntervalMining', [0]);
}

function manualChain(deployed: Deployed): ManualChain {
  const { rpcUrl } = deployed;
  // A test may change its own.
  const manifest = structuredClone(deployed.manifest);
  const provider = connect(rpcUrl);
  const account = (role: string) => {
    const found = manifest.accounts.find((one) => one.role === role);
    if (found === undefined) throw new Error(`no account for ${role}`);
    return found;
  };
  const wallet = (role: string) => new Wallet(account(role).privateKey, provider);
  return {
    manifest,
    provider,
    rpcUrl,
    wallet,
    address: (role) => account(role).address.toLowerCase() as Address,
    entrypointAs: (role) => Entrypoint__factory.connect(manifest.contracts['entrypoint'], wallet(role)),
    tokenAs: (symbol, role) =>
      new Contract(manifest.tokens.find((one) => one.symbol === symbol)!.address, ERC20, wallet(role)),
    mine: async () => {
      await provider.send('evm_mine', []);
    },
    reset: async () => {
      await provider.send('evm_revert', [deployed.snapshot]);
      deployed.snapshot = (await provider.send('evm_snapshot', [])) as string;
      // Each evm_revert adds the time since the snapshot to the chain's clock; without a correction it would run ahead of all other clocks.
      const head = (await provider.getBlock('latest'))!.timestamp;
      const nowSec = Math.floor(Date.now() / 1_000);
      await provider.send('evm_setNextBlockTimestamp', [Math.max(head + 1, nowSec)]);
    },
    close: async () => {
      provider.destroy();
      if (keepsChains && process.connected) spare.push(deployed);
      else await deployed.close();
    },
  };
}

/** An order as a test writes it: ticks and lots. */
interface TestOrder {
  side: Side;
  priceTicks: bigint;
  sizeLots: bigint;
  market?: number;
  cloid?: string;
}

/** The keepers over one database and chain, driven step by step. Orders go straight into the order log. */
export interface KeeperStack {
  db: Db;
  markets: Market[];
  watcher: Watcher;
  poster: Poster;
  settler: Settler;
  /** Appends one row of the maker that opens these orders and closes those; returns the new oids. */
  order(maker: Address, opens: readonly TestOrder[], closes?: readonly number[]): Promise<number[]>;
  /** Arms the maker's scheduled cancel, or disarms it with null. */
  arm(maker: Address, timeMs: number | null): Promise<void>;
  /** Carries out the maker's scheduled cancel, which closes these orders. */
  trigger(maker: Address, closes: readonly number[]): Promise<void>;
  stop(): Promise<void>;
}

/** Highest order id that was ever opened. */
async function lastOid(db: Db): Promise<number> {
  let { oid } = await readCompactionPosition(db.knex);
  for (const { effects } of await readOrderRows(db.knex, { after: 0, limit: 10_000 })) {
    for (const effect of effects) if (effect.type === 'open') oid = Math.max(oid, effect.oid);
  }
  return oid;
}

/** Who sends transactions. */
export type Sender = 'poster' | 'settler';

/** Where a test can stop a round of a keeper, or keep what it sends. */
export interface Intercept {
  /** Called before the keeper reads what it decides on. */
  look(role: Sender): void;
  /** Awaited before each of the keeper's write transactions. */
  write(role: Sender): Promise<void>;
  /** Instead of giving a signed transaction to the node. */
  broadcast(role: Sender, raw: Hex): Promise<void>;
}

/** What a test changes of the poster. */
export interface KeeperOptions {
  /** Where the poster's node is, if not at the chain itself. */
  posterRpcUrl?: string;
  /** How a node is reached; over HTTP when left out. */
  connect?(url: string, timeoutMs?: number): Rpc;
  rpcTimeoutMs?: number;
  poster?: Partial<PosterDeps>;
  watcher?: Partial<WatcherDeps>;
  settler?: Partial<SettlerDeps>;
  feeCeilingWei?: bigint;
  intercept?: Intercept;
  /** Of the poster. */
  nowMs?(): number;
  /** What the watcher gets in the place of its writer, for commits whose answer is lost. */
  watcherWriter?(writer: Writer): Writer;
  /** Whose key settles; the settler's unless named. */
  settlerRole?: string;
  /** Of both senders, for intervals. */
  monotonicMs?(): number;
}

/** Keepers as a process would start them, on a database with every table; call it again on the same database for a restart. */
export async function startKeepers(db: Db, chain: KeeperChain, options: KeeperOptions = {}): Promise<KeeperStack> {
  const { manifest } = chain;
  const connectTo = options.connect ?? createRpc;
  await bindDeployment(db, manifest.deploymentId);
  const writers = new Map<string, Writer>();
  for (const log of ['order', 'ledger', 'publication', 'settlement'] as const)
    writers.set(log, await acquireWriter(db, log));
  const logger = pino({ level: 'silent' });
  const markets: Market[] = [];
  const snapshots = createSnapshotStore(markets);
  const nowMs = () => Date.now();
  const lower = (name: string) => manifest.contracts[name]!.toLowerCase() as Address;
  const ledgerWriter = writers.get('ledger')!;
  const watcher = await createWatcher({
    db,
    writer: options.watcherWriter?.(ledgerWriter) ?? ledgerWriter,
    // Two endpoints with the same answers, so that a difference to the ledger counts at once.
    rpc: createRpcPool([chain.rpcUrl, chain.rpcUrl], { nowMs, logger, connect: connectTo }),
    holdingsPace: { ...HOLDINGS_PACE, surplusIntervalSec: 0 },
    contracts: {
      custodian: lower('custodian'),
      curveBook: lower('curveBook'),
      entrypoint: lower('entrypoint'),
      orderSettler: lower('orderSettler'),
    },
    deploymentId: manifest.deploymentId,
    deploymentBlock: manifest.deploymentBlock,
    operator: chain.address('owner'),
    markets,
    snapshots,
    haltOnSuspense: true,
    pollIntervalMs: 100,
    scanMaxBlocks: 100,
    nowMs,
    logger,
    onGeneration: () => undefined,
    onReversal: () => undefined,
    ...options.watcher,
  });
  const { intercept } = options;
  // Blocks and scans come when a test makes them, so reasons of readiness that depend on their age are left out.
  const readiness = (role: Sender) => () => {
    intercept?.look(role);
    const atMs = nowMs();
    return judgeReadiness({ ...watcher.status(), observedHeadTimestampMs: atMs, lastSuccessfulScanMs: atMs }, atMs);
  };
  const writerOf = (role: Sender, writer: Writer): Writer =>
    intercept === undefined
      ? writer
      : { ...writer, tx: async (work) => intercept.write(role).then(() => writer.tx(work)) };
  const rpcOf = (role: Sender, rpc: Rpc): Rpc =>
    intercept === undefined
      ? rpc
      : {
          ...rpc,
          call: async (method, params) =>
            method === 'eth_sendRawTransaction'
              ? intercept.broadcast(role, params?.[0] as Hex)
              : rpc.call(method, params),
        };
  const publicationWriter = writerOf('poster', writers.get('publication')!);
  const posterRpc = rpcOf('poster', connectTo(options.posterRpcUrl ?? chain.rpcUrl, options.rpcTimeoutMs));
  const poster = createPoster({
    db,
    writer: publicationWriter,
    outbox: createOutbox({
      ...(options.monotonicMs === undefined ? {} : { monotonicMs: options.monotonicMs }),
      db,
      writer: publicationWriter,
      rpc: posterRpc,
      feeCeilingWei: options.feeCeilingWei,
      chainId: manifest.chainId,
      privateKey: chain.wallet('poster').privateKey as Hex,
      nowMs,
      logger,
    }),
    rpc: posterRpc,
    curveBook: lower('curveBook'),
    markets,
    snapshots: createSnapshotStore(markets),
    readiness: readiness('poster'),
    curveTtlSec: 60,
    small: { quoteUnits: () => 0n, intervalMs: 0 },
    touchBeforeSec: 6,
    knots: { maxKnots: 15, enoughMilliBps: 0, wordGainMilliBps: 0, maxErrorMilliBps: 0 },
    cutBeforeBlockMs: 500,
    operatorFloors: null,
    archive: null,
    budgetWei: null,
    pollIntervalMs: 100,
    nowMs: options.nowMs ?? nowMs,
    logger,
    ...options.poster,
  });
  const settlementWriter = writerOf('settler', writers.get('settlement')!);
  const settlerMarkets: Market[] = [];
  const settlerRpc = rpcOf('settler', connectTo(chain.rpcUrl));
  const settler = createSettler({
    db,
    writer: settlementWriter,
    outbox: createOutbox({
      ...(options.monotonicMs === undefined ? {} : { monotonicMs: options.monotonicMs }),
      db,
      writer: settlementWriter,
      rpc: settlerRpc,
      order: 'queue',
      serves: {
        contract: lower('custodian'),
        mayAct: (key) => mayPost(settlerRpc, lower('custodian'), key),
      },
      chainId: manifest.chainId,
      privateKey: chain.wallet(options.settlerRole ?? 'settler').privateKey as Hex,
      nowMs,
      logger,
    }),
    rpc: settlerRpc,
    custodian: lower('custodian'),
    markets: settlerMarkets,
    snapshots: createSnapshotStore(settlerMarkets),
    readiness: readiness('settler'),
    pollIntervalMs: 100,
    checkpointIntervalMs: 60_000,
    batchMax: 50,
    emptyPerHour: 60,
    // No waiting between settlements; other tests are about that.
    pace: { intervalMs: 0, smallIntervalMs: 0, smallBps: 0 },
    archive: null,
    nowMs,
    logger,
    ...options.settler,
  });
  let nextOid = await lastOid(db);

  async function order(maker: Address, opens: readonly TestOrder[], closes: readonly number[] = []): Promise<number[]> {
    const opened = opens.map((one): Extract<OrderEffect, { type: 'open' }> => ({
      type: 'open',
      oid: ++nextOid,
      market: one.market ?? 0,
      side: one.side,
      priceTicks: one.priceTicks,
      sizeLots: one.sizeLots,
      tif: 'Gtc',
      cloid: one.cloid ?? null,
    }));
    const closed = closes.map((oid): OrderEffect => ({ type: 'close', oid, reason: 'canceled' }));
    await append(maker, 'order', [...closed, ...opened]);
    return opened.map(({ oid }) => oid);
  }

  async function append(maker: Address, kind: string, effects: OrderEffect[]): Promise<void> {
    await writers.get('order')!.tx(async (tx) => {
      const orderSeq = (await lastOrderSeq(tx)) + 1;
      const nonce = nowMs() * 1_000 + orderSeq;
      await appendOrderRows(tx, [{ orderSeq, timeMs: nowMs(), maker, signer: maker, nonce, kind, effects }]);
    });
  }

  return {
    db,
    markets,
    watcher,
    poster,
    settler,
    order,
    arm: (maker, timeMs) => append(maker, 'scheduleCancel', [{ type: 'schedule', timeMs }]),
    trigger(maker, closes) {
      const closed = closes.map((oid): OrderEffect => ({ type: 'close', oid, reason: 'scheduledCancel' }));
      return append(maker, 'scheduledCancel', [...closed, { type: 'trigger', timeMs: nowMs() }]);
    },
    async stop() {
      for (const writer of writers.values()) await writer.release();
    },
  };
}
