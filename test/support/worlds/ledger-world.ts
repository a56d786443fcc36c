/** The chains and keepers that random histories of the ledger run on, and the comparison with the model after each of their scans. */
import { expect } from 'chai';
import { Interface, MaxUint256 } from 'ethers';
import { pino } from 'pino';
import { createMarket } from '../../../core/market.js';
import { snapshotHash } from '../../../core/snapshot.js';
import type { Address, Hex, Market, MarketSnapshot } from '../../../core/types.js';
import { sandboxAccounts } from '../../../deploy/sandbox/accounts.js';
import { createRpcPool } from '../../../keepers/chain/pool.js';
import { createRpc, type Rpc } from '../../../keepers/chain/rpc.js';
import type { VerifyDeps } from '../../../keepers/verify/verification.js';
import { planReconcile } from '../../../keepers/watcher/reconcile.js';
import { readBalances } from '../../../ledger/chain/balances.js';
import { readClaim } from '../../../ledger/chain/claims.js';
import { readHalt } from '../../../ledger/chain/halts.js';
import { readPublication } from '../../../ledger/publications/publication-log.js';
import { requestReconcile } from '../../../ledger/operator/reconcile-requests.js';
import { VAULT, type Db } from '../../../ledger/types.js';
import { CurveBook__factory, Custodian__factory, Entrypoint__factory } from '../../../typechain-types/index.js';
import { createChainDouble } from '../nodes/chain-double.js';
import { createOrders } from '../nodes/chain-double-orders.js';
import { listings, type DoubleWorld } from '../nodes/chain-double-contracts.js';
import { startKeepers, type KeeperChain, type KeeperStack, type ManualChain } from '../keeper-stack.js';
import {
  bookOf,
  createFactReader,
  standingAfter,
  type ModelOrder,
  type SettlementCut,
  type Standing,
} from './ledger-model.js';

/** A chain on which a history runs, with two markets that share their base token, makers with full wallets, and takers, one with a fee. */
export interface HistoryChain extends KeeperChain {
  rpc: Rpc;
  /** What a chain in memory lists. */
  markets?: readonly Market[];
  connect?(url: string): Rpc;
}

const CUSTODIAN = new Interface(Custodian__factory.abi);
const ENTRYPOINT = new Interface(Entrypoint__factory.abi);
const TOKEN = new Interface([
  'function transfer(address,uint256)',
  'function approve(address,uint256)',
  'function balanceOf(address) view returns (uint256)',
]);
export const MAKER_ROLES = ['maker1', 'maker2', 'maker3'] as const;
export const TAKER_ROLES = ['taker1', 'taker2'] as const;
const FEE_PPM = 3_000n;
const WITHDRAW_DELAY_SEC = 4;
const GAS = '0x4c4b40';

const accounts = sandboxAccounts();
const addressOf = (role: string): Address =>
  accounts.find((one) => one.role === role)!.address.toLowerCase() as Address;

/** A fresh chain in memory. */
export function doubleChain(change: Partial<Pick<DoubleWorld, 'strangers' | 'withdrawDelaySec'>> = {}): HistoryChain {
  const fixed = (digit: string): Address => `0x${digit.repeat(40)}`;
  const token = (symbol: string, digit: string, decimals: number) => ({ symbol, address: fixed(digit), decimals });
  const [weth, usdc, dai] = [token('WETH', '1', 18), token('USDC', '2', 6), token('DAI', '3', 18)];
  const grid = { base: weth, lotUnits: 10n ** 14n, maxTtlSec: 60 };
  const markets = [
    createMarket({ ...grid, index: 0, quote: usdc, tickLotUnits: 1n }),
    createMarket({ ...grid, index: 1, quote: dai, tickLotUnits: 10n ** 12n }),
  ];
  const contracts = { custodian: fixed('a'), curveBook: fixed('b'), entrypoint: fixed('c'), orderSettler: fixed('d') };
  const orderPlaces = { permit2: fixed('e'), wrappedNative: weth.address };
  const chainId = 8453;
  const world: DoubleWorld = {
    chainId,
    owner: addressOf('owner'),
    poster: addressOf('poster'),
    settler: addressOf('settler'),
    ...contracts,
    tokens: [weth, usdc, dai],
    markets,
    withdrawDelaySec: WITHDRAW_DELAY_SEC,
    feesPpm: new Map([[addressOf('taker1'), FEE_PPM]]),
    wallets: accounts.map(({ role }) => addressOf(role)),
    grantUnits: 10n ** 30n,
    orders: createOrders({
      settler: contracts.orderSettler,
      permit2: orderPlaces.permit2,
      executor: addressOf('executor'),
      chainId,
    }),
    ...change,
  };
  const rpc = createChainDouble(world, listings(world));
  const manifest = {
    chainId,
    deploymentId: 'double',
    deploymentBlock: 1,
    contracts: { ...contracts, ...orderPlaces },
    tokens: world.tokens,
    accounts,
  } as unknown as ManualChain['manifest'];
  const wallet = ((role: string) => accounts.find((one) => one.role === role)!) as unknown as KeeperChain['wallet'];
  return { rpc, connect: () => rpc, rpcUrl: 'double:', markets, manifest, address: addressOf, wallet };
}

