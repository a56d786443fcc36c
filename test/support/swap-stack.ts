/** The swap API and the executor over the keepers of a manual chain, every step of theirs taken when a test says so. */
import { expect } from 'chai';
import { Contract, MaxUint256, Wallet, type HDNodeWallet } from 'ethers';
import { pino } from 'pino';
import { DEFAULT_GAS } from '../../core/swap/pricing.js';
import type { OrderTypedData, PermitTypedData } from '../../core/swap/typed-data.js';
import type { Address, Hex } from '../../core/types.js';
import { GAS_PRICE_ORACLE_ADDRESS, WETH_ADDRESS } from '../../deploy/sandbox/canonical.js';
import { createOutbox, type Outbox } from '../../keepers/chain/outbox.js';
import { createRpc, type Rpc } from '../../keepers/chain/rpc.js';
import type { ExecutorDeps } from '../../keepers/executor/deps.js';
import { createExecutor, type Executor } from '../../keepers/executor/executor.js';
import { createTransferWatch, unevenTokens } from '../../keepers/watcher/tokens/transfer-watch.js';
import type { Db, Writer } from '../../ledger/types.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { createMarketData, type MarketData } from '../../liquidity/market-data.js';
import { VENUE_KINDS, venueContracts, type VenueContracts } from '../../liquidity/venues.js';
import type { VenueKind } from '../../liquidity/venue.js';
import { createApp } from '../../server/app.js';
import { listen, type Listening } from '../../server/listen.js';
import type { SwapDeps } from '../../server/swap/deps.js';
import { swapRoutes } from '../../server/swap/endpoints.js';
import { conform } from './api/openapi.js';
import { startKeepers, type KeeperStack, type ManualChain } from './keeper-stack.js';

/** A bound, not an expectation: the chain runs in this process, and machines that run tests are busy. */
const RPC_TIMEOUT_MS = 60_000;
const PLENTY = { requests: 1_000_000, windowSec: 60 };

const RISK = { maxReverts: 2, newAccountGas: 94_000n, newContractGas: 94_000n, newPermitGas: 60_000n };

/** The risk limits of an executor. The swap API must have the same ones: its quotes state what the executor will do. */
const riskIn = (change: Partial<ExecutorDeps>): Partial<typeof RISK> =>
  Object.fromEntries(Object.entries(change).filter(([name]) => name in RISK || name === 'newcomersGasPerHour'));

/** The fields of a quote's answer that tests look at. */
export interface QuoteAnswer {
  id: string;
  from: Address;
  expiration: string;
  route: OrderAnswer['route'];
  priceImpactBps: number | null;
  quote: {
    sellToken: Address;
    buyToken: Address;
    receiver: Address;
    sellAmount: string;
    buyAmount: string;
    minBuyAmount: string;
    validTo: number;
    feeAmount: string;
    kind: string;
    orderClass: 'market' | 'limit';
    partiallyFillable: boolean;
    signingScheme: string;
  };
  permit2: { allowanceTarget: Address; spender: Address; typedData: OrderTypedData; witnessTypeString: string };
  approval: { required: boolean; type: 'eip2612' | 'dai' | 'none'; typedData: PermitTypedData | null };
}

export interface OrderAnswer {
  orderId: string;
  quoteId: string;
  status: 'pending' | 'filled' | 'failed' | 'expired';
  orderClass: 'market' | 'limit';
  minBuyAmount: string;
  validTo: number;
  executedSellAmount: string;
  executedBuyAmount: string;
  txHash: Hex | null;
  explorerUrl: string | null;
  route: {
    source: string;
    sellAmount: string;
    buyAmount: string;
    legs?: { source: string; sellToken: Address; buyToken: Address; sellAmount: string; buyAmount: string }[];
  }[];
  priceImpactBps: number | null;
  makers: {
    pair: string;
    fillSeq: number;
    decomposition: string;
    legs: { maker: Address; baseAmount: string; quoteAmount: string }[];
  }[];
  reason: { code: string; message: string } | null;
  attempts: { result: string; code: string | null; txHashes: Hex[] }[];
}

export interface ErrorAnswer {
  error: { code: string; message: string };
}

