/** Makers who place and cancel all the time, a taker, and the record of what they were told, which is held against the order log. */
import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Contract, MaxUint256, Wallet } from 'ethers';
import { until } from '../../test/support/stack.js';
import { FIRST_ASSET } from '../../test/support/trading.js';
import { signBody } from '../../test/support/nodes/edges.js';
import { Entrypoint__factory } from '../../typechain-types/factories/Entrypoint__factory.js';
import type { Deployment, Member } from './deployment.js';
import type { Acknowledged } from './summary.js';

/** How long a client waits for an answer before it sends the same to another server. */
const PATIENCE_MS = 1_500;
const PAUSE_MS = 150;
const TURNS = 40;
/** Longer than anything of ours waits, so that a late acknowledgement is heard, too. */
const PROBE_MS = 15_000;
const PROBE_EVERY_MS = 100;
const SWAP_EVERY_MS = 5_000;

type Body = ReturnType<typeof signBody>;

export interface Clients {
  /** Everything acknowledged so far. */
  readonly acknowledged: readonly Acknowledged[];
  /** Refusals and unavailability, by what was said, and how often. */
  readonly said: ReadonlyMap<string, number>;
  /** Seconds from `fromMs` (of `performance.now`) to the first acknowledgement of an order that was sent since, over one of these servers. */
  firstOrder(servers: readonly Member[], fromMs: number, limitMs: number): Promise<number>;
  /** Sends an order to a process from its own place, as a client at its side of a cut would, and records what it says. */
  orderInside(member: Member): Promise<void>;
  /** Swaps that were mined. */
  swaps(): number;
  stop(): Promise<void>;
}

