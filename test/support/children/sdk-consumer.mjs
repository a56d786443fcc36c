/** Uses the packages in a project without any other files; a test runs it there, with `ethers` or `viem` installed. */
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { createReadClient } from '@curvebook/sdk';
import { createMakerClient } from '@curvebook/sdk/maker';
import { createStream, followOrders } from '@curvebook/sdk/stream';
import { createTakerClient } from '@curvebook/sdk/taker';
import { reconcile, rederive, verifyCurve } from '@curvebook/sdk/verify';
import { CONTRACT_ABIS, entrypointAbi } from '@curvebook/contracts';

const [library, url, manifestPath] = process.argv.slice(2);
const manifest = JSON.parse(readFileSync(manifestPath, 'utf8'));
const keyOf = (role) => manifest.accounts.find((account) => account.role === role).privateKey;
const { custodian, entrypoint, orderSettler, permit2 } = manifest.contracts;
const tokens = Object.fromEntries(
  manifest.tokens.map(({ symbol, address, decimals }) => [symbol, { address, decimals }]),
);
const contracts = { chainId: manifest.chainId, custodian, entrypoint, orderSettler, permit2, tokens };

async function walletOf(role) {
  if (library === 'ethers') {
    const { JsonRpcProvider, NonceManager, Wallet } = await import('ethers');
    const { fromEthers } = await import('@curvebook/sdk/ethers');
    const provider = new JsonRpcProvider(manifest.rpcUrl, undefined, { pollingInterval: 100, cacheTimeout: -1 });
    return fromEthers(new NonceManager(new Wallet(keyOf(role), provider)));
  }
  const { createPublicClient, createWalletClient, defineChain, http } = await import('viem');
  const { privateKeyToAccount } = await import('viem/accounts');
  const { fromViem } = await import('@curvebook/sdk/viem');
  const nativeCurrency = { name: 'Ether', symbol: 'ETH', decimals: 18 };
  const rpcUrls = { default: { http: [manifest.rpcUrl] } };
  const chain = defineChain({ id: manifest.chainId, name: 'sandbox', nativeCurrency, rpcUrls });
  const transport = http();
  const wallet = createWalletClient({ account: privateKeyToAccount(keyOf(role)), chain, transport });
  return fromViem(wallet, createPublicClient({ chain, transport, pollingInterval: 100 }));
}

async function until(what, check) {
  for (const endMs = Date.now() + 60_000; Date.now() < endMs;) {
    const value = await check();
    if (value !== false && value !== null) return value;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`no ${what} within a minute`);
}

const read = createReadClient(url);
const deployment = await read.deployment();
assert.equal(deployment.contracts.entrypoint.abi.length, entrypointAbi.length);
assert.equal(Object.keys(CONTRACT_ABIS).length, 7);
const pair = deployment.markets[0].pair;

const makerWallet = await walletOf('maker1');
const maker = createMakerClient({ url, ...makerWallet, contracts });
const stranger = createMakerClient({ url, ...makerWallet, contracts: { ...contracts, custodian: entrypoint } });
await assert.rejects(stranger.deposit('WETH', '1'), /names .* custodian/);

const stream = createStream(url);
const fills = [];
let state = { isComplete: false, open: new Map() };
stream.subscribe({ type: 'fills', pair }, (data) => fills.push(...data.fills));
const curves = [];
stream.subscribe({ type: 'curves', pair }, (data) => curves.push(data.curve_seq));
followOrders(stream, read, makerWallet.signer.address, { onOrders: (next) => (state = next) });
await until('orders', () => state.isComplete);

const cloid = `0x${'5'.repeat(31)}${library === 'viem' ? '1' : '2'}`;
const placed = await maker.order([
  { pair, side: 'sell', price: '2500.5', size: '1', cloid },
  { pair, side: 'buy', price: '2499.5', size: '1' },
  { pair, side: 'buy', price: '9999', size: '1' },
]);
assert.equal(placed[2].error.code, 'post_only');
await assert.rejects(maker.order([{ pair, side: 'buy', price: '2499.555', size: '1' }]), /multiple/);
await until('the orders on the stream', () => [0, 1].every((i) => state.open.has(placed[i].oid)));
const modified = await maker.modify(placed[1].oid, { pair, side: 'buy', price: '2499', size: '1' });
assert.equal(modified[0].error, null);
await maker.scheduleCancel(Date.now() + 600_000);
assert.notEqual(
  (await read.get('/v0/makers/{maker}/account', { path: { maker: makerWallet.signer.address } })).scheduled_cancel_ms,
  null,
);