/** The local chain with the real contracts, with allowances, delay and fee as the double has them. */
export async function realChain(chain: ManualChain): Promise<HistoryChain> {
  const rpc = createRpc(chain.rpcUrl, 30_000);
  const { contracts, tokens } = chain.manifest;
  const send = (from: Address, to: string, data: string) =>
    rpc.call('eth_sendTransaction', [{ from, to, data, gas: GAS }]);
  const owner = chain.address('owner');
  for (const { address } of tokens) {
    for (const role of MAKER_ROLES) {
      await send(chain.address(role), address, TOKEN.encodeFunctionData('approve', [contracts.custodian, MaxUint256]));
    }
  }
  const custodian = CUSTODIAN.encodeFunctionData('setWithdrawDelay', [WITHDRAW_DELAY_SEC]);
  await send(owner, contracts.custodian, custodian);
  const fee = ENTRYPOINT.encodeFunctionData('setTakerFee', [chain.address('taker1'), FEE_PPM]);
  await send(owner, contracts.entrypoint, fee);
  const book = CurveBook__factory.connect(contracts.curveBook, chain.provider);
  for (let index = 0; index < 2; index += 1) {
    const data = book.interface.encodeFunctionData('setTakerFees', [await book.marketAt(index), true]);
    await send(owner, contracts.curveBook, data);
  }
  await rpc.call('evm_mine');
  const { manifest, rpcUrl, address, wallet } = chain;
  return { rpc, manifest, rpcUrl, address, wallet };
}

/** One history: the chain, the keepers over a database, and what the model remembers. */
export interface History {
  chain: HistoryChain;
  stack: KeeperStack;
  markets: readonly Market[];
  orders: ModelOrder[];
  /** Set when the ledger halted as it had to: nothing more can happen. */
  ended: boolean;
  /** How often each kind of event happened, so that a test can check that it tested something. */
  seen: Map<string, number>;
  token(symbol: string): Address;
  /** The model as of the last block scanned. */
  standing(): Standing;
  custody(role: string, call: 'deposit' | 'requestWithdraw' | 'executeWithdraw', args: unknown[]): Promise<void>;
  transfer(role: string, token: Address, units: bigint): Promise<void>;
  swap(role: string, exactOut: boolean, tokenIn: Address, tokenOut: Address, units: bigint): Promise<void>;
  order(role: string, opens: Omit<ModelOrder, 'oid' | 'maker' | 'open'>[], closes: ModelOrder[]): Promise<void>;
  post(): Promise<void>;
  settle(): Promise<void>;
  mine(): Promise<void>;
  /** Scans up to the head and holds the ledger against the model. */
  scan(): Promise<void>;
  reorg(depth: number, again: boolean): Promise<void>;
  wait(sec: number): Promise<void>;
  /** What `verifyLedger` needs to derive the ledger's rows from each other. */
  verification(): Omit<VerifyDeps, 'onProgress'>;
}

