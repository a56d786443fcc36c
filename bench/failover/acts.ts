/** What shows that a role is played again: begun before a fault, and watched from the fault on. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Wallet } from 'ethers';
import { swapClient } from '../../examples/swap-client.js';
import { LOG_OF_ROLE, type Role } from '../../ledger/roles.js';
import type { Custodian } from '../../typechain-types/index.js';
import { Custodian__factory } from '../../typechain-types/factories/Custodian__factory.js';
import type { Clients } from './clients.js';
import { ask, type Deployment } from './deployment.js';

/** One time of one trial, by its act. */
export type Times = { act: string; sec: number }[];

/** Called at the fault; resolves with the times from then on. */
type Watch = (fromMs: number) => Promise<Times>;

/** A trial without the act by then has failed. */
export const LIMIT_MS = 60_000;
const LOOK_MS = 10;
const SALE = 10n ** 16n;

/** The number that rises with each act of a role, and the same for what became of it. */
const ACTS: Record<Exclude<Role, 'gateway' | 'executor'>, readonly { act: string; newest: string; from: string }[]> = {
  watcher: [
    { act: 'generation', newest: 'max(generation) from generations', from: 'max(generation) from generations' },
  ],
  poster: [
    { act: 'publication prepared', newest: 'max(seq) from publications', from: 'max(seq) from publications' },
    { act: 'publication landed', newest: 'max(seq) from posts_seen', from: 'max(seq) from publications' },
  ],
  settler: [
    {
      act: 'requested withdrawal settled',
      newest: 'max(settlement_no) from settlements',
      from: 'max(settlement_no) from settlements',
    },
  ],
};

const secSince = (fromMs: number): number => (performance.now() - fromMs) / 1_000;

/** What shows that the role is played by another process than now. */
export async function prepare(role: Role, deployment: Deployment, clients: Clients): Promise<Watch> {
  const log = LOG_OF_ROLE[role];
  const client = await ask(deployment.postgres.url);
  const number = async (sql: string): Promise<number> => {
    const { rows } = await client.query<{ n: string | null }>(`select (select ${sql}) as n`);
    return Number.parseInt(rows[0]?.n ?? '0', 10);
  };
  const epoch = (): Promise<number> => number(`epoch from writers where log = '${log}'`);
  const before = await epoch();
  if (role === 'settler') await executeClaim(deployment);
  const submit = role === 'executor' ? await signedOrder(deployment) : null;

  async function until(reached: () => Promise<boolean>, fromMs: number): Promise<number> {
    while (secSince(fromMs) * 1_000 < LIMIT_MS) {
      if (await reached()) return secSince(fromMs);
      await delay(LOOK_MS);
    }
    return Number.NaN;
  }

  async function own(fromMs: number): Promise<Times> {
    if (role === 'gateway') {
      const [edges, gateways] = [deployment.members('edge'), deployment.members('gateway')];
      const [edge, any] = await Promise.all([
        clients.firstOrder(edges, fromMs, LIMIT_MS),
        clients.firstOrder([...edges, ...gateways], fromMs, LIMIT_MS),
      ]);
      return [
        { act: 'first order', sec: any },
        { act: 'first order over an edge', sec: edge },
      ];
    }
    if (submit !== null) return [{ act: 'signed order filled', sec: await submit(fromMs) }];
    if (role === 'settler') await requestWithdrawal(deployment);
    return [];
  }

  return async (fromMs) => {
    try {
      const acting = own(fromMs);
      const times: Times = [{ act: 'log taken', sec: await until(async () => (await epoch()) > before, fromMs) }];
      const acts = role === 'gateway' || role === 'executor' ? [] : ACTS[role];
      // No earlier owner of the log can append to it from here on.
      const reached = await Promise.all(acts.map(({ from }) => number(from)));
      for (const [index, { act, newest }] of acts.entries())
        times.push({ act, sec: await until(async () => (await number(newest)) > reached[index]!, fromMs) });
      return [...times, ...(await acting)];
    } finally {
      await client.end().catch(() => undefined);
    }
  };
}

const ASKED_UNITS = 1_000_000n;
/** For the watcher to have seen what was executed. */
const SEEN_MS = 3_000;

const custodianOf = ({ manifest, provider }: Deployment): Custodian => {
  const key = manifest.accounts.find(({ role }) => role === 'maker1')!.privateKey;
  return Custodian__factory.connect(manifest.contracts.custodian, new Wallet(key, provider));
};

const usdcOf = ({ manifest }: Deployment): string => manifest.tokens.find(({ symbol }) => symbol === 'USDC')!.address;

async function requestWithdrawal(deployment: Deployment): Promise<void> {
  await (await custodianOf(deployment).requestWithdraw(usdcOf(deployment), ASKED_UNITS)).wait();
}

/** What an earlier trial was settled; beside a standing claim a request would wait for others. */
async function executeClaim(deployment: Deployment): Promise<void> {
  const custodian = custodianOf(deployment);
  // There is none before the first trial.
  const executed = await custodian.executeWithdraw(usdcOf(deployment)).catch(() => null);
  if (executed === null) return;
  await executed.wait();
  await delay(SEEN_MS);
}

/** A gasless sale that is quoted and signed; the function submits it, and resolves when it is filled. */
async function signedOrder({ manifest, active }: Deployment): Promise<(fromMs: number) => Promise<number>> {
  const api = swapClient({ serverUrl: active('gateway').url });
  const wallet = new Wallet(manifest.accounts.find(({ role }) => role === 'taker3')!.privateKey);
  const [sell, buy] = ['WETH', 'USDC'].map((name) => manifest.tokens.find(({ symbol }) => symbol === name)!.address);
  const quote = await api.quote({
    chainId: manifest.chainId,
    from: wallet.address,
    sellToken: sell!,
    buyToken: buy!,
    kind: 'sell',
    sellAmountBeforeFee: SALE.toString(),
    slippageBps: 500,
    signingScheme: 'eip712',
  });
  const { domain, types, message } = quote.permit2.typedData;
  const { EIP712Domain: _, ...signed } = types;
  const signature = await wallet.signTypedData(domain, signed, message);
  return async (fromMs) => {
    const { orderId } = await api.submit(quote.id, signature, randomUUID());
    while (secSince(fromMs) * 1_000 < LIMIT_MS) {
      const { status } = await api.order(orderId);
      if (status === 'filled') return secSince(fromMs);
      if (status !== 'pending') return Number.NaN;
      await delay(50);
    }
    return Number.NaN;
  };
}