export async function startClients(deployment: Deployment): Promise<Clients> {
  const { manifest, provider } = deployment;
  const keyOf = (role: string): string => manifest.accounts.find((one) => one.role === role)!.privateKey;
  const acknowledged: Acknowledged[] = [];
  const said = new Map<string, number>();
  const open: number[] = [];
  const stopping = new AbortController();
  const { signal } = stopping;
  let price = 1_000;
  let swaps = 0;

  function hear(text: string): void {
    const kind = text.slice(0, 100).replaceAll(/\d{4,}/g, '…');
    said.set(kind, (said.get(kind) ?? 0) + 1);
  }

  function order(role: string): { body: Body; signer: string } {
    price = price >= 1_400 ? 1_000 : price + 1;
    const one = { a: FIRST_ASSET, b: true, p: `${price}`, s: '0.01', r: false, t: { limit: { tif: 'Gtc' } } };
    return { body: signBody({ type: 'order', orders: [one], grouping: 'na' }, keyOf(role)), signer: addressOf(role) };
  }

  const addressOf = (role: string): string => manifest.accounts.find((one) => one.role === role)!.address.toLowerCase();

  /** Whether the answer acknowledges it; then it is recorded. */
  function record({ body, signer }: { body: Body; signer: string }, text: string, server: string): boolean {
    const oid = /"resting":\{"oid":(\d+)/.exec(text)?.[1];
    if (oid === undefined && !/"status":"ok".*"success"/.test(text)) {
      hear(text);
      return false;
    }
    const number = oid === undefined ? null : Number.parseInt(oid, 10);
    acknowledged.push({ signer, nonce: body.nonce, oid: number, server, atMs: Date.now() });
    if (number !== null && signer === addressOf('maker1')) open.push(number);
    return true;
  }

  async function post(url: string, body: Body, timeoutMs: number): Promise<string> {
    const response = await fetch(`${url}/exchange`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json' },
      signal: AbortSignal.timeout(timeoutMs),
    });
    return response.text();
  }

  /** The same request to one server after the other, until one says that it is stored. */
  async function send(own: { body: Body; signer: string }, servers: readonly Member[]): Promise<void> {
    for (let turn = 0; turn < TURNS && !(signal.aborted && turn > 4); turn += 1) {
      const server = servers[turn % servers.length]!;
      const text = await post(server.url, own.body, PATIENCE_MS).catch(() => null);
      if (text !== null && record(own, text, server.name)) return;
      // A gateway does not repeat what it answered to a nonce; that it is known, it says.
      if (text?.includes('nonce') === true) return;
      await delay(PAUSE_MS);
    }
  }

  async function make(client: number): Promise<void> {
    const [edges, gateways] = [deployment.members('edge'), deployment.members('gateway')];
    const all = [...edges, ...gateways];
    const servers = all.map((_, index) => all[(index + client) % all.length]!);
    while (!signal.aborted) {
      await send(order('maker1'), servers);
      await delay(PAUSE_MS);
      const cancels = open.splice(0, 10).map((o) => ({ a: FIRST_ASSET, o }));
      if (cancels.length > 0)
        await send(
          { body: signBody({ type: 'cancel', cancels }, keyOf('maker1')), signer: addressOf('maker1') },
          servers,
        );
      await delay(PAUSE_MS);
    }
  }

  /** Both sides near the market, large enough for every swap of a long run. */
  async function quote(): Promise<void> {
    const sides = [2_499, 2_498, 2_497].map((bid) => [`${bid}`, `${5_000 - bid}`] as const);
    const orders = sides.flatMap((pair) =>
      pair.map((p, index) => ({
        a: FIRST_ASSET,
        b: index === 0,
        p,
        s: '10',
        r: false,
        t: { limit: { tif: 'Gtc' as const } },
      })),
    );
    const body = signBody({ type: 'order', orders, grouping: 'na' }, keyOf('maker2'));
    const text = await post(deployment.active('gateway').url, body, PROBE_MS);
    if (!text.includes('resting')) throw new Error(`the quotes were refused: ${text}`);
  }

  async function take(): Promise<void> {
    const wallet = new Wallet(keyOf('taker1'), provider);
    const entrypoint = Entrypoint__factory.connect(manifest.contracts.entrypoint, wallet);
    const [weth, usdc] = ['WETH', 'USDC'].map((name) => manifest.tokens.find(({ symbol }) => symbol === name)!.address);
    const erc20 = ['function approve(address, uint256) returns (bool)'];
    for (const token of [weth!, usdc!])
      await new Contract(token, erc20, wallet).getFunction('approve')(manifest.contracts.entrypoint, MaxUint256);
    for (let isSale = true; !signal.aborted; isSale = !isSale) {
      const [from, to, amount] = isSale ? [weth!, usdc!, 10n ** 16n] : [usdc!, weth!, 25_000_000n];
      const deadline = Math.floor(Date.now() / 1_000) + 600;
      // While nothing is quoted there is nothing to take.
      const mined = entrypoint.swap(from, to, amount, 1n, wallet.address, deadline).then((sent) => sent.wait());
      if ((await mined.catch(() => null)) !== null) swaps += 1;
      await delay(SWAP_EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  for (const role of ['maker1', 'maker2']) {
    const { ok, output } = await deployment.operate('maker', 'approve', addressOf(role));
    if (!ok) throw new Error(output);
  }
  // Orders are taken once the ledger is ready.
  await until('the quotes', () =>
    quote().then(
      () => true,
      () => false,
    ),
  );
  const running = [...[0, 1, 2].map(make), take()];

  return {
    acknowledged,
    said,
    swaps: () => swaps,
    async firstOrder(servers, fromMs, limitMs) {
      const found = Promise.withResolvers<number>();
      const over = new AbortController();
      const asked: Promise<void>[] = [];
      const one = async (server: Member): Promise<void> => {
        const own = order('maker1');
        const text = await post(server.url, own.body, PROBE_MS).catch(() => null);
        if (text !== null && record(own, text, server.name)) found.resolve((performance.now() - fromMs) / 1_000);
      };
      const asking = (async () => {
        while (!over.signal.aborted && performance.now() - fromMs < limitMs) {
          for (const server of servers) asked.push(one(server));
          await delay(PROBE_EVERY_MS, undefined, { signal: over.signal }).catch(() => undefined);
        }
        await Promise.all(asked);
        found.resolve(Number.NaN);
      })();
      const sec = await found.promise;
      over.abort();
      await asking;
      return sec;
    },
    async orderInside({ place, url, name }) {
      const own = order('maker1');
      const [program = '', ...rest] = [
        ...place.within,
        ...['curl', '-s', '-m', `${PROBE_MS / 1_000}`, '-H', 'content-type: application/json'],
        ...['-d', JSON.stringify(own.body), `${url}/exchange`],
      ];
      const { stdout } = await promisify(execFile)(program, rest).catch(() => ({ stdout: '' }));
      if (stdout !== '') record(own, stdout, `${name}, from inside`);
    },
    async stop() {
      stopping.abort();
      await Promise.all(running);
    },
  };
}
