import { expect } from 'chai';
import { Contract, Interface, MaxUint256, Signature, TypedDataEncoder, Wallet, ZeroAddress, id } from 'ethers';
import type { ContractTransactionReceipt, ContractTransactionResponse, JsonRpcProvider } from 'ethers';
import { buildCurve } from '../../core/curve/build.js';
import { encodePost } from '../../core/curve/post.js';
import { createMarket } from '../../core/market.js';
import type { Address, Hex, Market } from '../../core/types.js';
import { PERMIT2_ADDRESS, WETH_ADDRESS } from '../../deploy/canonical.js';
import { startChain, type RunningChain } from '../../deploy/chain.js';
import type { SandboxManifest } from '../../deploy/manifest.js';
import { deploySandbox } from '../../deploy/sandbox.js';
import { connect, mined } from '../../deploy/transactions.js';
import {
  CurveBook__factory,
  Entrypoint__factory,
  MockExchange__factory,
  OrderSettler__factory,
} from '../../typechain-types/index.js';
import type { CurveBook, Entrypoint, MockExchange, OrderSettler } from '../../typechain-types/index.js';
import { snapshotOfLevels } from '../support/books.js';
import {
  ORDER_TYPES,
  orderDigest,
  randomNonce,
  signOrder,
  type OrderDomain,
  type OrderTerms,
} from '../support/orders.js';

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
const WITNESS_TYPE = 'OrderWitness(address recipient,address tokenOut,uint256 minAmountOut)';
const WITNESS_TYPE_STRING = `OrderWitness witness)${WITNESS_TYPE}TokenPermissions(address token,uint256 amount)`;

const ETHER = 10n ** 18n;
const USD = 10n ** 6n;

