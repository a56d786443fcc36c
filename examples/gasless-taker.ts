/**
 * A taker without ETH on Curvebook: asks the swap API for a quote, signs one message, and receives its tokens.
 *
 *   node --import tsx examples/gasless-taker.ts [manifest] [role]
 *
 * Every few seconds it sells a random amount on a random market. Its tokens must be approved to Permit2 once, which the sandbox has done
 * for it: that is the only transaction a gasless taker ever needs.
 */
import { randomInt, randomUUID } from 'node:crypto';
import { Contract, JsonRpcProvider, Wallet, formatUnits } from 'ethers';
import { usdMicros } from './price-feed.js';
import { accountOf, pause, readManifest, reason, stopSignal, tokensOf } from './support.js';
import { isFresh, swapClient } from './swap-client.js';

const PAUSE_MS = [4_000, 9_000] as const;
const DOLLARS = [500, 6_000] as const;
const POLL_MS = 500;
const ERC20_ABI = [
  'function allowance(address owner, address spender) view returns (uint256)',
  'function balanceOf(address owner) view returns (uint256)',
];

const [manifestPath = '.curvebook/sandbox.json', role = 'taker3'] = process.argv.slice(2);
const manifest = readManifest(manifestPath);
const signal = stopSignal();
const provider = new JsonRpcProvider(manifest.rpcUrl, undefined, { staticNetwork: true, pollingInterval: POLL_MS });
const wallet = new Wallet(accountOf(manifest, role).privateKey);
const api = swapClient(manifest);

const log = (text: string): void => console.log(`${role}: ${text}`);

await main();

async function main(): Promise<void> {
  log(`trading with ${formatUnits(await provider.getBalance(wallet.address))} ETH`);
  while (!signal.aborted) {
    await trade().catch((error: unknown) => log(reason(error)));
    await pause(randomInt(...PAUSE_MS), signal);
  }
  provider.destroy();
}

/** One swap from quote to tokens. */
async function trade(): Promise<void> {
  const market = manifest.markets[randomInt(manifest.markets.length)];
  if (market === undefined) throw new Error('The manifest lists no market');
  const [base, other] = tokensOf(manifest, market.pair);
  const [sell, buy] = randomInt(2) === 0 ? [base, other] : [other, base];
  const dollars = BigInt(randomInt(...DOLLARS));
  const amount = (dollars * 1_000_000n * 10n ** BigInt(sell.decimals)) / usdMicros(sell.symbol, Date.now());

  const quote = await api.quote({
    chainId: manifest.chainId,
    from: wallet.address,
    sellToken: sell.address,
    buyToken: buy.address,
    kind: 'sell',
    sellAmountBeforeFee: amount.toString(),
    signingScheme: 'eip712',
  });
  const erc20 = new Contract(sell.address, ERC20_ABI, provider);
  const balance = (await erc20.getFunction('balanceOf')(wallet.address)) as bigint;
  if (balance < amount) return log(`not enough ${sell.symbol} left`);
  const allowance = (await erc20.getFunction('allowance')(wallet.address, quote.permit2.allowanceTarget)) as bigint;
  if (allowance < amount) throw new Error(`Approve ${sell.symbol} to Permit2 (${quote.permit2.allowanceTarget}) first`);
  if (!isFresh(quote)) throw new Error('The quote is about to expire; ask for another one');

  // ethers adds the type of the domain itself and refuses to be told; a browser wallet gets typedData as it is.
  const { domain, types, message } = quote.permit2.typedData;
  const { EIP712Domain: _, ...signed } = types;
  const signature = await wallet.signTypedData(domain, signed, message);
  const { orderId } = await api.submit(quote.id, signature, randomUUID());
  const order = await api.ended(orderId, signal);
  const got = `${formatUnits(order.executedBuyAmount, buy.decimals)} ${buy.symbol}`;
  const gave = `${formatUnits(order.executedSellAmount, sell.decimals)} ${sell.symbol}`;
  log(
    order.status === 'filled' ? `gave ${gave}, got ${got} (${order.txHash})` : `${order.status}: ${order.reason?.code}`,
  );
}
