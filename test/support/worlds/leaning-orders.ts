/** Orders of owners who may not have what they sold when it is taken. */
import { Contract, Transaction, parseUnits, type TransactionResponse, type Wallet } from 'ethers';
import { PERMIT2_ADDRESS } from '../../../deploy/sandbox/canonical.js';
import type { ExecutorDeps } from '../../../keepers/executor/deps.js';
import type { ManualChain } from '../keeper-stack.js';
import { createOwners, type ErrorAnswer, type QuoteAnswer, type SwapStack } from '../swap-stack.js';
import type { BeginSwaps } from '../manual-suite.js';

const PERMIT2 = ['function invalidateUnorderedNonces(uint256 wordPos, uint256 mask)'];
/** What a new owner needs before its first order: an approval of Permit2, and tokens sent to it. */
export const SETUP_GAS = 46_000n + 48_000n;
/** Returns ERC-1271's answer for a valid signature while its first word of storage is zero. */
export const FICKLE = '0x5f5415631626ba7e60e01b025f5260205ff3';

/** What the executor does is its own: another server may quote more. */
const GENEROUS = { maxReverts: 1_000, newAccountGas: 10_000_000n, newContractGas: 10_000_000n };

interface Submitted {
  status: number;
  nonce: bigint;
  orderId: string | undefined;
  error: ErrorAnswer['error'] | undefined;
}

export const usdc = (amount: string): bigint => parseUnits(amount, 6);

/** Within `forEachSwapStack`: a market, and a taker whose balance a test sets. */
export function leaningOrders(begin: BeginSwaps) {
  let chain: ManualChain;
  let stack: SwapStack;
  let taker: Wallet;
  let token: Contract;

  beforeEach(async function () {
    this.timeout(60_000);
    ({ chain, stack, taker } = await begin(GENEROUS));
    await furnish();
  });

  /** Begins anew with another executor. */
  async function beginAgain(executor: Partial<ExecutorDeps>): Promise<void> {
    await stack.stop();
    ({ chain, stack, taker } = await begin(GENEROUS, executor));
    await furnish();
  }

  async function furnish(): Promise<void> {
    token = chain.tokenAs('USDC', 'taker3');
    await chain.provider.send('hardhat_setBalance', [taker.address, '0x8ac7230489e80000']);
    await stack.makeMarket();
  }

  afterEach(() => stack.stop());

  async function submit(owner: Wallet = taker, units = usdc('500')): Promise<Submitted> {
    const quote = await quoteOf(owner, units);
    const { status, body } = await stack.submit(quote, owner);
    const { orderId, error } = body as { orderId?: string; error?: ErrorAnswer['error'] };
    return { status, orderId, error, nonce: BigInt(quote.permit2.typedData.message.nonce) };
  }

  const quoteOf = (owner: Wallet, units: bigint): Promise<QuoteAnswer> =>
    stack.quote(owner.address, {
      sellToken: stack.token('USDC'),
      buyToken: stack.token('WETH'),
      sellAmountBeforeFee: units.toString(),
    });

  /** Uses a nonce up, before what the executor sent. */
  const invalidate = (owner: Wallet, nonce: bigint): Promise<TransactionResponse> =>
    new Contract(PERMIT2_ADDRESS, PERMIT2, owner)
      .getFunction('invalidateUnorderedNonces')
      .send(nonce >> 8n, 1n << (nonce & 255n), { gasPrice: parseUnits('40', 'gwei'), gasLimit: 100_000n });

  /** Lets an owner's swaps take so much. */
  async function allowSwaps(owner: Wallet, units: bigint): Promise<void> {
    const approval = chain.tokenAs('USDC', 'taker1').connect(owner).getFunction('approve');
    await approval.send(chain.entrypointAs('taker1').target, units);
    await chain.mine();
  }

  /** A swap of dust that is not in a block yet. */
  function sendSwap(owner: Wallet): Promise<TransactionResponse> {
    const tokens = [stack.token('USDC'), stack.token('WETH')] as const;
    const terms = { gasLimit: 500_000n, gasPrice: parseUnits('40', 'gwei') };
    return chain
      .entrypointAs('taker1')
      .connect(owner)
      .swap(...tokens, usdc('1'), 0n, owner.address, 2n ** 40n, terms);
  }

  /** A swap that an owner sends; returns the gas that it took. */
  async function swapOf(owner: Wallet): Promise<bigint> {
    await allowSwaps(owner, usdc('1'));
    const swap = await sendSwap(owner);
    await chain.mine();
    await stack.keepers.watcher.scan();
    return (await swap.wait())!.gasUsed;
  }

  /** What the executor sent since a block, by the chain, and the gas that went into reverts. */
  async function sentSince(block: number): Promise<{ filled: number; reverted: number; lostGas: bigint }> {
    const executor = chain.address('executor');
    const counts = { filled: 0, reverted: 0, lostGas: 0n };
    for (let at = block + 1; at <= (await chain.provider.getBlockNumber()); at++) {
      for (const hash of (await chain.provider.getBlock(at))!.transactions) {
        const receipt = (await chain.provider.getTransactionReceipt(hash))!;
        if (receipt.from.toLowerCase() !== executor) continue;
        counts[receipt.status === 1 ? 'filled' : 'reverted'] += 1;
        if (receipt.status !== 1) counts.lostGas += receipt.gasUsed;
      }
    }
    return counts;
  }

  /** Has an order sent whose transaction is kept back; returns what lets it be mined as a revert. */
  async function sentAndSpoilt(owner: Wallet): Promise<() => Promise<void>> {
    const { orderId, nonce } = await submit(owner);
    await stack.executor.round();
    const hash = (await stack.order(orderId!)).attempts.find(({ result }) => result === 'sent')!.txHashes[0]!;
    const { serialized } = Transaction.from((await chain.provider.getTransaction(hash))!);
    await chain.provider.send('hardhat_dropTransaction', [hash]);
    return async () => {
      await invalidate(owner, nonce);
      await chain.mine();
      await chain.provider.send('eth_sendRawTransaction', [serialized]);
      await chain.mine();
      await stack.keepers.watcher.scan();
    };
  }

  /** An owner who has also WETH, of which Permit2 may take all. */
  async function ownerOfBoth(): Promise<Wallet> {
    const [owner] = (await createOwners(chain, 'USDC', 1, usdc('5000'))) as [Wallet];
    const weth = chain.tokenAs('WETH', 'taker1');
    await weth.getFunction('transfer').send(owner.address, parseUnits('1', 18));
    await (weth.connect(owner) as Contract).getFunction('approve').send(PERMIT2_ADDRESS, parseUnits('1', 18));
    await chain.mine();
    return owner;
  }

  const submitWeth = async (owner: Wallet): Promise<string> => {
    const quote = await stack.quote(owner.address, { sellAmountBeforeFee: parseUnits('0.2', 18).toString() });
    return (await stack.submit(quote, owner)).body.orderId;
  };

  return {
    get chain() {
      return chain;
    },
    get stack() {
      return stack;
    },
    get taker() {
      return taker;
    },
    get token() {
      return token;
    },
    beginAgain,
    submit,
    quoteOf,
    invalidate,
    allowSwaps,
    sendSwap,
    swapOf,
    sentSince,
    sentAndSpoilt,
    ownerOfBoth,
    submitWeth,
  };
}
