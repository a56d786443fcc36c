/**
 * One gasless swap with viem: quote, `signTypedData`, submit, wait.
 *
 *   node --import tsx examples/gasless-viem.ts [manifest] [role] [sell symbol] [buy symbol] [amount]
 */
import { randomUUID } from 'node:crypto';
import { createPublicClient, defineChain, erc20Abi, formatUnits, http, parseUnits } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { accountOf, readManifest, stopSignal } from './support.js';
import { isFresh, swapClient } from './swap-client.js';

const [
  manifestPath = '.curvebook/sandbox.json',
  role = 'taker3',
  sellSymbol = 'WETH',
  buySymbol = 'USDC',
  amount = '0.5',
] = process.argv.slice(2);
const manifest = readManifest(manifestPath);
const account = privateKeyToAccount(accountOf(manifest, role).privateKey as `0x${string}`);
const chain = defineChain({
  id: manifest.chainId,
  name: 'Curvebook chain',
  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  rpcUrls: { default: { http: [manifest.rpcUrl] } },
});
const client = createPublicClient({ chain, transport: http() });
const api = swapClient(manifest);

const tokenOf = (symbol: string) => {
  const token = manifest.tokens.find((one) => one.symbol === symbol);
  if (token === undefined) throw new Error(`The manifest has no token ${symbol}`);
  return token;
};
const [sell, buy] = [tokenOf(sellSymbol), tokenOf(buySymbol)];

const quote = await api.quote({
  chainId: manifest.chainId,
  from: account.address,
  sellToken: sell.address,
  buyToken: buy.address,
  kind: 'sell',
  sellAmountBeforeFee: parseUnits(amount, sell.decimals).toString(),
  signingScheme: 'eip712',
});
const { typedData, allowanceTarget } = quote.permit2;
const allowance = await client.readContract({
  address: sell.address as `0x${string}`,
  abi: erc20Abi,
  functionName: 'allowance',
  args: [account.address, allowanceTarget as `0x${string}`],
});
if (allowance < BigInt(quote.quote.sellAmount))
  throw new Error(`Approve ${sellSymbol} to Permit2 (${allowanceTarget}) first`);
if (!isFresh(quote)) throw new Error('The quote is about to expire; ask for another one');

const signature = await account.signTypedData(typedData);
const { orderId } = await api.submit(quote.id, signature, randomUUID());
const order = await api.ended(orderId, stopSignal());
console.log(
  order.status === 'filled'
    ? `sold ${formatUnits(BigInt(order.executedSellAmount), sell.decimals)} ${sellSymbol} for ` +
        `${formatUnits(BigInt(order.executedBuyAmount), buy.decimals)} ${buySymbol} in ${order.txHash}`
    : `${order.status}: ${order.reason?.message}`,
);
process.exitCode = order.status === 'filled' ? 0 : 1;
