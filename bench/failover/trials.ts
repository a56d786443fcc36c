/** Trials per role and fault: what dies is killed, frozen or cut off while makers place orders, and the time counts until its work is done again. */
import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { inspect, promisify } from 'node:util';
import { decodeEffects } from '../../core/json.js';
import { ROLE_NAMES, type Role } from '../../ledger/roles.js';
import { LIMIT_MS, prepare, type Times } from './acts.js';
import { startClients, type Clients } from './clients.js';
import { PROCESS_ROLES, startDeployment, type Deployment, type Member } from './deployment.js';
import { createNetwork, flatNetwork, networkProblem } from './network.js';
import type { Server } from './servers.js';
import { judge, summarise, type Judgement, type SummaryRow, type Took } from './summary.js';

export const TARGETS = [...PROCESS_ROLES, 'postgres', 'nats'] as const;
type Target = (typeof TARGETS)[number];
/** The last three cut a process off from one server alone; with `no-answers` what it says still reaches PostgreSQL, and is carried out. */
export const FAULTS = ['kill', 'freeze', 'partition', 'no-postgres', 'no-answers', 'no-nats'] as const;
type Fault = (typeof FAULTS)[number];

interface TrialOptions {
  trials: number;
  faults: readonly Fault[];
  targets: readonly Target[];
  signal: AbortSignal;
  log(line: string): void;
}

export interface TrialReport {
  rows: SummaryRow[];
  acknowledged: number;
  swaps: number;
  judgement: Judgement;
  /** What is wrong with the ledger in the end. */
  findings: string[];
  /** Answers other than acknowledgements, and how often. */
  said: [string, number][];
}

/** How long a fault lasts at least; a process is given more while it still says that it serves. */
const FAULT_MS = 4_000;
/** A process that is cut off says so by then. */
const SAYS_SO_MS = 15_000;
/** A process that lost its log and goes on has ended by then. */
const ENDS_MS = 60_000;
const REST_MS = 1_000;

const isRole = (target: Target): target is Role => (ROLE_NAMES as readonly string[]).includes(target);

/** Faults that say something of a target: a server counts where it is used, and its answers where something is written. */
function faultsOf(target: Target, faults: readonly Fault[]): Fault[] {
  return faults.filter((fault) => {
    if (fault === 'no-nats') return target === 'gateway' || target === 'edge';
    if (fault === 'no-answers') return isRole(target);
    return fault !== 'no-postgres' || isRole(target) || target === 'edge';
  });
}

export async function measureTrials({ trials, faults, targets, signal, log }: TrialOptions): Promise<TrialReport> {
  const needsLinks = faults.some((fault) => fault !== 'kill' && fault !== 'freeze');
  const problem = networkProblem();
  if (needsLinks && problem !== null) throw new Error(`skipped: ${problem}`);
  const network = problem === null ? createNetwork() : flatNetwork();
  const deployment = await startDeployment(network, ({ name, child }, code) =>
    log(`${name} ended with ${code ?? child.process.signalCode}, and starts again`),
  );
  const took: Took[] = [];
  const failures: string[] = [];
  const aborted = new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  );
  aborted.catch(() => undefined);

  async function tryOne(clients: Clients, target: Target, fault: Fault, trial: number): Promise<void> {
    const times = await (isRole(target) || target === 'edge'
      ? memberTrial(deployment, clients, target, fault)
      : serverTrial(deployment, clients, target, fault));
    took.push(...times.map((one) => ({ role: target, fault, ...one })));
    log(`${target} ${fault} ${trial}: ${times.map(({ act, sec }) => `${act} ${sec.toFixed(2)} s`).join(', ')}`);
    await deployment.untilWhole();
  }

  async function tryAll(clients: Clients): Promise<void> {
    for (const target of targets) {
      for (const fault of faultsOf(target, faults)) {
        for (let trial = 1; trial <= trials; trial += 1) {
          signal.throwIfAborted();
          await tryOne(clients, target, fault, trial).catch((error: unknown) => {
            throw new Error(`${target} ${fault} ${trial}`, { cause: error });
          });
          await delay(REST_MS, undefined, { signal });
        }
      }
    }
  }

  try {
    signal.throwIfAborted();
    await deployment.untilWhole();
    const clients = await startClients(deployment);
    log('everything runs');
    try {
      // What was acknowledged until then is held against the log all the same.
      await Promise.race([tryAll(clients), aborted]).catch((error: unknown) => {
        signal.throwIfAborted();
        failures.push(inspect(error));
      });
    } finally {
      await clients.stop();
    }
    const audited = await audit(deployment, clients);
    return { rows: summarise(took), ...audited, findings: [...failures, ...audited.findings] };
  } finally {
    await deployment.close();
  }
}

