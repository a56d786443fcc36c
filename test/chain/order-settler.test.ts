/** Signed orders filled by the curve alone, and what their signatures do not allow; routes are in order-routes.test.ts. */
import { expect } from 'chai';
import { Signature, TypedDataEncoder, id, type Contract, type Wallet } from 'ethers';
import type { Market } from '../../core/types.js';
import { PERMIT2_ADDRESS } from '../../deploy/sandbox/canonical.js';
import { mined } from '../../deploy/transactions.js';
import type { CurveBook, Entrypoint, OrderSettler } from '../../typechain-types/index.js';
import type { ManualChain } from '../support/keeper-stack.js';
import { ORDER_TYPES, orderDigest, signOrder, type OrderDomain, type OrderTerms } from '../support/api/orders.js';
import { ETHER, USD, orderSettlerSuite } from '../support/contracts/order-settler-suite.js';

const WITNESS_TYPE = 'OrderWitness(address recipient,address tokenOut,uint256 minAmountOut)';
const WITNESS_TYPE_STRING = `OrderWitness witness)${WITNESS_TYPE}TokenPermissions(address token,uint256 amount)`;

describe('signed orders', function () {
  this.timeout(120_000);
  const suite = orderSettlerSuite();
  const { terms, signed, buys, route, changesOf, eventsOf, refusal } = suite;
  let settler: OrderSettler;
  let entrypoint: Entrypoint;
  let curveBook: CurveBook;
  let market: Market;
  let weth: Contract;
  let usdc: Contract;
  let owner: Wallet;
  let recipient: string;
  let domain: OrderDomain;
  let chain: ManualChain;

  before(() => {
    ({ settler, entrypoint, curveBook, market, weth, usdc, owner, recipient, domain, chain } = suite.world());
  });

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
      await mined(entrypoint.connect(chain.wallet('owner')).setTakerFee(owner.address, 10_000n));
      await mined(entrypoint.connect(chain.wallet('owner')).setTakerFee(await settler.getAddress(), 10_000n));
      await mined(curveBook.connect(chain.wallet('owner')).setTakerFees(market.id, true));
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
      const stranger = chain.wallet('taker1').address;
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
      const byAnother = await signOrder(chain.wallet('taker1'), await terms(), domain);
      expect(await refusal(settler.fillOnCurve.staticCall(0n, byAnother))).to.deep.equal(['InvalidSigner']);
    });

    it('expires', async () => {
      const { timestamp } = (await chain.provider.getBlock('latest'))!;
      const order = await signed({ deadline: BigInt(timestamp) - 1n });
      expect(await refusal(settler.fillOnCurve.staticCall(0n, order))).to.deep.equal([
        'SignatureExpired',
        BigInt(timestamp) - 1n,
      ]);
    });

    it('is of use to nobody else: neither to strangers here nor to Permit2 itself', async () => {
      const order = await signed();
      const stranger = chain.wallet('taker1');
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
});