interface Answer<T> {
  status: number;
  body: T;
  headers: Headers;
}

export interface SwapStack {
  keepers: KeeperStack;
  db: Db;
  url: string;
  marketData: MarketData;
  executor: Executor;
  outbox: Outbox;
  /** Lets the clock of API and executor run ahead. */
  advance(ms: number): void;
  setReady(ready: boolean): void;
  /** Time of the newest block that the ledger knows; 0 at first. */
  setHead(ms: number): void;
  /** Puts tokens in quarantine, for the API and the executor. */
  quarantine(...tokens: Address[]): void;
  /** Measures transfers of every token, for the API and the executor. */
  measureTransfers(): Promise<void>;
  request<T>(method: string, path: string, body?: unknown): Promise<Answer<T>>;
  token(symbol: string): Address;
  balanceOf(symbol: string, account: string): Promise<bigint>;
  /** The status, code and message of a refusal; anything else throws. */
  refused(method: string, path: string, body: unknown): Promise<[status: number, code: string, message: string]>;
  /** Has maker1 quote 20 WETH a side, ten cents from 2,500 USDC, and the curve posted. */
  makeMarket(): Promise<void>;
  /** A quote of `from`, by default an own-liquidity sale; throws unless it is answered with 200. */
  quote(from: string, change: object): Promise<QuoteAnswer>;
  submit(
    quote: QuoteAnswer,
    signer: Wallet | HDNodeWallet,
    extra?: object,
  ): Promise<Answer<{ orderId: string; status: string }>>;
  order(orderId: string): Promise<OrderAnswer>;
  /** Executor, block, scan. */
  land(): Promise<void>;
  /** Another executor on the same database, as after a restart; `wrap` may spoil its connections. */
  restartExecutor(wrap?: ExecutorWrap): Promise<Executor>;
  /** Leaves the swap log to an executor of another process. */
  stopExecutor(): Promise<void>;
  /** Ends the API, and starts another on the same database. */
  restartApi(): Promise<void>;
  stop(): Promise<void>;
}

/** Replaces parts of an executor by others, for tests of failures. */
interface ExecutorWrap {
  rpc?(rpc: Rpc): Rpc;
  writer?(writer: Writer): Writer;
  outbox?(outbox: Outbox): Outbox;
  marketData?(marketData: MarketData): MarketData;
  /** Another key than the executor's. The new executor must still follow the transactions that the old key signed. */
  privateKey?: Hex;
}

