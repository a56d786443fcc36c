/**
 * One gasless swap of a wallet or a page that lives on a part of it: a partner's fee and a hash, both of which the owner signs.
 *
 *   node --import tsx examples/partner-swap.ts [manifest] [role] [partner] [bps] [sell symbol] [buy symbol] [amount]
 */
import { randomUUID } from 'node:crypto';
import { Wallet, formatUnits, id, parseUnits } from 'ethers';
import { accountOf, readManifest, stopSignal } from './support.js';
import { isFresh, swapClient, type TypedData } from './swap-client.js';

const [
  manifestPath = '.curvebook/sandbox.json',
  role = 'taker3',
  partner = '0x00000000000000000000000000000000009a47e4',
  bps = '25',
  sellSymbol = 'WETH',
  buySymbol = 'USDC',
  amount = '0.5',
] = process.argv.slice(2);
const manifest = readManifest(manifestPath);
const owner = new Wallet(accountOf(manifest, role).privateKey);
const api = swapClient(manifest);
/** Whatever tells this client's orders from others: nobody but the client knows what it is the hash of. */
const appData = id(JSON.stringify({ appCode: 'partner-swap', version: 1 }));

const tokenOf = (symbol: string) => {
  const token = manifest.tokens.find((one) => one.symbol === symbol);
  if (token === undefined) throw new Error(`The manifest has no token ${symbol}`);
  return token;
};
const [sell, buy] = [tokenOf(sellSymbol), tokenOf(buySymbol)];
const bought = (units: string | bigint): string => `${formatUnits(units, buy.decimals)} ${buySymbol}`;

/** ethers adds the type of the domain itself and refuses to be told. */
function signed({ domain, types, message }: Omit<TypedData, 'primaryType'>): Promise<string> {
  const { EIP712Domain: _, ...rest } = types;
  return owner.signTypedData(domain, rest, message);
}

const quote = await api.quote({
  chainId: manifest.chainId,
  from: owner.address,
  sellToken: sell.address,
  buyToken: buy.address,
  kind: 'sell',
  sellAmountBeforeFee: parseUnits(amount, sell.decimals).toString(),
  signingScheme: 'eip712',
  partner,
  partnerBps: Number.parseInt(bps, 10),
  appData,
});
// What the owner signs is what the contract pays, whatever the answer says beside it.
const { witness } = quote.permit2.typedData.message as { witness: Record<string, string> };
const asked = [partner.toLowerCase(), bps, appData].join();
if ([witness['partner']?.toLowerCase(), witness['partnerBps'], witness['appData']].join() !== asked)
  throw new Error('The quote has another partner, another part or another hash than were asked for');
console.log(
  `${bought(quote.quote.buyAmount)} for the owner, ${bought(quote.partnerFee?.amount ?? '0')} for the partner`,
);
if (!isFresh(quote)) throw new Error('The quote is about to expire; ask for another one');

const { approval } = quote;
if (approval.required && approval.typedData === null)
  throw new Error(`Approve ${sellSymbol} to Permit2 (${quote.permit2.allowanceTarget}) first`);
const signature = await signed(quote.permit2.typedData);
const approvalSignature = approval.typedData === null ? {} : { approvalSignature: await signed(approval.typedData) };
const { orderId } = await api.submit(quote.id, signature, randomUUID(), approvalSignature);
const order = await api.ended(orderId, stopSignal());
console.log(
  order.status === 'filled'
    ? `sold ${formatUnits(order.executedSellAmount, sell.decimals)} ${sellSymbol} for ${bought(order.executedBuyAmount)}, ` +
        `and ${bought(order.partnerFeeAmount ?? '0')} for ${partner} in ${order.txHash}`
    : `${order.status}: ${order.reason?.message}`,
);
process.exitCode = order.status === 'filled' ? 0 : 1;
