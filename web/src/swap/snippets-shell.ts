import { callData } from '../../../sdk/src/wallet.js';
import type { Address } from '../../../core/types.js';
import type { SnippetSwap } from './snippet-swap.js';

/** Requests by curl. What they bring is signed by a key, which curl can't: Node does it, once it has compared what it is to sign. */
export function shell(swap: SnippetSwap): string {
  return swap.mode === 'direct' ? priceOnly(swap) : signedOrder(swap);
}

/** A transaction takes more than requests: its price, from the server and from the contract. */
function priceOnly({ url, deployment, sell, buy, units, slippageBps }: SnippetSwap): string {
  const query = `chainId=${deployment.chain_id}&sellToken=${sell.address}&buyToken=${buy.address}&kind=sell&sellAmountBeforeFee=${units}&slippageBps=${slippageBps}`;
  const args = [sell.address as Address, buy.address as Address, units];
  const call = {
    to: deployment.contracts.entrypoint?.address ?? '',
    data: callData('quote(address,address,uint256)', args),
  };
  const asked = { jsonrpc: '2.0', id: 1, method: 'eth_call', params: [call, 'latest'] };
  return `# The best price by any route, without a wallet:
curl -sS --fail-with-body '${url}/api/v1/price?${query}'
# What the contract pays now: base units, as a word in hex. The swap itself is a transaction: see the other languages.
curl -sS --fail-with-body '${deployment.rpc_url ?? 'https://…'}' -H 'content-type: application/json' \\
  -d '${JSON.stringify(asked)}'
`;
}

function signedOrder({ url, deployment, sell, buy, units, ...swap }: SnippetSwap): string {
  const isLimit = swap.mode === 'limit';
  const { orderSettler, permit2 } = deployment.contracts;
  const body = JSON.stringify({
    chainId: deployment.chain_id,
    from: 'FROM',
    sellToken: sell.address,
    buyToken: buy.address,
    kind: 'sell',
    sellAmountBeforeFee: units.toString(),
    signingScheme: 'eip712',
    ...(isLimit
      ? { orderClass: 'limit', minBuyAmount: swap.minBuyUnits.toString(), validTo: 'VALID_TO' }
      : { slippageBps: swap.slippageBps }),
  })
    .replace('"FROM"', `"'"$from"'"`)
    .replace('"VALID_TO"', `'$(($(date +%s) + ${swap.validForSec}))'`);
  const wanted = [permit2?.address, orderSettler?.address, sell.address, units, buy.address];
  return `# Needs bash, curl, and Node with viem (npm install viem), which signs with PRIVATE_KEY.
set -euo pipefail
from=$(node --input-type=module -e '
  import { privateKeyToAccount } from "viem/accounts";
  console.log(privateKeyToAccount(process.env.PRIVATE_KEY).address);')

quote=$(curl -sS --fail-with-body -X POST '${url}/api/v1/quote' -H 'content-type: application/json' \\
  -d '${body}')

# Signs nothing but what is asked for: compare these addresses with what the operator published.
order=$(node --input-type=module -e '
  import { privateKeyToAccount } from "viem/accounts";
  const account = privateKeyToAccount(process.env.PRIVATE_KEY);
  const { id, permit2, approval } = JSON.parse(process.argv[1]);
  const { domain, message } = permit2.typedData;
  const { permitted, spender, witness } = message;
  const asked = [domain.verifyingContract, spender, permitted.token, permitted.amount, witness.tokenOut, witness.recipient];
  const wanted = [${wanted.map((one) => `"${one ?? ''}"`).join(', ')}, account.address];
  if (asked.join().toLowerCase() !== wanted.join().toLowerCase()) throw new Error("this is another order: " + asked.join());
  if (BigInt(witness.minAmountOut) < ${swap.minBuyUnits}n) throw new Error("it may bring only " + witness.minAmountOut);
  const order = { quoteId: id, clientOrderId: crypto.randomUUID() };
  if (approval.required) {
    if (approval.typedData === null) throw new Error("allow the token to Permit2 first, by a transaction");
    const { domain: token, message: allowed } = approval.typedData;
    if ([token.verifyingContract, allowed.spender].join().toLowerCase() !== [wanted[2], wanted[0]].join().toLowerCase())
      throw new Error("this approves somebody else");
    order.approvalSignature = await account.signTypedData(approval.typedData);
  }
  order.signature = await account.signTypedData(permit2.typedData);
  console.log(JSON.stringify(order));' "$quote")

# Its state from then on: GET ${url}/api/v1/orders/{orderId}
curl -sS --fail-with-body -X POST '${url}/api/v1/orders' -H 'content-type: application/json' -d "$order"
`;
}
