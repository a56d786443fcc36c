/** The swap that is on the page as a program that runs as it is: with the SDK and viem or ethers, as a contract, and as requests. */
import { formatUnits } from '../../../core/amounts.js';
import { shell } from './snippets-shell.js';
import { solidity } from './snippets-solidity.js';
import type { SnippetSwap } from './snippet-swap.js';

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
      return shell(swap);
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

function callCode({ sell, buy, units, minBuyUnits, slippageBps, validForSec, mode }: SnippetSwap): string {
  const amount = `'${formatUnits(units, sell.decimals)}'`;
  const asked = [
    `sell: ${JSON.stringify(sell.symbol)}`,
    `buy: ${JSON.stringify(buy.symbol)}`,
    `amount: ${amount}`,
    `minBuy: '${formatUnits(minBuyUnits, buy.decimals)}'`,
    mode === 'limit' ? `validForSec: ${validForSec}` : `slippageBps: ${slippageBps}`,
  ].join(', ');
  if (mode === 'direct') return `console.log('mined:', await taker.swap({ ${asked} }));`;
  const [call, told] =
    mode === 'limit'
      ? ['placeLimit', "console.log('it waits, as order', result);"]
      : ['swapGasless', 'console.log(result.status, result.txHash ?? result.reason);'];
  return `const signed = () => taker.${call}({ ${asked} });
const result = await signed().catch(async (error) => {
  if (error.code !== 'APPROVAL_NEEDED') throw error;
  // This token takes no approval by a signature: a transaction, once.
  await taker.allowGasless(${JSON.stringify(sell.symbol)}, ${amount});
  return signed();
});
${told}`;
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
