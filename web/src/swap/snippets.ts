/** The swap that is on the page as a program: with the SDK and viem or ethers, as a contract, and as requests. */
import { formatUnits } from '../../../core/amounts.js';
import type { Deployment } from '../market-context.js';
import type { Mode, Token } from './terms.js';

export interface SnippetSwap {
  url: string;
  deployment: Deployment;
  sell: Token;
  buy: Token;
  units: bigint;
  minBuyUnits: bigint;
  slippageBps: number;
  mode: Mode;
}

export const SNIPPETS = ['viem', 'ethers', 'Solidity', 'curl'] as const;
export type SnippetName = (typeof SNIPPETS)[number];

export function snippet(name: SnippetName, swap: SnippetSwap): string {
  switch (name) {
    case 'viem':
      return viem(swap);
    case 'ethers':
      return ethers(swap);
    case 'Solidity':
      return solidity(swap);
    case 'curl':
      return curl(swap);
  }
}

/** Trusted by the reader, not by the server: they are to be compared with what the operator published. */
function contractsCode({ deployment, sell, buy }: SnippetSwap): string {
  const { contracts, chain_id: chainId } = deployment;
  const named = ['custodian', 'entrypoint', 'orderSettler', 'permit2'].flatMap((name) => {
    const contract = contracts[name];
    return contract === undefined ? [] : [`  ${name}: '${contract.address}',`];
  });
  const tokens = [sell, buy].map(
    ({ symbol, address, decimals }) =>
      `    ${JSON.stringify(symbol)}: { address: '${address}', decimals: ${decimals} },`,
  );
  return [
    '// Compare these with what the operator published.',
    'const contracts = {',
    `  chainId: ${chainId},`,
    ...named,
    '  tokens: {',
    ...tokens,
    '  },',
    '};',
  ].join('\n');
}

function callCode({ sell, buy, units, minBuyUnits, slippageBps, mode }: SnippetSwap): string {
  const asked = [
    `sell: ${JSON.stringify(sell.symbol)}`,
    `buy: ${JSON.stringify(buy.symbol)}`,
    `amount: '${formatUnits(units, sell.decimals)}'`,
    `slippageBps: ${slippageBps}`,
    `minBuy: '${formatUnits(minBuyUnits, buy.decimals)}'`,
  ].join(', ');
  const amount = `'${formatUnits(units, sell.decimals)}'`;
  return mode === 'direct'
    ? `const hash = await taker.swap({ ${asked} });`
    : [
        `await taker.allowGasless(${JSON.stringify(sell.symbol)}, ${amount}); // once`,
        `const order = await taker.swapGasless({ ${asked} });`,
      ].join('\n');
}

const rpcOf = ({ deployment }: SnippetSwap): string => deployment.rpc_url ?? 'https://…';

function viem(swap: SnippetSwap): string {
  return `import { createPublicClient, createWalletClient, defineChain, http } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { createTakerClient } from '@curvebook/sdk/taker';
import { fromViem } from '@curvebook/sdk/viem';

const transport = http('${rpcOf(swap)}');
const chain = defineChain({
  id: ${swap.deployment.chain_id},
  name: 'chain',
  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  rpcUrls: { default: { http: ['${rpcOf(swap)}'] } },
});
const account = privateKeyToAccount(process.env.PRIVATE_KEY);
const wallet = createWalletClient({ account, chain, transport });
const { signer, reader } = fromViem(wallet, createPublicClient({ chain, transport }));
${contractsCode(swap)}
const taker = createTakerClient({ url: '${swap.url}', signer, reader, contracts });
${callCode(swap)}
`;
}

function ethers(swap: SnippetSwap): string {
  return `import { JsonRpcProvider, Wallet } from 'ethers';
import { createTakerClient } from '@curvebook/sdk/taker';
import { fromEthers } from '@curvebook/sdk/ethers';

const wallet = new Wallet(process.env.PRIVATE_KEY, new JsonRpcProvider('${rpcOf(swap)}'));
const { signer, reader } = await fromEthers(wallet);
${contractsCode(swap)}
const taker = createTakerClient({ url: '${swap.url}', signer, reader, contracts });
${callCode(swap)}
`;
}

function solidity({ deployment, sell, buy, units, minBuyUnits }: SnippetSwap): string {
  return `// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

interface IERC20 {
    function approve(address spender, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

interface IEntrypoint {
    function swap(
        address tokenIn,
        address tokenOut,
        uint256 amountIn,
        uint256 minAmountOut,
        address recipient,
        uint256 deadline
    ) external returns (uint256 amountOut);
}

/// Sells ${formatUnits(units, sell.decimals)} ${ascii(sell.symbol)} of the caller for ${ascii(buy.symbol)}.
contract SwapOnCurvebook {
    function swap() external returns (uint256 amountOut) {
        address tokenIn = address(bytes20(hex"${sell.address.slice(2)}"));
        address tokenOut = address(bytes20(hex"${buy.address.slice(2)}"));
        address entrypoint = address(bytes20(hex"${(deployment.contracts.entrypoint?.address ?? '').slice(2)}"));
        IERC20(tokenIn).transferFrom(msg.sender, address(this), ${units});
        IERC20(tokenIn).approve(entrypoint, ${units});
        amountOut = IEntrypoint(entrypoint).swap(tokenIn, tokenOut, ${units}, ${minBuyUnits}, msg.sender, block.timestamp);
    }
}
`;
}

/** Symbols are whatever a token says: none of them ends a comment or a line. */
const ascii = (symbol: string): string => symbol.replace(/[^A-Za-z0-9.$_-]/g, '?').slice(0, 20);

function curl({ url, deployment, sell, buy, units, slippageBps }: SnippetSwap): string {
  const query = `chainId=${deployment.chain_id}&sellToken=${sell.address}&buyToken=${buy.address}&kind=sell&sellAmountBeforeFee=${units}`;
  const body = {
    chainId: deployment.chain_id,
    from: '0xYOUR_ADDRESS',
    sellToken: sell.address,
    buyToken: buy.address,
    kind: 'sell',
    sellAmountBeforeFee: units.toString(),
    slippageBps,
    signingScheme: 'eip712',
  };
  return `# A price, without a wallet:
curl '${url}/api/v1/price?${query}&slippageBps=${slippageBps}'

# A gasless swap: a quote, a signature of its permit2.typedData, and
curl -X POST '${url}/api/v1/quote' -H 'content-type: application/json' \\
  -d '${JSON.stringify(body)}'
curl -X POST '${url}/api/v1/orders' -H 'content-type: application/json' \\
  -d '{"quoteId":"…","signature":"0x…","clientOrderId":"…"}'
`;
}
