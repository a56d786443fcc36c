/**
 * A taker on Curvebook: asks the contract for a quote, then swaps, each a single call.
 *
 *   node --import tsx examples/taker.ts [manifest] [role]
 *
 * Every few seconds it buys or sells a random amount on a random market, never for less than the quote minus a small slippage.
 */
import { randomInt } from 'node:crypto';
import { Contract, JsonRpcProvider, Wallet, formatUnits, isError } from 'ethers';
import type { ContractTransactionReceipt, ContractTransactionResponse } from 'ethers';
import { usdMicros } from './price-feed.js';
import { accountOf, pause, readManifest, reason, stopSignal, tokensOf } from './support.js';
import type { Manifest } from './support.js';

/** Pause between two swaps. */
const PAUSE_MS = [1_500, 4_500] as const;
/** Size of a swap. */
const DOLLARS = [200, 9_000] as const;
/** The taker turns round when it has bought or sold this much more than the other way. */
const MAX_NET_DOLLARS = 30_000;
const SLIPPAGE_BPS = 50n;
const DEADLINE_SEC = 60;
const POLL_MS = 500;

const ENTRYPOINT_ABI = [
  'function quoteFor(address taker, address tokenIn, address tokenOut, uint256 amountIn) view returns (uint256)',
  'function swap(address tokenIn, address tokenOut, uint256 amountIn, uint256 minAmountOut, address recipient, uint256 deadline) returns (uint256)',
  'event Swap(bytes32 indexed market, address indexed taker, address indexed recipient, uint256 fillSeq, uint256 curveSeq, bool isBuy, uint256 baseAmount, uint256 quoteAmount, uint256 fee, uint256 inputFee, uint256 consumedBefore)',
];
const ERC20_ABI = [
  'function allowance(address owner, address spender) view returns (uint256)',
  'function approve(address spender, uint256 amount) returns (bool)',
  'function balanceOf(address owner) view returns (uint256)',
];

type Token = Manifest['tokens'][number];

const [manifestPath = '.curvebook/sandbox.json', role = 'taker1'] = process.argv.slice(2);
const manifest = readManifest(manifestPath);
const signal = stopSignal();
const provider = new JsonRpcProvider(manifest.rpcUrl, undefined, {
  staticNetwork: true,
  pollingInterval: POLL_MS,
  cacheTimeout: -1,
});
const wallet = new Wallet(accountOf(manifest, role).privateKey, provider);
const entrypoint = new Contract(manifest.contracts.entrypoint, ENTRYPOINT_ABI, wallet);
const netDollars = new Map<string, number>();

const log = (text: string): void => console.log(`${role}: ${text}`);

await main();

async function main(): Promise<void> {
  log('trading');
  while (!signal.aborted) {
    await trade().catch((error: unknown) =>
      log(isError(error, 'CALL_EXCEPTION') ? `swap reverted: ${reason(error)}` : reason(error)),
    );
    await pause(randomInt(...PAUSE_MS), signal);
  }
  provider.destroy();
}

/** One swap of random size and direction. */
async function trade(): Promise<void> {
  const market = manifest.markets[randomInt(manifest.markets.length)];
  if (market === undefined) throw new Error('The manifest lists no market');
  const [base, quote] = tokensOf(manifest, market.pair);
  const dollars = randomInt(...DOLLARS);
  const net = netDollars.get(market.pair) ?? 0;
  const isBuy = Math.abs(net) > MAX_NET_DOLLARS ? net < 0 : randomInt(2) === 0;
  const [tokenIn, tokenOut] = isBuy ? [quote, base] : [base, quote];
  const amountIn =
    (BigInt(dollars) * 1_000_000n * 10n ** BigInt(tokenIn.decimals)) / usdMicros(tokenIn.symbol, Date.now());

  if (!(await hasFunds(tokenIn, amountIn))) {
    log(`not enough ${tokenIn.symbol} to ${isBuy ? 'buy' : 'sell'} on ${market.pair}`);
    netDollars.set(market.pair, isBuy ? MAX_NET_DOLLARS + 1 : -MAX_NET_DOLLARS - 1);
    return;
  }
  const quoted = (await entrypoint.getFunction('quoteFor')(
    wallet.address,
    tokenIn.address,
    tokenOut.address,
    amountIn,
  )) as bigint;
  if (quoted === 0n)
    return log(`${market.pair}: nothing quoted for ${formatUnits(amountIn, tokenIn.decimals)} ${tokenIn.symbol}`);
  await approveOnce(tokenIn, amountIn);
  const receipt = await swap(tokenIn, tokenOut, amountIn, quoted - (quoted * SLIPPAGE_BPS) / 10_000n);
  netDollars.set(market.pair, net + (isBuy ? dollars : -dollars));
  report(receipt, market.pair, base, quote);
}

async function hasFunds(token: Token, amount: bigint): Promise<boolean> {
  const balance = (await new Contract(token.address, ERC20_ABI, provider).getFunction('balanceOf')(
    wallet.address,
  )) as bigint;
  return balance >= amount;
}

/** Lets the entrypoint pull the token, unless it may already. */
async function approveOnce(token: Token, amount: bigint): Promise<void> {
  const erc20 = new Contract(token.address, ERC20_ABI, wallet);
  const allowance = (await erc20.getFunction('allowance')(wallet.address, manifest.contracts.entrypoint)) as bigint;
  if (allowance >= amount) return;
  const sent = (await erc20.getFunction('approve')(
    manifest.contracts.entrypoint,
    2n ** 256n - 1n,
  )) as ContractTransactionResponse;
  await sent.wait();
}

/** Sells exactly `amountIn` for at least `minAmountOut`, or reverts. */
async function swap(
  tokenIn: Token,
  tokenOut: Token,
  amountIn: bigint,
  minAmountOut: bigint,
): Promise<ContractTransactionReceipt> {
  const head = await provider.getBlock('latest');
  const deadline = (head?.timestamp ?? 0) + DEADLINE_SEC;
  const send = entrypoint.getFunction('swap');
  const args = [tokenIn.address, tokenOut.address, amountIn, minAmountOut, wallet.address, deadline];
  // By the time it is mined the curve may be another one, which costs a little more gas than estimated.
  const gasLimit = ((await send.estimateGas(...args)) * 4n) / 3n;
  const sent = (await send(...args, { gasLimit })) as ContractTransactionResponse;
  const receipt = await sent.wait();
  if (receipt === null) throw new Error(`swap ${sent.hash} was not mined`);
  return receipt;
}

/** Prints what the Swap event says. */
function report(receipt: ContractTransactionReceipt, pair: string, base: Token, quote: Token): void {
  for (const entry of receipt.logs) {
    const event = entrypoint.interface.parseLog(entry);
    if (event?.name !== 'Swap') continue;
    const verb = event.args.isBuy ? 'bought' : 'sold';
    const baseAmount = formatUnits(event.args.baseAmount as bigint, base.decimals);
    const quoteAmount = formatUnits(event.args.quoteAmount as bigint, quote.decimals);
    log(
      `${verb} ${baseAmount} ${base.symbol} for ${quoteAmount} ${quote.symbol} (${pair}, fill ${String(event.args.fillSeq)})`,
    );
  }
}
