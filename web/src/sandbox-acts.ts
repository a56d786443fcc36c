/** What the buttons of a sandbox do as its accounts: the requests that a client sends, one after the other. Loaded when one is pressed. */
import { createMakerClient } from '../../sdk/src/maker.js';
import type { ReadClient } from '../../sdk/src/index.js';
import type { Deployment } from './market-context.js';
import { exact, text } from './numbers.js';
import { keyProvider } from './wallet/key-provider.js';
import { createRpc } from './wallet/provider.js';
import type { SandboxAccount } from './wallet/session.js';
import { readerOf, signerOf } from './wallet/signer.js';

/** What was asked of whom, and what came of it. */
export interface Done {
  request: string;
  answer: string;
}

interface Acting {
  read: ReadClient;
  deployment: Deployment;
  /** The base token of the market, as the deployment calls it. */
  base: string;
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
