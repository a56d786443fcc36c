/** What the buttons of a sandbox do as its accounts: the requests that a client sends, one after the other. Loaded when one is pressed. */
import { createMakerClient } from '../../sdk/src/maker.js';
import { createTakerClient } from '../../sdk/src/taker.js';
import type { ReadClient } from '../../sdk/src/index.js';
import type { Deployment } from './market-context.js';
import { exact, shown, text } from './numbers.js';
import { keyProvider } from './wallet/key-provider.js';
import { createRpc } from './wallet/provider.js';
import type { SandboxAccount } from './wallet/session.js';
import { readerOf, signerOf } from './wallet/signer.js';

/** What was asked of whom, and what came of it. */
export interface Done {
  request: string;
  answer: string;
  /** Where in the console its result is shown, and the fill that it was. */
  place?: string;
  fillSeq?: number;
}

interface Acting {
  read: ReadClient;
  deployment: Deployment;
  /** The base token of the market, as the deployment calls it. */
  base: string;
  quote: string;
  pair: string;
  accounts: readonly SandboxAccount[];
  tell(done: Done): void;
}

const CREDITED_MS = 60_000;
const LOOK_MS = 500;
/** In base tokens. A maker sells a part of what it brings. */
const DEPOSIT = '5';
const SIZE = '0.5';

function clientOptions({ read, deployment, accounts }: Acting, role: string) {
  const account = accounts.find((one) => one.role === role);
  if (account === undefined) throw new Error(`this sandbox has no account ${role}`);
  const rpc = deployment.rpc_url === null ? null : createRpc(deployment.rpc_url);
  const provider = keyProvider(account.private_key, rpc);
  const signer = signerOf(provider, provider.address, deployment);
  return { url: read.url, signer, reader: readerOf(provider), contracts: 'server' as const };
}

/** taker2 sells some of the base token to the curve, in a transaction of its own, and the fill is looked for. */
export async function swapAsTaker2(acting: Acting, amount: string): Promise<void> {
  const { read, base, quote, pair, tell } = acting;
  const options = clientOptions(acting, 'taker2');
  const hash = await createTakerClient(options).swap({ sell: base, buy: quote, amount });
  const request = `entrypoint.swap(${base}, ${quote}, ${amount}, …), sent by taker2`;
  for (const endMs = Date.now() + CREDITED_MS; Date.now() < endMs;) {
    const path = { address: options.signer.address };
    const { swaps } = await read.get('/v0/takers/{address}/swaps', { path, query: { limit: 20 } });
    const found = swaps.find(({ tx_hash }) => tx_hash === hash);
    if (found !== undefined) {
      const { fill_seq: fillSeq } = found;
      const answer = `taker2 got ${shown(found.amount_out)} ${quote}, in fill ${fillSeq ?? ''}`;
      const place = `/fills/${encodeURIComponent(pair)}/${fillSeq ?? ''}`;
      return tell({ request, answer, place, ...(fillSeq === null ? {} : { fillSeq }) });
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  throw new Error(`the swap ${hash} is mined, and the ledger has not read it after a minute`);
}

/** maker3 is approved and brings tokens, unless it is and has, and sells some of them at the best ask. */
export async function orderAsMaker3(acting: Acting, approve: (maker: string) => Promise<string>): Promise<void> {
  const { read, base, pair, tell } = acting;
  const options = clientOptions(acting, 'maker3');
  const { address } = options.signer;
  const client = createMakerClient(options);
  const { approval } = await read.get('/v0/makers/{maker}/account', { path: { maker: address } });
  if (approval !== 'approved') tell({ request: await approve(address), answer: 'maker3 may quote' });
  const available = async (): Promise<string> => {
    const { ledger } = await read.limits(address);
    return ledger.balances.find(({ token }) => token === base)?.available ?? '0';
  };
  const hasSome = async (): Promise<boolean> => /^[1-9]/.test(await available());
  if (!(await hasSome())) {
    await client.deposit(base, DEPOSIT);
    for (const endMs = Date.now() + CREDITED_MS; !(await hasSome());) {
      if (Date.now() > endMs) throw new Error('the deposit is mined, and not credited after a minute');
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    tell({
      request: `custodian.deposit(${base}, ${DEPOSIT})`,
      answer: `maker3 has ${await available()} ${base} to quote`,
    });
  }
  const { levels } = await read.get('/v0/book/{pair}', { path: { pair } });
  const market = acting.deployment.markets.find((one) => one.pair === pair);
  const ticks = levels.asks[0]?.[0];
  if (ticks === undefined || market === undefined) throw new Error('the book has no ask to join');
  const tick = exact(market.tick_size);
  const price = text({ digits: tick.digits * BigInt(ticks), scale: tick.scale });
  const [result] = await client.order([{ pair, side: 'sell', price, size: SIZE }]);
  if (result?.error) throw result.error;
  tell({
    request: `POST /exchange {"type": "order"}: sell ${SIZE} ${base} at ${price}, signed by maker3`,
    answer: `order ${result?.oid ?? ''} rests in the book, beside the best ask`,
  });
}
