import { callData } from '../../../sdk/src/wallet.js';
import { orderTypedData, permitTypedData, type PermitStyle } from '../../../core/swap/typed-data.js';
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

const NOBODY: Address = `0x${'0'.repeat(40)}`;

/**
 * Everything that is signed stands in the program; of the server's answer it takes only nonces, a token's name, and of a market order a deadline and a
 * minimum within bounds. A signature over typed data of the server's could move whatever the token or Permit2 lets a signature move.
 */
function signedOrder(swap: SnippetSwap): string {
  const { url, deployment, sell, buy, units } = swap;
  const isLimit = swap.mode === 'limit';
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
    .replace('"VALID_TO"', `'$validTo'`);
  const { order, permits } = signedData(swap);
  return `# Needs bash, curl, and Node with viem (npm install viem), which signs with PRIVATE_KEY.
set -euo pipefail
# ${isLimit ? 'When the order ends' : 'The latest end of the order'}, Unix seconds.
validTo=$(($(date +%s) + ${isLimit ? swap.validForSec : MAX_VALID_SEC}))
from=$(node --input-type=module -e '
  import { privateKeyToAccount } from "viem/accounts";
  console.log(privateKeyToAccount(process.env.PRIVATE_KEY).address);')

quote=$(curl -sS --fail-with-body -X POST '${url}/api/v1/quote' -H 'content-type: application/json' \\
  -d '${body}')

# Signs nothing but what is written here: compare these addresses with what the operator published.
order=$(node --input-type=module -e '
  import { isDeepStrictEqual } from "node:util";
  import { privateKeyToAccount } from "viem/accounts";
  const order = ${order};
  const permits = ${permits};
  const account = privateKeyToAccount(process.env.PRIVATE_KEY);
  const [answer, validTo] = process.argv.slice(1);
  const { id, permit2, approval } = JSON.parse(answer);
  const whole = (text) => {
    if (!/^[0-9]{1,78}$/.test(text)) throw new Error("this is no whole number: " + text);
    return BigInt(text).toString();
  };
  const plain = (data) => JSON.parse(JSON.stringify(data).toLowerCase());
  const expectSame = (what, ours, theirs) => {
    if (!isDeepStrictEqual(plain(ours), plain(theirs))) throw new Error("this is another " + what + ": " + JSON.stringify(theirs));
  };
  const { nonce, deadline, witness } = permit2.typedData.message;
  Object.assign(order.message, { nonce: whole(nonce), deadline: ${isLimit ? 'validTo' : 'whole(deadline)'} });
  order.message.witness.recipient = account.address;
${isLimit ? '' : marketBounds(swap)}  expectSame("order", order, permit2.typedData);
  const body = { quoteId: id, clientOrderId: crypto.randomUUID() };
  if (approval.required) {
    if (approval.typedData === null) throw new Error("allow the token to Permit2 first, by a transaction");
    const permit = permits[approval.type];
    if (!Object.hasOwn(permits, approval.type)) throw new Error("this is another approval: " + approval.type);
    const { domain, message } = approval.typedData;
    for (const name of ["name", "version"]) {
      if (typeof domain[name] === "string") permit.domain[name] = domain[name];
      else delete permit.domain[name];
    }
    permit.types.EIP712Domain = permit.types.EIP712Domain.filter(({ name }) => name in permit.domain);
    permit.message.nonce = whole(message.nonce);
    permit.message["holder" in permit.message ? "holder" : "owner"] = account.address;
    permit.message["expiry" in permit.message ? "expiry" : "deadline"] = order.message.deadline;
    expectSame("approval", permit, approval.typedData);
    body.approvalSignature = await account.signTypedData(permit);
  }
  body.signature = await account.signTypedData(order);
  console.log(JSON.stringify(body));' "$quote" "$validTo")

# Its state from then on: GET ${url}/api/v1/orders/{orderId}
curl -sS --fail-with-body -X POST '${url}/api/v1/orders' -H 'content-type: application/json' -d "$order"
`;
}

/** A market order ends within an hour, whatever the server says. */
const MAX_VALID_SEC = 3_600;

const marketBounds = ({ minBuyUnits }: SnippetSwap): string =>
  `  const minAmountOut = (order.message.witness.minAmountOut = whole(witness.minAmountOut));
  if (BigInt(minAmountOut) < ${minBuyUnits}n) throw new Error("it may bring only " + minAmountOut);
  if (BigInt(order.message.deadline) > BigInt(validTo)) throw new Error("it may be executed until " + order.message.deadline);
`;

/** What is signed, as code; the program sets what depends on the account, the time and the quote. */
function signedData({ deployment, sell, buy, units, minBuyUnits }: SnippetSwap): { order: string; permits: string } {
  const { orderSettler, permit2 } = deployment.contracts;
  const [sellToken, spender] = [sell.address as Address, (permit2?.address ?? '') as Address];
  const chainId = deployment.chain_id;
  const order = orderTypedData(
    {
      ...{ sellToken, sellUnits: units, buyToken: buy.address as Address, minBuyUnits },
      ...{ nonce: 0n, validToSec: 0, receiver: NOBODY },
    },
    { chainId, permit2: spender, spender: (orderSettler?.address ?? '') as Address },
  );
  const permit = (style: PermitStyle) =>
    permitTypedData(
      style,
      { name: '', version: '', chainId, verifyingContract: sellToken },
      { owner: NOBODY, spender, nonce: 0n, deadlineSec: 0 },
    );
  return {
    order: objectCode(order),
    permits: `{\n    eip2612: ${objectCode(permit('eip2612'), 2)},\n    dai: ${objectCode(permit('dai'), 2)},\n  }`,
  };
}

/** An object with a line for each of its fields. */
const objectCode = (value: object, indent = 0): string => {
  const lines = Object.entries(value).map(
    ([name, field]) => `${' '.repeat(indent + 4)}${name}: ${JSON.stringify(field)},`,
  );
  return `{\n${lines.join('\n')}\n${' '.repeat(indent + 2)}}`;
};