/** Against the published Permit2, with signatures as ethers makes them. */
describe('signed orders', function () {
  this.timeout(120_000);
  let running: RunningChain;
  let provider: JsonRpcProvider;
  let manifest: SandboxManifest;
  let market: Market;
  let snapshot: string;
  let settler: OrderSettler;
  let entrypoint: Entrypoint;
  let curveBook: CurveBook;
  let exchange: MockExchange;
  let weth: Contract;
  let usdc: Contract;
  let owner: Wallet;
  let recipient: string;
  let domain: OrderDomain;
  let curveSeq = 0;

  const wallet = (role: string): Wallet =>
    new Wallet(manifest.accounts.find((one) => one.role === role)!.privateKey, provider);
  const balance = (token: Contract, account: string): Promise<bigint> =>
    token.getFunction('balanceOf').staticCall(account) as Promise<bigint>;
  const custodian = (): string => manifest.contracts.custodian;

  before(async () => {
    running = await startChain({ host: '127.0.0.1', port: 0, blockTimeMs: 60_000 });
    const { rpcUrl } = running;
    manifest = await deploySandbox({ rpcUrl, serverUrl: 'http://127.0.0.1:1', marketCount: 1, log: () => undefined });
    provider = connect(rpcUrl);
    await provider.send('evm_setIntervalMining', [0]);
    await provider.send('evm_setAutomine', [true]);
    settler = OrderSettler__factory.connect(manifest.contracts['orderSettler']!, wallet('executor'));
    entrypoint = Entrypoint__factory.connect(manifest.contracts.entrypoint, wallet('taker1'));
    curveBook = CurveBook__factory.connect(manifest.contracts.curveBook, wallet('poster'));
    const [wethInfo, usdcInfo] = manifest.tokens;
    weth = new Contract(WETH_ADDRESS, ERC20_ABI, wallet('taker1'));
    usdc = new Contract(usdcInfo!.address, ERC20_ABI, wallet('taker1'));
    market = createMarket({
      index: 0,
      base: { ...wethInfo!, address: WETH_ADDRESS.toLowerCase() as Address },
      quote: { ...usdcInfo!, address: usdcInfo!.address.toLowerCase() as Address },
      lotUnits: 10n ** 14n,
      tickLotUnits: 1n,
      maxTtlSec: 60,
    });
    owner = wallet('taker3');
    recipient = wallet('taker2').address;
    domain = { chainId: 8453, permit2: PERMIT2_ADDRESS, spender: await settler.getAddress() };
    exchange = await new MockExchange__factory(wallet('taker1')).deploy();
    await exchange.waitForDeployment();
    for (const [token, amount] of [
      [weth, 50n * ETHER],
      [usdc, 100_000n * USD],
    ] as const) {
      await mined(token.getFunction('transfer').send(await exchange.getAddress(), amount));
    }
    await mined(settler.connect(wallet('owner')).setTarget(await exchange.getAddress(), true));
    snapshot = (await provider.send('evm_snapshot', [])) as string;
  });

  after(async () => {
    provider?.destroy();
    await running?.close();
  });

  beforeEach(async () => {
    await provider.send('evm_revert', [snapshot]);
    snapshot = (await provider.send('evm_snapshot', [])) as string;
    await post();
  });

  /** Two levels of 4 WETH a side around 3,000.00. */
  async function post(): Promise<void> {
    const levels = (best: bigint, step: bigint) =>
      [0n, 1n].map((i) => ({ priceTicks: best + i * step, lots: 40_000n }));
    const book = snapshotOfLevels(levels(300_001n, 100n), levels(299_999n, -100n));
    const { askWords, bidWords } = buildCurve(market, { ...book, market: 0 }, { maxKnots: 15 });
    const head = (await provider.getBlock('latest'))!;
    const record = {
      kind: 'full' as const,
      marketId: market.id,
      seq: ++curveSeq,
      deadlineSec: head.timestamp + 50,
      snapAskUnits: 0n,
      snapBidUnits: 0n,
      askWords,
      bidWords,
    };
    await mined(curveBook.post(encodePost({ number: head.number, hash: head.hash as Hex }, [record])));
  }

  /** Sells 1 WETH for at least 2,990 USDC, unless told otherwise. */
  async function terms(changes: Partial<OrderTerms> = {}): Promise<OrderTerms> {
    return {
      owner: owner.address,
      tokenIn: await weth.getAddress(),
      maxAmountIn: ETHER,
      nonce: randomNonce(),
      deadline: BigInt((await provider.getBlock('latest'))!.timestamp) + 1_000n,
      recipient,
      tokenOut: await usdc.getAddress(),
      minAmountOut: 2_990n * USD,
      ...changes,
    };
  }

  const signed = async (changes: Partial<OrderTerms> = {}) => signOrder(owner, await terms(changes), domain);

  const buys = async (changes: Partial<OrderTerms> = {}) =>
    signed({
      tokenIn: await usdc.getAddress(),
      maxAmountIn: 3_050n * USD,
      tokenOut: await weth.getAddress(),
      minAmountOut: ETHER,
      ...changes,
    });

  const route = (changes: object = {}) => ({
    amountIn: ETHER,
    feeAmount: 0n,
    ownAmount: 0n,
    ownExactOut: false,
    calls: [] as { target: string; amountIn: bigint; data: string }[],
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
    target: await exchange.getAddress(),
    amountIn: allowed,
    data: exchange.interface.encodeFunctionData('trade', [
      await tokenIn.getAddress(),
      amountIn,
      await tokenOut.getAddress(),
      amountOut,
    ]),
  });

  /** Every balance that an order may touch, before and after. */
  async function changesOf(run: () => Promise<ContractTransactionResponse>) {
    const accounts = {
      owner: owner.address,
      recipient,
      custodian: custodian(),
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
    return { filled: found(settler, 'OrderFilled'), swaps: found(entrypoint, 'Swap') };
  }

  /** Name and values of the error that a call reverts with. */
  async function refusal(call: Promise<unknown>): Promise<[string, ...unknown[]]> {
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

  describe('typed data', () => {
    it('hashes to the same in the contract, in ethers and as written here', async () => {
      expect(await settler.orderWitnessTypehash()).to.equal(
        '0x0e132ade6e6ca1b340094f3ba2688c31d4eca4cd95568b0ab6091db2194f87f9',
      );
      expect(await settler.orderWitnessTypehash()).to.equal(id(WITNESS_TYPE));
      expect(await settler.witnessTypeString()).to.equal(WITNESS_TYPE_STRING);
      const stub =
        'PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,';
      expect(TypedDataEncoder.from(ORDER_TYPES).encodeType('PermitWitnessTransferFrom')).to.equal(
        stub + WITNESS_TYPE_STRING,
      );
      expect(id(stub + WITNESS_TYPE_STRING)).to.equal(
        '0xe705cb37b8d5eb1389c287bfe1ce250491f7813e05a6c7b0b3c9cc60d32622fd',
      );
      expect(await settler.permit2()).to.equal(PERMIT2_ADDRESS);
    });
  });

  describe('by the curve alone', () => {
    it('sells all but the fee, and the vault is paid directly', async () => {
      const order = await signed({ minAmountOut: 2_900n * USD });
      const fee = ETHER / 100n;
      const expected = await entrypoint.quote(await weth.getAddress(), await usdc.getAddress(), ETHER - fee);
      expect([...(await settler.fillOnCurve.staticCall(fee, order))]).to.deep.equal([ETHER, expected]);
      const { receipt, changes } = await changesOf(() => settler.fillOnCurve(fee, order));
      expect(changes).to.deep.equal({
        'owner.weth': -ETHER,
        'custodian.weth': ETHER,
        'recipient.usdc': expected,
        'custodian.usdc': -expected,
      });
      const { filled, swaps } = eventsOf(receipt);
      expect(filled).to.deep.equal([
        {
          owner: owner.address,
          nonce: order.nonce,
          recipient,
          tokenIn: await weth.getAddress(),
          tokenOut: await usdc.getAddress(),
          amountIn: ETHER,
          amountOut: expected,
          feeAmount: fee,
          feeInSwap: true,
        },
      ]);
      expect(swaps).to.have.length(1);
      expect(swaps[0]).to.include({ taker: owner.address, recipient, inputFee: fee, fee: 0n, isBuy: false });
      expect(swaps[0]).to.include({ baseAmount: ETHER - fee, quoteAmount: expected });
    });

    it('gives the recipient all that the price improved', async () => {
      const quoted = await entrypoint.quote(await weth.getAddress(), await usdc.getAddress(), ETHER);
      const { changes } = await changesOf(async () => settler.fillOnCurve(0n, await signed()));
      expect(changes['recipient.usdc']).to.equal(quoted);
      expect(quoted > 2_990n * USD).to.equal(true);
    });

    it('buys exactly what was signed and takes only what that needs', async () => {
      const order = await buys();
      const cost = await entrypoint.quoteExactOutput(await usdc.getAddress(), await weth.getAddress(), ETHER);
      const { receipt, changes } = await changesOf(() => settler.fillOnCurveExactOut(USD, order));
      expect(changes).to.deep.equal({
        'owner.usdc': -(cost + USD),
        'custodian.usdc': cost + USD,
        'recipient.weth': ETHER,
        'custodian.weth': -ETHER,
      });
      const { filled, swaps } = eventsOf(receipt);
      expect(filled[0]).to.include({ amountIn: cost + USD, amountOut: ETHER, feeAmount: USD, feeInSwap: true });
      expect(swaps[0]).to.include({ isBuy: true, quoteAmount: cost, inputFee: USD, taker: owner.address });
    });

    it('takes no more than was signed, the fee included', async () => {
      const cost = await entrypoint.quoteExactOutput(await usdc.getAddress(), await weth.getAddress(), ETHER);
      const order = await buys({ maxAmountIn: cost + 5n });
      expect(await refusal(settler.fillOnCurveExactOut.staticCall(6n, order))).to.deep.equal([
        'ExcessiveInput',
        cost,
        cost - 1n,
      ]);
      const { changes } = await changesOf(() => settler.fillOnCurveExactOut(5n, order));
      expect(changes['owner.usdc']).to.equal(-(cost + 5n));
    });

    it('charges no taker fee, whatever the owner of the order pays when it trades itself', async () => {
      await mined(entrypoint.connect(wallet('owner')).setTakerFee(owner.address, 10_000n));
      await mined(entrypoint.connect(wallet('owner')).setTakerFee(await settler.getAddress(), 10_000n));
      await mined(curveBook.connect(wallet('owner')).setTakerFees(market.id, true));
      const quoted = await entrypoint.quote(await weth.getAddress(), await usdc.getAddress(), ETHER);
      const { changes } = await changesOf(async () => settler.fillOnCurve(0n, await signed()));
      expect(changes['recipient.usdc']).to.equal(quoted);
    });

    it('refuses a fee above the input, and a price below the limit', async () => {
      const order = await signed();
      expect(await refusal(settler.fillOnCurve.staticCall(ETHER + 1n, order))).to.deep.equal([
        'FeeTooHigh',
        ETHER + 1n,
        ETHER,
      ]);
      expect((await refusal(settler.fillOnCurve.staticCall(ETHER, order)))[0]).to.equal('ZeroAmount');
      const out = await entrypoint.quote(await weth.getAddress(), await usdc.getAddress(), ETHER - 10n ** 17n);
      expect(await refusal(settler.fillOnCurve.staticCall(10n ** 17n, order))).to.deep.equal([
        'InsufficientOutput',
        out,
        2_990n * USD,
      ]);
    });

    it('accepts compact signatures', async () => {
      const order = await signed();
      const compact = { ...order, signature: Signature.from(order.signature as string).compactSerialized };
      const { changes } = await changesOf(() => settler.fillOnCurve(0n, compact));
      expect(changes['owner.weth']).to.equal(-ETHER);
    });
  });

  describe('what the signature does not allow', () => {
    it('works once', async () => {
      const order = await signed();
      await mined(settler.fillOnCurve(0n, order));
      expect(await refusal(settler.fillOnCurve.staticCall(0n, order))).to.deep.equal(['InvalidNonce']);
      expect(await refusal(settler.fillRoute.staticCall(order, route()))).to.deep.equal(['InvalidNonce']);
      const another = await signed({ nonce: order.nonce, maxAmountIn: ETHER / 2n, minAmountOut: 1n });
      expect(await refusal(settler.fillOnCurve.staticCall(0n, another))).to.deep.equal(['InvalidNonce']);
    });

    it('binds every term', async () => {
      const order = await signed({ minAmountOut: 1_000n * USD });
      const stranger = wallet('taker1').address;
      const tampered: [string, Partial<OrderTerms>][] = [
        ['recipient', { recipient: stranger }],
        ['minAmountOut', { minAmountOut: 999n * USD }],
        ['nonce', { nonce: BigInt(order.nonce) + 1n }],
        ['deadline', { deadline: BigInt(order.deadline) + 1n }],
        ['maxAmountIn', { maxAmountIn: 2n * ETHER }],
        ['owner', { owner: stranger }],
      ];
      for (const [what, change] of tampered) {
        const call = settler.fillOnCurve.staticCall(0n, { ...order, ...change });
        expect(await refusal(call), what).to.deep.equal(['InvalidSigner']);
        const routed = settler.fillRoute.staticCall({ ...order, ...change }, route());
        expect(await refusal(routed), what).to.deep.equal(['InvalidSigner']);
      }
      // Another token out trades in no market, so it is tried on a route.
      const other = { ...order, tokenOut: PERMIT2_ADDRESS };
      expect(await refusal(settler.fillRoute.staticCall(other, route()))).to.deep.equal(['InvalidSigner']);
      const otherSpender = await signOrder(owner, await terms(), { ...domain, spender: stranger });
      expect(await refusal(settler.fillOnCurve.staticCall(0n, otherSpender))).to.deep.equal(['InvalidSigner']);
      const otherChain = await signOrder(owner, await terms(), { ...domain, chainId: 1 });
      expect(await refusal(settler.fillOnCurve.staticCall(0n, otherChain))).to.deep.equal(['InvalidSigner']);
      const byAnother = await signOrder(wallet('taker1'), await terms(), domain);
      expect(await refusal(settler.fillOnCurve.staticCall(0n, byAnother))).to.deep.equal(['InvalidSigner']);
    });

    it('expires', async () => {
      const { timestamp } = (await provider.getBlock('latest'))!;
      const order = await signed({ deadline: BigInt(timestamp) - 1n });
      expect(await refusal(settler.fillOnCurve.staticCall(0n, order))).to.deep.equal([
        'SignatureExpired',
        BigInt(timestamp) - 1n,
      ]);
    });

    it('is of use to nobody else: neither to strangers here nor to Permit2 itself', async () => {
      const order = await signed();
      const stranger = wallet('taker1');
      const { address } = stranger;
      for (const method of ['fillOnCurve', 'fillOnCurveExactOut'] as const)
        expect(await refusal(settler.connect(stranger)[method].staticCall(0n, order))).to.deep.equal([
          'NotExecutor',
          address,
        ]);
      expect(await refusal(settler.connect(stranger).fillRoute.staticCall(order, route()))).to.deep.equal([
        'NotExecutor',
        address,
      ]);
      const call = settler.connect(stranger).deliver.staticCall({ amount: 1n, order });
      expect(await refusal(call)).to.deep.equal(['NotEntrypoint', address]);
      expect(orderDigest(order, domain)).to.not.equal(orderDigest(order, { ...domain, spender: address }));
    });
  });

  describe('by external targets', () => {
    it('swaps there, sends the fee to the vault, and all that was bought to the recipient', async () => {
      const fee = ETHER / 50n;
      const order = await signed();
      const calls = [await trade(weth, ETHER - fee, usdc, 2_995n * USD)];
      const { receipt, changes } = await changesOf(() => settler.fillRoute(order, route({ feeAmount: fee, calls })));
      expect(changes).to.deep.equal({
        'owner.weth': -ETHER,
        'custodian.weth': fee,
        'exchange.weth': ETHER - fee,
        'exchange.usdc': -2_995n * USD,
        'recipient.usdc': 2_995n * USD,
      });
      const { filled, swaps } = eventsOf(receipt);
      expect(swaps).to.deep.equal([]);
      expect(filled[0]).to.include({ amountIn: ETHER, amountOut: 2_995n * USD, feeAmount: fee, feeInSwap: false });
    });

    it('splits between the curve and a target', async () => {
      const order = await signed();
      const [fee, own] = [ETHER / 100n, (ETHER * 6n) / 10n];
      const external = ETHER - fee - own;
      const ownOut = await entrypoint.quote(await weth.getAddress(), await usdc.getAddress(), own);
      const calls = [await trade(weth, external, usdc, 1_200n * USD)];
      const { receipt, changes } = await changesOf(() =>
        settler.fillRoute(order, route({ feeAmount: fee, ownAmount: own, calls })),
      );
      expect(changes).to.deep.equal({
        'owner.weth': -ETHER,
        'custodian.weth': own + fee,
        'custodian.usdc': -ownOut,
        'exchange.weth': external,
        'exchange.usdc': -1_200n * USD,
        'recipient.usdc': ownOut + 1_200n * USD,
      });
      const { filled, swaps } = eventsOf(receipt);
      expect(filled[0]).to.include({ amountOut: ownOut + 1_200n * USD, feeAmount: fee, feeInSwap: true });
      expect(swaps[0]).to.include({ taker: owner.address, recipient, baseAmount: own, inputFee: fee });
    });

    it('buys by a split and gives back what it did not need', async () => {
      const order = await buys();
      const half = ETHER / 2n;
      const cost = await entrypoint.quoteExactOutput(await usdc.getAddress(), await weth.getAddress(), half);
      const calls = [await trade(usdc, 1_501n * USD, weth, half, 1_510n * USD)];
      const split = route({ amountIn: 3_040n * USD, feeAmount: USD, ownAmount: half, ownExactOut: true, calls });
      const { receipt, changes } = await changesOf(() => settler.fillRoute(order, split));
      const spent = cost + 1_502n * USD;
      expect(changes).to.deep.equal({
        'owner.usdc': -spent,
        'custodian.usdc': cost + USD,
        'custodian.weth': -half,
        'exchange.usdc': 1_501n * USD,
        'exchange.weth': -half,
        'recipient.weth': ETHER,
      });
      expect(eventsOf(receipt).filled[0]).to.include({ amountIn: spent, amountOut: ETHER, feeAmount: USD });
    });

    it('leaves no allowance behind, even when the target took less than it might', async () => {
      const order = await signed();
      const calls = [await trade(weth, ETHER / 2n, usdc, 2_999n * USD, MaxUint256)];
      const { changes } = await changesOf(() => settler.fillRoute(order, route({ calls })));
      expect(changes['owner.weth']).to.equal(-ETHER / 2n);
      const allowance = weth.getFunction('allowance');
      expect(await allowance.staticCall(domain.spender, await exchange.getAddress())).to.equal(0n);
    });

    it('reverts whole when the recipient would get less than was signed', async () => {
      const order = await signed();
      const calls = [await trade(weth, ETHER, usdc, 2_990n * USD - 1n)];
      const call = settler.fillRoute.staticCall(order, route({ calls }));
      expect(await refusal(call)).to.deep.equal(['InsufficientOutput', 2_990n * USD - 1n, 2_990n * USD]);
      expect(await refusal(settler.fillRoute.staticCall(order, route()))).to.deep.equal([
        'InsufficientOutput',
        0n,
        2_990n * USD,
      ]);
    });

    it('calls only what the owner listed, and never the tokens of the order', async () => {
      const order = await signed({ minAmountOut: 0n });
      const owns = settler.connect(wallet('owner'));
      const targets = [
        PERMIT2_ADDRESS,
        domain.spender,
        custodian(),
        manifest.contracts.entrypoint,
        manifest.contracts.curveBook,
        wallet('taker1').address,
        ZeroAddress,
      ];
      for (const target of targets) {
        expect(await refusal(owns.setTarget.staticCall(target, true))).to.deep.equal(['ForbiddenTarget', target]);
        const calls = [{ target, amountIn: 0n, data: '0x' }];
        expect(await refusal(settler.fillRoute.staticCall(order, route({ calls })))).to.deep.equal([
          'ForbiddenTarget',
          target,
        ]);
      }
      for (const token of [weth, usdc]) {
        const target = await token.getAddress();
        await mined(owns.setTarget(target, true));
        const calls = [{ target, amountIn: 0n, data: '0x' }];
        expect(await refusal(settler.fillRoute.staticCall(order, route({ calls })))).to.deep.equal([
          'ForbiddenTarget',
          target,
        ]);
      }
      await mined(owns.setTarget(await exchange.getAddress(), false));
      const calls = [await trade(weth, ETHER, usdc, 1n)];
      expect((await refusal(settler.fillRoute.staticCall(order, route({ calls }))))[0]).to.equal('ForbiddenTarget');
    });

    it('can not be entered again from a target', async () => {
      const [order, inner] = [await signed({ minAmountOut: 0n }), await signed()];
      await mined(settler.connect(wallet('owner')).setExecutor(await exchange.getAddress(), true));
      const target = await exchange.getAddress();
      const attempts = [
        [settler.interface.encodeFunctionData('fillOnCurve', [0n, inner]), 'ReentrancyGuardReentrantCall'],
        [settler.interface.encodeFunctionData('fillRoute', [inner, route()]), 'ReentrancyGuardReentrantCall'],
        [settler.interface.encodeFunctionData('deliver', [{ amount: 1n, order: inner }]), 'NotEntrypoint'],
      ] as const;
      for (const [data, expected] of attempts) {
        const callBack = exchange.interface.encodeFunctionData('callBack', [domain.spender, data]);
        const calls = [{ target, amountIn: 0n, data: callBack }];
        const [name, at, reason] = await refusal(settler.fillRoute.staticCall(order, route({ calls })));
        expect([name, at]).to.deep.equal(['CallFailed', target]);
        expect(settler.interface.parseError(reason as string)?.name).to.equal(expected);
      }
    });
  });
});