/** Starts on an empty database. */
export async function startHistory(db: Db, chain: HistoryChain): Promise<History> {
  const stack = await startKeepers(db, chain, {
    ...(chain.connect === undefined ? {} : { connect: chain.connect }),
  });
  const { rpc, manifest } = chain;
  const lower = (text: string) => text.toLowerCase() as Address;
  const custodian = lower(manifest.contracts.custodian);
  const entrypoint = lower(manifest.contracts.entrypoint);
  const tokens = manifest.tokens.map(({ address }) => lower(address));
  const readFacts = createFactReader(rpc, [custodian, entrypoint, ...tokens], manifest.deploymentBlock);
  const snapshots = new Map<string, MarketSnapshot>();
  const cuts = new Map<string, SettlementCut>();
  /** Where the chain can be taken back to: a snapshot before each block. */
  let saved: { id: string; block: number; sent: object[] }[] = [];
  let sentNow: object[] = [];
  let standing: Standing | null = null;

  const hex = async (method: string, params: unknown[] = []): Promise<number> =>
    Number.parseInt(String(await rpc.call(method, params)), 16);
  const scanned = (): number => stack.watcher.status().nextBlock - 1;
  const count = (what: string): void => void history.seen.set(what, (history.seen.get(what) ?? 0) + 1);

  async function send(role: string, to: Address, data: string): Promise<void> {
    const tx = { from: chain.address(role), to, data, gas: GAS };
    sentNow.push(tx);
    await rpc.call('eth_sendTransaction', [tx]);
  }

  async function mine(): Promise<void> {
    saved.push({
      id: String(await rpc.call('evm_snapshot')),
      block: await hex('eth_blockNumber'),
      sent: sentNow,
    });
    sentNow = [];
    await rpc.call('evm_mine');
  }

  async function compare(): Promise<void> {
    const facts = await readFacts(scanned());
    const world = {
      markets: history.markets,
      custodian,
      operator: chain.address('owner'),
      snapshots,
      settlementCut: (txHash: Hex, says: string) => cuts.get(txHash) ?? cuts.get(says)!,
    };
    const model = standingAfter(world, facts);
    standing = model;
    const halt = await readHalt(db.knex);
    const unbacked = [...model.claims].some(([key, units]) => units > (model.balances.get(key) ?? 0n));
    if (halt?.code === 'unbacked_claim' && unbacked) {
      count('unbacked');
      history.ended = true;
    } else expect(halt).to.equal(null);
    const rows = (await readBalances(db.knex)).filter(({ account }) => account !== VAULT);
    const shown = (units: (row: (typeof rows)[number]) => bigint): Record<string, bigint> =>
      Object.fromEntries(
        rows
          .map((row): [string, bigint] => [`${row.account}:${row.token}`, units(row)])
          .filter(([, value]) => value !== 0n)
          .sort(([a], [b]) => (a < b ? -1 : 1)),
      );
    const told = (map: ReadonlyMap<string, bigint>): Record<string, bigint> =>
      Object.fromEntries([...map].sort(([a], [b]) => (a < b ? -1 : 1)));
    expect(
      shown((row) => row.balanceUnits),
      'balances',
    ).to.deep.equal(told(model.balances));
    expect(
      shown((row) => row.reservedUnits),
      'reserved',
    ).to.deep.equal(told(model.reserved));
    expect(
      shown((row) => row.netCapitalUnits),
      'net capital',
    ).to.deep.equal(told(model.netCapital));
    for (const [key, units] of model.claims) {
      const [maker, token] = key.split(':') as [Address, Address];
      expect((await readClaim(db.knex, { maker, token })).claimUnits, `claim ${key}`).to.equal(units);
    }
    for (const token of tokens) {
      const data = TOKEN.encodeFunctionData('balanceOf', [custodian]);
      const held = BigInt(String(await rpc.call('eth_call', [{ to: token, data }, `0x${scanned().toString(16)}`])));
      const sum = [...model.balances].reduce((all, [key, units]) => (key.endsWith(token) ? all + units : all), 0n);
      expect(sum, `vault of ${token}`).to.equal(held);
    }
    const sides = [...model.curves.values()].flatMap(({ ask, bid }) => [ask, bid]);
    const raised = sides.filter(({ raisedUnits }) => (raisedUnits ?? 0n) > 0n).length;
    history.seen.set('raised', Math.max(history.seen.get('raised') ?? 0, raised));
    history.seen.set('fills', Math.max(history.seen.get('fills') ?? 0, model.fills.length));
  }

  async function scanToHead(): Promise<void> {
    do await stack.watcher.scan();
    while (scanned() < (await hex('eth_blockNumber')) && stack.watcher.status().halt === null);
  }

  async function repair(): Promise<void> {
    const pool = createRpcPool([chain.rpcUrl], {
      nowMs: () => Date.now(),
      logger: pino({ level: 'silent' }),
      ...(chain.connect === undefined ? {} : { connect: chain.connect }),
    });
    const plan = await planReconcile(db, pool, { deploymentBlock: manifest.deploymentBlock });
    if (plan === null) throw new Error('nothing to reconcile');
    for (const cut of cuts.values()) if (cut.block > plan.reversal.block.number) cut.lost = true;
    await requestReconcile(db, { reversal: plan.reversal, capitalOrigin: false }, 1);
    await scanToHead();
  }

  async function scan(): Promise<void> {
    await scanToHead();
    if (stack.watcher.status().halt?.code === 'canonical_mismatch') {
      count('reversals');
      await repair();
    }
    await compare();
  }

  const history: History = {
    chain,
    stack,
    markets: stack.markets,
    orders: [],
    ended: false,
    seen: new Map(),
    token: (symbol) => lower(manifest.tokens.find((one) => one.symbol === symbol)!.address),
    standing: () => standing!,
    custody: (role, call, args) => send(role, custodian, CUSTODIAN.encodeFunctionData(call, args as never)),
    transfer: (role, token, units) => send(role, token, TOKEN.encodeFunctionData('transfer', [custodian, units])),
    async swap(role, exactOut, tokenIn, tokenOut, units) {
      const limit = exactOut ? MaxUint256 : 0n;
      const args = [tokenIn, tokenOut, units, limit, chain.address(role), MaxUint256] as const;
      const data = exactOut
        ? ENTRYPOINT.encodeFunctionData('swapExactOutput', [...args])
        : ENTRYPOINT.encodeFunctionData('swap', [...args]);
      await send(role, entrypoint, data);
    },
    async order(role, opens, closes) {
      const maker = chain.address(role);
      const oids = await stack.order(
        maker,
        opens,
        closes.map(({ oid }) => oid),
      );
      for (const order of closes) order.open = false;
      opens.forEach((open, i) => history.orders.push({ ...open, oid: oids[i]!, maker, open: true }));
    },
    async post() {
      const round = await stack.poster.round();
      for (const { pair, seq, kind } of round?.publications ?? []) {
        const market = history.markets.find((one) => one.pair === pair)!;
        const publication = (await readPublication(db.knex, market.index, seq))!;
        const book =
          kind === 'touch'
            ? snapshots.get(`${market.index}:${publication.baseSeq}`)!
            : bookOf(market, standing!, history.orders, publication.trims);
        expect(publication.snapshotHash, `book of ${pair} ${seq}`).to.equal(snapshotHash(book));
        snapshots.set(`${market.index}:${seq}`, book);
        count(kind);
        if (publication.trims.length > 0) count('trimmed');
      }
    },
    async settle() {
      const { settlements, txHash } = await stack.settler.round();
      for (const { maker, token, amountUnits, basis, cutBlock } of settlements) {
        expect(cutBlock).to.equal(scanned());
        const cut = { block: cutBlock, lost: false };
        cuts.set(`${maker}:${token}:${amountUnits}:${basis}`, cut);
        if (txHash !== null) cuts.set(txHash, cut);
        count('settlements');
      }
    },
    mine,
    scan,
    async reorg(depth, again) {
      const to = saved.at(-depth);
      if (to === undefined) return;
      const lost = saved.slice(-depth).flatMap(({ sent }) => sent);
      saved = saved.slice(0, -depth);
      await rpc.call('evm_revert', [to.id]);
      await rpc.call('evm_increaseTime', [1 + depth]);
      sentNow = [];
      if (again) for (const tx of lost.reverse()) await rpc.call('eth_sendTransaction', [tx]).catch(() => undefined);
      for (let block = 0; block <= depth; block += 1) await mine();
      count('reorgs');
    },
    wait: async (sec) => void (await rpc.call('evm_increaseTime', [sec])),
    verification: () => {
      const { deploymentId, deploymentBlock } = manifest;
      const contracts = { custodian, entrypoint, curveBook: lower(manifest.contracts.curveBook) };
      return { db, deploymentId, deploymentBlock, operator: chain.address('owner'), contracts, rpc: null };
    },
  };
  await mine();
  await scan();
  return history;
}