async function memberTrial(
  deployment: Deployment,
  clients: Clients,
  role: Role | 'edge',
  fault: Fault,
): Promise<Times> {
  const victim = deployment.active(role);
  const others = deployment.members(role).filter((one) => one !== victim);
  // Without NATS a gateway keeps its log, and makers reach it directly.
  const isTakenOver = role !== 'edge' && fault !== 'no-nats';
  const watch = isTakenOver ? await prepare(role, deployment, clients) : null;
  victim.isHeld = true;
  const heal = inflict(deployment, victim, fault);
  const fromMs = performance.now();
  const times: Times = [];
  const over = new AbortController();
  const inside = fault === 'kill' || fault === 'freeze' ? null : watchInside(clients, victim, fromMs, over.signal);
  if (watch !== null) times.push(...(await watch(fromMs)));
  else if (role === 'edge')
    times.push({ act: 'first order over the other edge', sec: await clients.firstOrder(others, fromMs, LIMIT_MS) });
  else times.push({ act: 'first order at the gateway', sec: await clients.firstOrder([victim], fromMs, LIMIT_MS) });
  await delay(Math.max(0, FAULT_MS - (performance.now() - fromMs)));
  // A gateway without NATS goes on to serve whoever reaches it.
  const mustSaySo = role !== 'gateway' || fault !== 'no-nats';
  if (inside !== null && mustSaySo) times.push({ act: 'says that it does not serve', sec: await inside.silentSec });
  over.abort();
  await inside?.ended;
  heal();
  const healedMs = performance.now();
  if (isTakenOver && fault !== 'kill') {
    await Promise.race([victim.child.ended, delay(ENDS_MS)]);
    const hasEnded = victim.child.process.exitCode !== null;
    times.push({ act: 'ends, after the fault', sec: hasEnded ? (performance.now() - healedMs) / 1_000 : Number.NaN });
    if (!hasEnded) await victim.child.end('SIGKILL');
  }
  victim.isHeld = false;
  if (victim.child.process.exitCode !== null || victim.child.process.signalCode !== null) deployment.start(victim);
  if (role === 'edge')
    times.push({
      act: 'first order over itself, after the fault',
      sec: await clients.firstOrder([victim], healedMs, LIMIT_MS),
    });
  if (role === 'gateway' && fault === 'no-nats')
    times.push({
      act: 'first order over an edge, after the fault',
      sec: await clients.firstOrder(deployment.members('edge'), healedMs, LIMIT_MS),
    });
  return times;
}

/** Returns what ends the fault. */
function inflict({ postgres, nats }: Deployment, { child, place }: Member, fault: Fault): () => void {
  if (fault === 'kill') child.process.kill('SIGKILL');
  if (fault === 'freeze') child.process.kill('SIGSTOP');
  if (fault === 'kill') return () => undefined;
  if (fault === 'freeze') return () => void child.process.kill('SIGCONT');
  if (fault === 'partition') {
    place.setLink('down');
    return () => place.setLink('up');
  }
  const { place: other } = fault === 'no-nats' ? nats : postgres;
  if (fault === 'no-answers') place.deafenTo(other);
  else place.cutFrom(other);
  return () => place.joinTo(other);
}

