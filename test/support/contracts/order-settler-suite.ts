/** OrderSettler on a chain of its own, against the published Permit2, and with signatures as ethers makes them. */
import { expect } from 'chai';
import {
  Contract,
  Interface,
  type ContractTransactionReceipt,
  type ContractTransactionResponse,
  type Wallet,
} from 'ethers';
import { buildCurve } from '../../../core/curve/build.js';
import { encodePost } from '../../../core/curve/post.js';
import { createMarket } from '../../../core/market.js';
import type { Address, Hex, Market } from '../../../core/types.js';
import { PERMIT2_ADDRESS, WETH_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import { mined } from '../../../deploy/transactions.js';
import {
  CurveBook__factory,
  Entrypoint__factory,
  MockExchange__factory,
  OrderSettler__factory,
  type CurveBook,
  type Entrypoint,
  type MockExchange,
  type OrderSettler,
} from '../../../typechain-types/index.js';
import { snapshotOfLevels } from '../books.js';
import { startManualChain, type ManualChain } from '../keeper-stack.js';
import { randomNonce, signOrder, type OrderDomain, type OrderTerms } from '../api/orders.js';

export const ETHER = 10n ** 18n;
export const USD = 10n ** 6n;

const ERC20_ABI = [
  'function balanceOf(address) view returns (uint256)',
  'function allowance(address, address) view returns (uint256)',
  'function transfer(address, uint256) returns (bool)',
];
const PERMIT2_ERRORS = new Interface([
  'error SignatureExpired(uint256)',
  'error InvalidNonce()',
  'error InvalidSigner()',
  'error InvalidSignatureLength()',
  'error InvalidAmount(uint256)',
]);

/** What a suite of OrderSettler works with; it is there once the tests run. */
interface OrderSettlerWorld {
  chain: ManualChain;
  market: Market;
  settler: OrderSettler;
  entrypoint: Entrypoint;
  curveBook: CurveBook;
  /** A listed target that trades at any price that it is told. */
  exchange: MockExchange;
  weth: Contract;
  usdc: Contract;
  /** Signs the orders. */
  owner: Wallet;
  /** Gets what they buy. */
  recipient: string;
  domain: OrderDomain;
}

/** Before each test of the suite the chain is as it was, and a curve of two levels is posted. Every transaction is mined at once. */
export function orderSettlerSuite() {
  let world: OrderSettlerWorld;
  let snapshot: string;
  let curveSeq = 0;

  before(async () => {
    world = await startWorld();
    snapshot = (await world.chain.provider.send('evm_snapshot', [])) as string;
  });

  after(() => world?.chain.close());

  beforeEach(async () => {
    const { provider } = world.chain;
    await provider.send('evm_revert', [snapshot]);
    snapshot = (await provider.send('evm_snapshot', [])) as string;
    await post();
  });

  const headBlock = async () => (await world.chain.provider.getBlock('latest'))!;

  /** Two levels of 4 WETH a side around 3,000.00. */
  async function post(): Promise<void> {
    const { market, curveBook } = world;
    const levels = (best: bigint, step: bigint) =>
      [0n, 1n].map((i) => ({ priceTicks: best + i * step, lots: 40_000n }));
    const book = snapshotOfLevels(levels(300_001n, 100n), levels(299_999n, -100n));
    const { askWords, bidWords } = buildCurve(market, { ...book, market: 0 }, { maxKnots: 15 });
    const head = await headBlock();
    const record = {
      kind: 'full' as const,
      marketId: market.id,
      seq: ++curveSeq,
      deadlineSec: head.timestamp + 50,
      snapAskUnits: 0n,
      snapBidUnits: 0n,
      exactAskKnots: 0,
      exactBidKnots: 0,
      askWords,
      bidWords,
    };
    await mined(curveBook.post(encodePost({ number: head.number, hash: head.hash as Hex }, [record])));
  }

  /** Sells 1 WETH for at least 2,990 USDC, unless told otherwise. */
  async function terms(changes: Partial<OrderTerms> = {}): Promise<OrderTerms> {
    const { owner, recipient, weth, usdc } = world;
    return {
      owner: owner.address,
      tokenIn: await weth.getAddress(),
      maxAmountIn: ETHER,
      nonce: randomNonce(),
      deadline: BigInt((await headBlock()).timestamp) + 1_000n,
      recipient,
      tokenOut: await usdc.getAddress(),
      minAmountOut: 2_990n * USD,
      ...changes,
    };
  }

  const signed = async (changes: Partial<OrderTerms> = {}) =>
    signOrder(world.owner, await terms(changes), world.domain);

  const buys = async (changes: Partial<OrderTerms> = {}) =>
    signed({
      tokenIn: await world.usdc.getAddress(),
      maxAmountIn: 3_050n * USD,
      tokenOut: await world.weth.getAddress(),
      minAmountOut: ETHER,
      ...changes,
    });

  const route = (changes: object = {}) => ({
    amountIn: ETHER,
    feeAmount: 0n,
    ownAmount: 0n,
    ownExactOut: false,
    calls: [] as { target: string; token: string; amountIn: bigint; amountAt: bigint; data: string }[],
    ...changes,
  });

  /** A call that swaps at the exchange. */
  const trade = async (
    tokenIn: Contract,
    amountIn: bigint,
    tokenOut: Contract,
    amountOut: bigint,
    allowed = amountIn,
  ) => ({
    target: await world.exchange.getAddress(),
    token: await tokenIn.getAddress(),
    amountIn: allowed,
    amountAt: 0n,
    data: world.exchange.interface.encodeFunctionData('trade', [
      await tokenIn.getAddress(),
      amountIn,
      await tokenOut.getAddress(),
      amountOut,
    ]),
  });

  /** Every balance that an order may touch, before and after. */
  async function changesOf(run: () => Promise<ContractTransactionResponse>) {
    const { chain, owner, recipient, settler, exchange, weth, usdc } = world;
    const accounts = {
      owner: owner.address,
      recipient,
      custodian: chain.manifest.contracts.custodian,
      settler: await settler.getAddress(),
      exchange: await exchange.getAddress(),
    };
    const read = async () => {
      const entries = Object.entries(accounts).flatMap(([name, account]) => [
        [`${name}.weth`, balance(weth, account)] as const,
        [`${name}.usdc`, balance(usdc, account)] as const,
      ]);
      return new Map(await Promise.all(entries.map(async ([key, value]) => [key, await value] as const)));
    };
    const before = await read();
    const receipt = (await (await run()).wait())!;
    const after = await read();
    const changes: Record<string, bigint> = {};
    for (const [key, value] of after) if (value !== before.get(key)) changes[key] = value - before.get(key)!;
    expect([await balance(weth, accounts.settler), await balance(usdc, accounts.settler)]).to.deep.equal([0n, 0n]);
    return { receipt, changes };
  }

  function eventsOf(receipt: ContractTransactionReceipt) {
    const found = (contract: OrderSettler | Entrypoint, name: string) =>
      receipt.logs
        .map((log) => contract.interface.parseLog(log))
        .filter((log) => log !== null && log.name === name)
        .map((log) => log!.args.toObject() as Record<string, unknown>);
    return { filled: found(world.settler, 'OrderFilled'), swaps: found(world.entrypoint, 'Swap') };
  }

  /** Name and values of the error that a call reverts with. */
  async function refusal(call: Promise<unknown>): Promise<[string, ...unknown[]]> {
    const { settler, entrypoint, curveBook } = world;
    try {
      await call;
    } catch (error) {
      const data = (error as { data?: string }).data ?? '0x';
      for (const abi of [settler.interface, entrypoint.interface, curveBook.interface, PERMIT2_ERRORS]) {
        const parsed = abi.parseError(data);
        if (parsed !== null) return [parsed.name, ...parsed.args];
      }
      return [data];
    }
    return ['none'];
  }

  return { world: () => world, terms, signed, buys, route, trade, changesOf, eventsOf, refusal };
}

const balance = (token: Contract, account: string): Promise<bigint> =>
  token.getFunction('balanceOf').staticCall(account) as Promise<bigint>;

async function startWorld(): Promise<OrderSettlerWorld> {
  const chain = await startManualChain();
  const { manifest, wallet } = chain;
  await chain.provider.send('evm_setAutomine', [true]);
  const settler = OrderSettler__factory.connect(manifest.contracts['orderSettler']!, wallet('executor'));
  const entrypoint = Entrypoint__factory.connect(manifest.contracts.entrypoint, wallet('taker1'));
  const curveBook = CurveBook__factory.connect(manifest.contracts.curveBook, wallet('poster'));
  const [wethInfo, usdcInfo] = manifest.tokens;
  const weth = new Contract(WETH_ADDRESS, ERC20_ABI, wallet('taker1'));
  const usdc = new Contract(usdcInfo!.address, ERC20_ABI, wallet('taker1'));
  const market = createMarket({
    index: 0,
    base: { ...wethInfo!, address: WETH_ADDRESS.toLowerCase() as Address },
    quote: { ...usdcInfo!, address: usdcInfo!.address.toLowerCase() as Address },
    lotUnits: 10n ** 14n,
    tickLotUnits: 1n,
    maxTtlSec: 60,
  });
  const owner = wallet('taker3');
  const recipient = wallet('taker2').address;
  const domain: OrderDomain = { chainId: 8453, permit2: PERMIT2_ADDRESS, spender: await settler.getAddress() };
  const exchange = await new MockExchange__factory(wallet('taker1')).deploy();
  await exchange.waitForDeployment();
  for (const [token, amount] of [
    [weth, 50n * ETHER],
    [usdc, 100_000n * USD],
  ] as const) {
    await mined(token.getFunction('transfer').send(await exchange.getAddress(), amount));
  }
  await mined(settler.connect(wallet('owner')).setTarget(await exchange.getAddress(), true));
  return { chain, market, settler, entrypoint, curveBook, exchange, weth, usdc, owner, recipient, domain };
}
