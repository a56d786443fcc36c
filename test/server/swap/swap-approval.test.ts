/** Owners without ETH who never approved Permit2, and sign that, too. */
import { expect } from 'chai';
import { Contract, MaxUint256, Transaction, Wallet, parseUnits, toBeHex } from 'ethers';
import { DEFAULT_GAS, checksGasOf } from '../../../core/swap/pricing.js';
import { OWN } from '../../../core/swap/source.js';
import { permitTypedData } from '../../../core/swap/typed-data.js';
import type { Address, Hex } from '../../../core/types.js';
import { PERMIT2_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import { createRpc } from '../../../keepers/chain/rpc.js';
import { fillIn } from '../../../keepers/executor/permits.js';
import { venuesOf } from '../../../keepers/executor/transaction.js';
import { listOutbox } from '../../../ledger/transactions/outbox.js';
import { joinedReads } from '../../../liquidity/joined-reads.js';
import { createPermits, permitCall, type Permits } from '../../../liquidity/permits.js';
import { digestOf } from '../../../server/swap/signature.js';
import { DaiPermitToken__factory } from '../../../typechain-types/factories/mocks/DaiPermitToken__factory.js';
import type { ManualChain } from '../../support/keeper-stack.js';
import { forEachSwapStack, type SwapChanges } from '../../support/manual-suite.js';
import { signApproval, type ErrorAnswer, type QuoteAnswer, type SwapStack } from '../../support/swap-stack.js';

const PERMIT2 = PERMIT2_ADDRESS.toLowerCase() as Address;
const USDC_ABI = [
  'function allowance(address, address) view returns (uint256)',
  'function permit(address, address, uint256, uint256, uint8, bytes32, bytes32)',
];
/** Jumps to itself. */
const ENDLESS = '0x5b5f56';
/** Answers of ERC-1271 that any signature is valid. */
const AGREEABLE = '0x631626ba7e60e01b5f5260205ff3';
/** Answers every call with a word of ones. */
const YES = '0x5f195f5260205ff3';

const usdc = (amount: string): bigint => parseUnits(amount, 6);

describe('approvals by signature', () => {
  forEachSwapStack((begin) => {
    let chain: ManualChain;
    let stack: SwapStack;
    let taker: Wallet;
    let token: Contract;

    beforeEach(async function () {
      this.timeout(60_000);
      await start();
    });

    afterEach(() => stack.stop());

    async function start(...changes: SwapChanges): Promise<void> {
      ({ chain, stack, taker } = await begin(...changes));
      token = new Contract(stack.token('USDC'), USDC_ABI, chain.provider);
      await stack.makeMarket();
    }

    async function mine(): Promise<void> {
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    /** Has some USDC and nothing else, and never sent a transaction. */
    async function newOwner(symbol = 'USDC', units = usdc('5000')): Promise<Wallet> {
      const owner = new Wallet(Wallet.createRandom().privateKey, chain.provider);
      await chain.tokenAs(symbol, 'taker1').getFunction('transfer').send(owner.address, units, { gasLimit: 100_000n });
      await mine();
      return owner;
    }

    const quoteOf = (owner: Wallet, units = usdc('500'), change: object = {}): Promise<QuoteAnswer> =>
      stack.quote(owner.address, {
        sellToken: stack.token('USDC'),
        buyToken: stack.token('WETH'),
        sellAmountBeforeFee: units.toString(),
        ...change,
      });

    async function submitted(quote: QuoteAnswer, owner: Wallet): Promise<string> {
      const { status, body } = await stack.submit(quote, owner, {
        approvalSignature: await signApproval(quote, owner),
      });
      expect(status, JSON.stringify(body)).to.equal(200);
      return body.orderId;
    }

    async function refusal(quote: QuoteAnswer, owner: Wallet, extra: object = {}): Promise<string> {
      const { status, body } = await stack.submit(quote, owner, extra);
      expect(status).to.equal(400);
      return (body as unknown as ErrorAnswer).error.message;
    }

    const allowanceOf = (owner: Wallet): Promise<bigint> =>
      token.getFunction('allowance')(owner.address, PERMIT2) as Promise<bigint>;

    /** What the executor has signed, oldest first. */
    async function sent(): Promise<Transaction[]> {
      const rows = await listOutbox(stack.db.knex, { signer: stack.outbox.signer, limit: 20 });
      return rows.map(({ raw }) => Transaction.from(raw)).sort((a, b) => a.nonce - b.nonce);
    }

    /** Sends the permit that the quote asks for, ahead of what waits. */
    async function frontRun(quote: QuoteAnswer, owner: Wallet, gasPrice?: bigint): Promise<void> {
      const signature = await signApproval(quote, owner);
      const { nonce, deadline } = quote.approval.typedData!.message as { nonce: string; deadline: string };
      const terms = {
        owner: owner.address.toLowerCase() as Address,
        spender: PERMIT2,
        nonce: BigInt(nonce),
        deadlineSec: parseInt(deadline, 10),
      };
      const data = permitCall('eip2612', terms, signature);
      const call = { to: stack.token('USDC'), data, gasLimit: 200_000n };
      await chain.wallet('taker2').sendTransaction({ ...call, ...(gasPrice === undefined ? {} : { gasPrice }) });
    }

    it('fills the first order of an owner who never sent a transaction', async () => {
      const owner = await newOwner();
      const quote = await quoteOf(owner);
      expect(quote.approval.required).to.equal(true);
      expect(quote.approval.type).to.equal('eip2612');
      expect(quote.approval.typedData!.domain).to.deep.equal({
        name: 'USD Coin',
        version: '2',
        chainId: 8453,
        verifyingContract: stack.token('USDC'),
      });
      expect(quote.approval.typedData!.message).to.deep.equal({
        owner: owner.address.toLowerCase(),
        spender: PERMIT2,
        value: MaxUint256.toString(),
        nonce: '0',
        deadline: quote.quote.validTo.toString(),
      });
      const feeOf = ({ quote: { feeAmount } }: QuoteAnswer) => BigInt(feeAmount);
      const fee = feeOf(await quoteOf(taker));
      const paid = ((feeOf(quote) - fee) * 1_000n) / fee;
      const more = (DEFAULT_GAS.permit * 1_000n) / (DEFAULT_GAS.own + checksGasOf(DEFAULT_GAS, [OWN]));
      expect(paid, 'the fee pays for the gas of the approval').to.be.within(more - 20n, more + 20n);
      const orderId = await submitted(quote, owner);
      await stack.land();
      const order = await stack.order(orderId);
      expect([order.status, order.executedSellAmount]).to.deep.equal(['filled', usdc('500').toString()]);
      expect(order.executedBuyAmount, 'to the unit as quoted').to.equal(quote.quote.buyAmount);
      expect(await chain.provider.getTransactionCount(owner.address)).to.equal(0);
      expect(await chain.provider.getBalance(owner.address)).to.equal(0n);

      const next = await quoteOf(owner);
      expect(next.approval).to.deep.equal({ required: false, type: 'eip2612', typedData: null });
      expect(await refusal(next, owner, { approvalSignature: await signApproval(quote, owner) })).to.match(
        /asks for none/,
      );
      await stack.submit(next, owner);
      await stack.land();
      expect((await sent()).map(({ data }) => fillIn(data as Hex).permit !== null)).to.deep.equal([true, false]);
    });

    it('buys by one, too, and tells the size of what is needed after slippage', async () => {
      const owner = await newOwner();
      const want = { kind: 'buy', sellAmountBeforeFee: undefined, buyAmountAfterFee: parseUnits('0.1').toString() };
      const quote = await quoteOf(owner, 0n, want);
      expect(quote.approval.required).to.equal(true);
      const orderId = await submitted(quote, owner);
      await stack.land();
      expect((await stack.order(orderId)).status).to.equal('filled');
    });

    it('says of a token that takes none so, though a call of it does not fail', async () => {
      const owner = await newOwner('WETH', parseUnits('2'));
      const quote = await stack.quote(owner.address, { sellAmountBeforeFee: parseUnits('1').toString() });
      expect(quote.approval).to.deep.equal({ required: true, type: 'none', typedData: null });
      expect(await refusal(quote, owner)).to.match(/Insufficient allowance/);
      expect(await refusal(quote, owner, { approvalSignature: `0x${'11'.repeat(65)}` })).to.match(/asks for none/);
      const phantom = { to: stack.token('WETH'), data: `0xd505accf${'0'.repeat(448)}` };
      expect(await chain.provider.call(phantom), 'WETH takes any call').to.equal('0x');
    });

    it('takes nothing but what the token takes, from the owner', async () => {
      const owner = await newOwner();
      const quote = await quoteOf(owner);
      const stranger = Wallet.createRandom();
      expect(await refusal(quote, owner)).to.match(/Insufficient allowance/);
      expect(await refusal(quote, owner, { approvalSignature: await signApproval(quote, stranger) })).to.match(
        /does not take/,
      );
      const { permit2 } = quote;
      const { EIP712Domain: _, ...types } = permit2.typedData.types;
      const wrong = await owner.signTypedData(permit2.typedData.domain, types, permit2.typedData.message);
      expect(await refusal(quote, owner, { approvalSignature: wrong })).to.match(/does not take/);
      expect(await refusal(quote, owner, { approvalSignature: '0x1234' })).to.match(/no key's signature/);
      // Nothing of this made an order.
      expect((await submitted(quote, owner)).length).to.be.greaterThan(0);
    });

    it('does without once somebody has submitted it, before the order or ahead of it in its block', async () => {
      const [first, second] = [await newOwner(), await newOwner()];
      const before = await quoteOf(first);
      const orders = [await submitted(before, first)];
      await frontRun(before, first);
      await mine();
      await stack.land();
      const ahead = await quoteOf(second);
      orders.push(await submitted(ahead, second));
      await stack.executor.round();
      await frontRun(ahead, second, parseUnits('50', 'gwei'));
      await mine();
      for (const orderId of orders) expect((await stack.order(orderId)).status).to.equal('filled');
      expect((await sent()).map(({ data }) => fillIn(data as Hex).permit !== null)).to.deep.equal([false, true]);
      const block = (await chain.provider.getBlock('latest'))!;
      const to = await Promise.all(
        block.transactions.map(async (hash) => (await chain.provider.getTransaction(hash))!.to),
      );
      expect(to[0]!.toLowerCase(), 'the permit came first').to.equal(stack.token('USDC'));
    });

    it('fills two orders by one, each of which brought it', async () => {
      const owner = await newOwner();
      const quotes = [await quoteOf(owner), await quoteOf(owner)];
      const orders = [];
      for (const quote of quotes) orders.push(await submitted(quote, owner));
      for (let round = 0; round < 2; round++) await stack.land();
      for (const orderId of orders) expect((await stack.order(orderId)).status).to.equal('filled');
      expect((await sent()).map(({ data }) => fillIn(data as Hex).permit !== null)).to.deep.equal([true, false]);
    });

    /** The owner allows Permit2 to take so much, by a transaction of its own. */
    async function approve(owner: Wallet, units: bigint): Promise<void> {
      await chain.provider.send('hardhat_setBalance', [owner.address, toBeHex(10n ** 18n)]);
      const contract = new Contract(stack.token('USDC'), ['function approve(address, uint256)'], owner);
      await contract.getFunction('approve').send(PERMIT2, units, { gasLimit: 100_000n });
      await mine();
    }

    it('asks for one where pending orders take the allowance, as the submission does', async () => {
      const owner = await newOwner();
      await approve(owner, usdc('500'));
      const first = await quoteOf(owner);
      expect(first.approval).to.deep.equal({ required: false, type: 'eip2612', typedData: null });
      const { body } = await stack.submit(first, owner);
      const second = await quoteOf(owner);
      expect(second.approval.required).to.equal(true);
      const orders = [body.orderId, await submitted(second, owner)];
      for (let round = 0; round < 2; round++) await stack.land();
      for (const orderId of orders) expect((await stack.order(orderId)).status).to.equal('filled');
    });

    it('asks no account with code for one, nor a fee for it', async () => {
      await stack.stop();
      await start({ newContractGas: 400_000n }, { newContractGas: 400_000n });
      const owner = await newOwner();
      await chain.provider.send('hardhat_setCode', [owner.address, AGREEABLE]);
      const quote = await quoteOf(owner);
      expect(quote.approval).to.deep.equal({ required: true, type: 'none', typedData: null });
      await chain.provider.send('hardhat_setCode', [owner.address, '0x']);
      await approve(owner, MaxUint256);
      await chain.provider.send('hardhat_setCode', [owner.address, AGREEABLE]);
      const allowed = await quoteOf(owner);
      const fees = [quote, allowed].map((one) => BigInt(one.quote.feeAmount));
      // The base fee falls by up to an eighth in the block between; a permit would add a third.
      expect((fees[0]! * 100n) / fees[1]!, String(fees)).to.be.within(90n, 120n);
    });

    it('sends nothing once the owner has used up its nonce at the token', async () => {
      const owner = await newOwner();
      const orderId = await submitted(await quoteOf(owner), owner);
      const terms = {
        owner: owner.address.toLowerCase() as Address,
        spender: PERMIT2,
        nonce: 0n,
        deadlineSec: 2 ** 40,
      };
      const other = { ...terms, spender: chain.address('taker2').toLowerCase() as Address };
      const domain = { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: stack.token('USDC') };
      const signature = owner.signingKey.sign(digestOf(permitTypedData('eip2612', domain, other))).serialized as Hex;
      const data = permitCall('eip2612', other, signature);
      await chain.wallet('taker2').sendTransaction({ to: stack.token('USDC'), data, gasLimit: 200_000n });
      await mine();
      await stack.executor.round();
      const order = await stack.order(orderId);
      expect([order.status, order.reason?.code]).to.deep.equal(['pending', 'INSUFFICIENT_FUNDS']);
      expect(await sent()).to.deep.equal([]);
      expect(await allowanceOf(owner)).to.equal(0n);
    });

    it('counts what a permit burns where nothing is checked: without more credit a new owner must swap by itself first', async () => {
      await stack.stop();
      // What the executor risks is its own: this server quotes more.
      await start({ newPermitGas: 60_000n }, { newPermitGas: 0n }, true);
      const owner = await newOwner();
      const orderId = await submitted(await quoteOf(owner), owner);
      await stack.executor.round();
      const order = await stack.order(orderId);
      expect([order.status, order.reason?.code]).to.deep.equal(['pending', 'UNPROVEN_ACCOUNT']);
      // Once the owner has approved by a transaction, nothing but the trade can be burnt.
      await chain.provider.send('hardhat_setBalance', [owner.address, toBeHex(10n ** 18n)]);
      const approve = new Contract(stack.token('USDC'), ['function approve(address, uint256)'], owner);
      await approve.getFunction('approve').send(PERMIT2, MaxUint256, { gasLimit: 100_000n });
      await mine();
      await stack.land();
      expect((await stack.order(orderId)).status).to.equal('filled');
    });

    describe('what is found out about a token', () => {
      const permitsOf = (settler = chain.manifest.contracts['orderSettler']!): Permits => {
        const eth = createRpc(chain.rpcUrl);
        return createPermits({
          ...{ eth, joined: joinedReads(eth) },
          chainId: 8453,
          permit2: PERMIT2,
          settler: settler.toLowerCase() as Address,
          nowMs: () => 0,
        });
      };

      it('is the form of DAI, by which an allowance without end is given', async () => {
        const made = await new DaiPermitToken__factory(chain.wallet('taker1')).deploy();
        await chain.mine();
        const dai = (await made.getAddress()).toLowerCase() as Address;
        const permits = permitsOf();
        const support = await permits.supportOf(dai);
        expect(support).to.deep.equal({
          style: 'dai',
          domain: { name: 'Dai Stablecoin', version: '1', chainId: 8453, verifyingContract: dai },
        });
        const key = Wallet.createRandom();
        const owner = key.address.toLowerCase() as Address;
        const terms = { owner, spender: PERMIT2, nonce: 0n, deadlineSec: 2 ** 40 };
        const typed = permitTypedData('dai', support!.domain, terms);
        const call = permitCall('dai', terms, key.signingKey.sign(digestOf(typed)).serialized as Hex);
        expect(await permits.allowanceAfter(dai, owner, call)).to.equal(MaxUint256);
        expect(await permits.stateOf(dai, owner, support)).to.deep.equal({ allowanceUnits: 0n, nonce: 0n });
      });

      it('is nothing that a simulation does not show', async () => {
        const address: Address = '0x00000000000000000000000000000000000d0d01';
        for (const code of [ENDLESS, YES, '0xfe', '0x']) {
          await chain.provider.send('hardhat_setCode', [address, code]);
          expect(await permitsOf().supportOf(address), code).to.equal(null);
        }
        await chain.provider.send('hardhat_setCode', [address, ENDLESS]);
        const owner = taker.address.toLowerCase() as Address;
        expect(await permitsOf().allowanceAfter(address, owner, '0x'), 'without end').to.equal(null);
      });

      it('is nothing at a settler that can bring none', async () => {
        expect(await permitsOf(chain.manifest.contracts.custodian).supportOf(stack.token('USDC'))).to.equal(null);
        expect((await permitsOf().supportOf(stack.token('USDC')))?.style).to.equal('eip2612');
      });
    });

    it('is read out of a call that brings one', async () => {
      const owner = await newOwner();
      const orderId = await submitted(await quoteOf(owner), owner);
      await stack.land();
      const [first] = await sent();
      expect(venuesOf(first!.data as Hex)).to.deep.equal({ venues: 1, pools: 0 });
      expect((await stack.order(orderId)).txHash).to.equal(first!.hash);
    });
  });
});