/** A client at the side of a process that is cut off: it goes on to order there, and asks whether the process serves. */
function watchInside(clients: Clients, member: Member, fromMs: number, signal: AbortSignal) {
  const path = member.role === 'gateway' ? '/active' : '/ready';
  const silent = Promise.withResolvers<number>();
  const serves = async (): Promise<boolean> => {
    const [program = '', ...rest] = [
      ...member.place.within,
      'curl',
      '-s',
      '-m',
      '1',
      '-w',
      '%{http_code}',
      `${member.ops}${path}`,
    ];
    const { stdout } = await promisify(execFile)(program, rest).catch(() => ({ stdout: '' }));
    return stdout.endsWith('200');
  };
  async function look(): Promise<void> {
    const orders: Promise<void>[] = [];
    let isSilent = false;
    while (!signal.aborted) {
      if (member.role === 'gateway' || member.role === 'edge') orders.push(clients.orderInside(member));
      const servesNow = await serves();
      if (!servesNow && !isSilent) silent.resolve((performance.now() - fromMs) / 1_000);
      isSilent ||= !servesNow;
      if (!isSilent && performance.now() - fromMs > SAYS_SO_MS) silent.resolve(Number.NaN);
      await delay(200);
    }
    silent.resolve(Number.NaN);
    await Promise.all(orders);
  }
  return { silentSec: silent.promise, ended: look() };
}

async function serverTrial(
  deployment: Deployment,
  clients: Clients,
  target: 'postgres' | 'nats',
  fault: Fault,
): Promise<Times> {
  const server: Server = deployment[target];
  const edges = deployment.members('edge');
  const all = [...edges, ...deployment.members('gateway')];
  const fromMs = performance.now();
  if (fault === 'kill') await server.kill();
  if (fault === 'freeze') server.signal('SIGSTOP');
  if (fault === 'partition') server.place.setLink('down');
  // Without NATS the gateway goes on; without the database nothing is acknowledged, and a lost server is started again at once.
  const meanwhile = target === 'nats' ? clients.firstOrder(all, fromMs, LIMIT_MS) : null;
  if (fault !== 'kill' || target === 'nats') await delay(FAULT_MS);
  if (fault === 'kill') await server.start();
  if (fault === 'freeze') server.signal('SIGCONT');
  if (fault === 'partition') server.place.setLink('up');
  const healedMs = performance.now();
  const [order, edge] = await Promise.all([
    meanwhile ?? clients.firstOrder(all, fromMs, 2 * LIMIT_MS),
    clients.firstOrder(edges, healedMs, 2 * LIMIT_MS),
  ]);
  return [
    { act: 'first order', sec: order },
    { act: 'first order over an edge, after the fault', sec: edge },
  ];
}

async function audit(deployment: Deployment, clients: Clients): Promise<Omit<TrialReport, 'rows'>> {
  await deployment.untilWhole();
  const rows = await deployment.query<{ signer: string | null; nonce: string | null; effects: string }>(
    'select signer, nonce, effects from order_log',
  );
  const stored = rows.map(({ signer, nonce, effects }) => ({
    signer,
    nonce: nonce === null ? null : Number.parseInt(nonce, 10),
    oids: decodeEffects(effects).flatMap((one) => (one.type === 'open' ? [one.oid] : [])),
  }));
  const findings: string[] = [];
  const compacted = await deployment.query('select 1 from fold_position where order_seq > 0');
  if (compacted.length > 0)
    findings.push('the order log was compacted: what was acknowledged before can not be looked up');
  const verified = await deployment.operate('verify');
  if (!verified.ok) findings.push(`verify: ${verified.output}`);
  const overclaims = await deployment.query(OVERCLAIMS);
  if (overclaims.length > 0) findings.push(`claims beyond balances: ${JSON.stringify(overclaims)}`);
  const status = await fetch(`${deployment.active('gateway').url}/v0/status`).then((response) => response.text());
  if (!/"ready":true/.test(status)) findings.push(`the ledger is not ready: ${status}`);
  return {
    acknowledged: clients.acknowledged.length,
    swaps: clients.swaps(),
    judgement: judge(clients.acknowledged, stored),
    findings,
    said: [...clients.said],
  };
}

const OVERCLAIMS = `select maker, claims.token, claim_units, balance_units from claims
  left join balances on account = maker and balances.token = claims.token
  where claim_units::numeric > coalesce(balance_units::numeric, 0)`;