const taker = createTakerClient({ url, ...(await walletOf('taker1')), contracts });
const offer = { sell: 'USDC', buy: 'WETH', amount: '500' };
await until('a quote', async () => (await taker.price(offer)) > 0n);
await taker.swap(offer);
const gasless = createTakerClient({ url, ...(await walletOf('taker3')), contracts });
const signed = { ...offer, amount: '300', slippageBps: 100, maxFee: '15' };
const robbed = createTakerClient({
  url,
  ...(await walletOf('taker3')),
  contracts,
  fetch: async (path, init) => {
    const answer = await fetch(path, init);
    if (!path.includes('/api/v1/quote')) return answer;
    const body = await answer.json();
    return new Response(JSON.stringify({ ...body, quote: { ...body.quote, buyAmount: '1', minBuyAmount: '1' } }));
  },
});
await assert.rejects(robbed.swapGasless(signed), { code: 'BAD_QUOTE' });
const order = await gasless.swapGasless(signed);
assert.equal(order.status, 'filled', JSON.stringify(order.reason));

const count = library === 'viem' ? 4 : 2;
await until('both fills on the stream', () => fills.length >= count);
assert.deepEqual(
  fills.map(({ fill_seq }) => fill_seq),
  Array.from({ length: fills.length }, (_, i) => i + 1),
);
assert.ok(curves.length > 0);
for (const fill of fills.slice(-2)) {
  const decomposition = await read.decomposition(pair, fill.fill_seq);
  assert.deepEqual(reconcile(deployment, fill, decomposition), []);
  const leg = decomposition.legs[0];
  const wrong = { ...decomposition, legs: [{ ...leg, quote_amount: '1' }, ...decomposition.legs.slice(1)] };
  assert.notDeepEqual(reconcile(deployment, fill, wrong), []);
  await maker.order([{ pair, side: 'buy', price: '2400', size: '1' }]);
  const problems = await until('the book of the curve', () =>
    rederive(read, pair, fill.fill_seq).catch((error) => {
      if (error.code === 'NO_BOOK') return null;
      throw error;
    }),
  );
  assert.deepEqual(problems, []);
  assert.deepEqual(verifyCurve(deployment, await read.curve(pair, fill.curve_seq)), []);
}

const holder = await walletOf('maker3');
const depositor = createMakerClient({ url, ...holder, contracts });
const creditOf = async () =>
  (await read.limits(holder.signer.address)).ledger.balances.find(({ token }) => token === 'WETH').balance;
const before = await creditOf();
await depositor.deposit('WETH', '1.5');
await until('the credit', async () => (await creditOf()) !== before);
await maker.requestWithdraw('WETH', '0.5');
await assert.rejects(maker.executeWithdraw('USDC'));
await until('a proof', () =>
  maker.proof().then(
    (list) => list.length === 2,
    (error) => {
      if (error.code === 'NOT_READY') return false;
      throw error;
    },
  ),
);
const proof = await read.proof(makerWallet.signer.address);
proof.balances[0].leaf[2] = `${BigInt(proof.balances[0].leaf[2]) + 1n}`;
const lying = createMakerClient({
  url,
  ...makerWallet,
  fetch: async (path, init) => {
    const answer = await fetch(path, init);
    return path.includes('/proof') ? new Response(JSON.stringify(proof)) : answer;
  },
});
await assert.rejects(lying.proof(), { code: 'BAD_PROOF' });

const cancelled = await maker.cancelByCloid([{ pair, cloid }]);
assert.ok(cancelled[0].error === null || cancelled[0].error.code === 'order_not_found');
const agent = `0x${(library === 'viem' ? 'a1' : 'a2').repeat(20)}`;
await maker.approveAgent(agent, library);
const { agents } = await read.get('/v0/makers/{maker}/account', { path: { maker: makerWallet.signer.address } });
assert.ok(agents.some(({ address }) => address === agent));
stream.close();
console.log(JSON.stringify({ library, fills: fills.length, curves: curves.length }));
process.exit(0);