export async function startSwapStack(
  db: Db,
  chain: ManualChain,
  change: Partial<SwapDeps> = {},
  executorChange: Partial<ExecutorDeps> = {},
  /** As if the settler had been deployed before it could check orders. */
  isOldSettler = false,
): Promise<SwapStack> {
  const keepers = await startKeepers(db, chain);
  const { manifest } = chain;
  const lower = (name: string) => manifest.contracts[name]!.toLowerCase() as Address;
  const logger = pino({ level: process.env.LOG_LEVEL ?? 'silent' });
  let aheadMs = 0;
  let isReady = true;
  let headMs = 0;
  let quarantined: ReadonlySet<Address> = new Set();
  const nowMs = () => Date.now() + aheadMs;
  const rpc = createRpc(chain.rpcUrl, RPC_TIMEOUT_MS);
  const venues = VENUE_KINDS.filter(({ manifest: prefix }) => `${prefix}Router` in manifest.contracts).map(
    (kind: VenueKind) => {
      const places = venueContracts([kind]).map(({ contract, place }) => [contract, lower(place)]);
      return kind.create(rpc, Object.fromEntries(places) as VenueContracts);
    },
  );
  const transfers = createTransferWatch({ rpc, custodian: lower('custodian'), markets: keepers.markets, logger });
  const market = createMarketData(
    {
      eth: rpc,
      contracts: {
        curveBook: lower('curveBook'),
        custodian: lower('custodian'),
        entrypoint: lower('entrypoint'),
        settler: lower('orderSettler'),
      },
      markets: () => keepers.markets,
      quarantined: () => quarantined,
      uneven: () => unevenTokens(transfers.facts()),
      venues,
      wrappedNative: WETH_ADDRESS.toLowerCase() as Address,
      gasPriceOracle: GAS_PRICE_ORACLE_ADDRESS.toLowerCase() as Address,
    },
    (venue, error) => logger.error({ venue, err: error }, 'a venue failed'),
  );
  const marketData = isOldSettler ? { ...market, canCheck: () => Promise.resolve(false) } : market;
  const readiness = () => ({ ready: isReady, reason: isReady ? null : 'stale_ledger' });
  const swapDeps: SwapDeps = {
    db,
    eth: rpc,
    chainId: manifest.chainId,
    permit2: lower('permit2'),
    settler: lower('orderSettler'),
    forbiddenReceivers: ['custodian', 'curveBook', 'entrypoint', 'orderSettler'].map(lower),
    wrappedNative: WETH_ADDRESS.toLowerCase() as Address,
    markets: () => keepers.markets,
    tokens: manifest.tokens.map(({ symbol, address, decimals }) => ({
      chainId: manifest.chainId,
      address: address.toLowerCase() as Address,
      symbol,
      name: symbol,
      decimals,
      logoURI: `https://example.org/${symbol}.svg`,
    })),
    marketData,
    gasModel: DEFAULT_GAS,
    feeMarginBps: 2_000,
    gasVolatilityBps: 2_500,
    ...RISK,
    ...riskIn(executorChange),
    toleranceBps: 10,
    quoteTtlSec: 30,
    orderTtlSec: 120,
    limits: {
      tokens: { name: 'tokens', ...PLENTY },
      quotes: { name: 'quotes', ...PLENTY },
      submissions: { name: 'submissions', ...PLENTY },
      orders: { name: 'orders', ...PLENTY },
    },
    readiness,
    quarantined: () => quarantined,
    nowMs,
    headMs: () => headMs,
    onOrder: () => undefined,
    ...change,
  };
  const startApi = (): Promise<Listening> => {
    const routes = swapRoutes(swapDeps, manifest.deploymentId);
    return listen(createApp({ routers: [routes], logger }), 0, '127.0.0.1');
  };
  let listening = await startApi();

  let writer: Writer | null = null;
  async function startExecutor(wrap: ExecutorWrap = {}): Promise<[Executor, Outbox]> {
    await writer?.release();
    writer = await acquireWriter(db, 'swap');
    const wrapped = wrap.writer?.(writer) ?? writer;
    const plain = createRpc(chain.rpcUrl, RPC_TIMEOUT_MS);
    const client = wrap.rpc?.(plain) ?? plain;
    const made = createOutbox({
      db,
      writer: wrapped,
      rpc: client,
      chainId: manifest.chainId,
      privateKey: wrap.privateKey ?? (chain.wallet('executor').privateKey as Hex),
      serves: { contract: lower('orderSettler'), mayAct: () => Promise.resolve(true) },
      order: 'queue',
      stuckMs: 60_000,
      nowMs,
      logger,
    });
    const outbox = wrap.outbox?.(made) ?? made;
    const executor = createExecutor({
      db,
      writer: wrapped,
      outbox,
      rpc: client,
      settler: lower('orderSettler'),
      marketData: wrap.marketData?.(marketData) ?? marketData,
      readiness,
      quarantined: () => quarantined,
      toleranceBps: 10,
      maxSends: 5,
      maxGas: 1_000_000n,
      gasModel: DEFAULT_GAS,
      feeMarginBps: 2_000,
      gasVolatilityBps: 2_500,
      maxLossBps: 1_000,
      ...RISK,
      pollIntervalMs: 50,
      nowMs,
      logger,
      ...executorChange,
    });
    return [executor, outbox];
  }
  let [executor, outbox] = await startExecutor();

  async function request<T>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
    const response = await fetch(`${listening.url}/api/v1${path}`, {
      method,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    const answer: unknown = await response.json();
    conform(method, `/api/v1${path}`, response.status, answer);
    return { status: response.status, body: answer as T, headers: response.headers };
  }

  async function mineAndScan(): Promise<void> {
    await chain.mine();
    await keepers.watcher.scan();
  }

  const token = (symbol: string): Address =>
    manifest.tokens.find((one) => one.symbol === symbol)!.address.toLowerCase() as Address;

  return {
    keepers,
    db,
    get url() {
      return listening.url;
    },
    marketData,
    get executor() {
      return executor;
    },
    get outbox() {
      return outbox;
    },
    advance: (ms) => void (aheadMs += ms),
    quarantine: (...tokens) => void (quarantined = new Set(tokens)),
    measureTransfers: transfers.round,
    setReady: (ready) => void (isReady = ready),
    setHead: (ms) => void (headMs = ms),
    request,
    token,
    balanceOf: (symbol, account) => {
      const abi = ['function balanceOf(address) view returns (uint256)'];
      return new Contract(token(symbol), abi, chain.provider).getFunction('balanceOf')(account) as Promise<bigint>;
    },
    async refused(method, path, body) {
      const { status, body: answer } = await request<ErrorAnswer>(method, path, body);
      expect(answer, JSON.stringify(answer)).to.have.keys('error');
      return [status, answer.error.code, answer.error.message];
    },
    async makeMarket() {
      await mineAndScan();
      await keepers.order(chain.address('maker1'), [
        { side: 'ask', priceTicks: 250_010n, sizeLots: 200_000n },
        { side: 'bid', priceTicks: 249_990n, sizeLots: 200_000n },
      ]);
      await keepers.poster.round();
      await mineAndScan();
    },
    async quote(from, overrides) {
      const answer = await request<QuoteAnswer>('POST', '/quote', {
        chainId: manifest.chainId,
        from,
        sellToken: token('WETH'),
        buyToken: token('USDC'),
        kind: 'sell',
        signingScheme: 'eip712',
        ...overrides,
      });
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
      return answer.body;
    },
    async submit(quote, signer, extra = {}) {
      return request('POST', '/orders', { quoteId: quote.id, signature: await signQuote(quote, signer), ...extra });
    },
    async order(orderId) {
      return (await request<OrderAnswer>('GET', `/orders/${orderId}`)).body;
    },
    async land() {
      await executor.round();
      await mineAndScan();
    },
    async restartExecutor(wrap) {
      [executor, outbox] = await startExecutor(wrap);
      return executor;
    },
    async restartApi() {
      await listening.close();
      listening = await startApi();
    },
    async stopExecutor() {
      await writer?.release();
      writer = null;
    },
    async stop() {
      await listening.close();
      await writer?.release();
      await keepers.stop();
    },
  };
}

/** New accounts that hold so much of a token, of which Permit2 may take all, and some ETH. */
export async function createOwners(
  chain: ManualChain,
  symbol: string,
  count: number,
  units: bigint,
): Promise<Wallet[]> {
  const owners = Array.from({ length: count }, () => new Wallet(Wallet.createRandom().privateKey, chain.provider));
  const token = chain.tokenAs(symbol, 'taker1');
  const first = await chain.provider.getTransactionCount(chain.address('taker1'));
  for (const [i, owner] of owners.entries()) {
    await chain.provider.send('hardhat_setBalance', [owner.address, '0x8ac7230489e80000']);
    await token.getFunction('transfer').send(owner.address, units, { nonce: first + i, gasLimit: 100_000n });
    const own = token.connect(owner) as Contract;
    await own.getFunction('approve').send(chain.manifest.contracts['permit2'], MaxUint256, { gasLimit: 100_000n });
  }
  await chain.mine();
  return owners;
}

/** Signs a quote as ethers wants it: without the domain's own type, which ethers knows. */
export async function signQuote({ permit2 }: QuoteAnswer, signer: Wallet | HDNodeWallet): Promise<Hex> {
  const { domain, types, message } = permit2.typedData;
  const { EIP712Domain: _, ...rest } = types;
  return (await signer.signTypedData(domain, rest, message)) as Hex;
}

/** Signs the approval that a quote asks for, as ethers wants it. Throws where it asks for none. */
export async function signApproval({ approval }: QuoteAnswer, signer: Wallet | HDNodeWallet): Promise<Hex> {
  if (approval.typedData === null) throw new Error(`the quote asks for no approval of type ${approval.type}`);
  const { domain, types, message } = approval.typedData;
  const { EIP712Domain: _, ...rest } = types;
  return (await signer.signTypedData(domain, rest, message)) as Hex;
}
