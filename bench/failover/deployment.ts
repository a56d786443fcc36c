/** A deployment with two processes of each role and two edges, every process and server at a place of its own that can be cut off. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { JsonRpcProvider } from 'ethers';
import pg from 'pg';
import { writeManifest, type SandboxManifest } from '../../deploy/manifest.js';
import { freePort } from '../../deploy/sandbox/ports.js';
import { deploySandbox } from '../../deploy/sandbox/sandbox.js';
import { connect } from '../../deploy/transactions.js';
import { ROLE_NAMES } from '../../ledger/roles.js';
import { startChild, type Child } from '../../test/support/child.js';
import { until } from '../../test/support/stack.js';
import type { Network, Place } from './network.js';
import { startNats, startPostgres, type Server } from './servers.js';

export const PROCESS_ROLES = [...ROLE_NAMES, 'edge'] as const;
type ProcessRole = (typeof PROCESS_ROLES)[number];

/** A process, which is started again when it ends, as an operator's supervisor does. */
export interface Member {
  readonly name: string;
  readonly role: ProcessRole;
  readonly place: Place;
  readonly url: string;
  readonly ops: string;
  child: Child;
  /** While a trial decides when it starts again. */
  isHeld: boolean;
}

export interface Deployment {
  manifest: SandboxManifest;
  provider: JsonRpcProvider;
  postgres: Server;
  nats: Server;
  members(role: ProcessRole): readonly Member[];
  /** The one that plays the role, by its log; of edges the first. */
  active(role: ProcessRole): Member;
  start(member: Member): void;
  /** Resolves when every role is played, and the other process of each stands by. */
  untilWhole(): Promise<void>;
  /** One connection for one question, so that a server that came back is asked and not the one before. */
  query<T extends object>(sql: string, values?: readonly unknown[]): Promise<T[]>;
  /** An operator's command; its output, and whether it succeeded. */
  operate(...args: string[]): Promise<{ ok: boolean; output: string }>;
  close(): Promise<void>;
}

const BLOCK_MS = 1_000;
const RESTART_MS = 500;
const WHOLE_MS = 240_000;
const SECRET = 'a secret of this bench, which protects nothing';
const STARTED = '"msg":"roles started"';

/** `onEnd` is told of each process that ended without a fault of ours, with its exit code. */
export async function startDeployment(
  network: Network,
  onEnd: (member: Member, code: number | null) => void,
): Promise<Deployment> {
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-failover-'));
  const closing: (() => Promise<void> | void)[] = [
    () => network.close(),
    () => rmSync(folder, { recursive: true, force: true }),
  ];
  const members: Member[] = [];
  // Each child has one, so that none outlives this process.
  process.setMaxListeners(100);
  let isClosing = false;

  async function close(): Promise<void> {
    isClosing = true;
    await Promise.all(members.map(({ child }) => child.end('SIGKILL')));
    for (const step of closing.reverse()) await step();
  }

  try {
    const chain = startChild('deploy/sandbox/chain-main.ts', [
      '--host',
      network.address,
      '--port',
      '0',
      '--block-time-ms',
      `${BLOCK_MS}`,
    ]);
    closing.push(() => chain.end('SIGKILL'));
    const line = await chain.line((one) => one.startsWith('{'), WHOLE_MS);
    const { rpcUrl } = JSON.parse(line) as { rpcUrl: string };
    const postgres = await startPostgres(network.place('postgres'), await freePort('127.0.0.1'));
    closing.push(() => postgres.close());
    const nats = await startNats(network.place('nats'), await freePort('127.0.0.1'));
    closing.push(() => nats.close());
    const manifest = await deploySandbox({
      rpcUrl,
      serverUrl: rpcUrl,
      marketCount: 1,
      withdrawDelaySec: 1,
      log: () => undefined,
    });
    const manifestPath = join(folder, 'manifest.json');
    writeManifest(manifestPath, manifest);
    const provider = connect(rpcUrl);
    closing.push(() => provider.destroy());
    const common = ['--manifest', manifestPath, '--database', postgres.url];

    function serve({ role, place, url, ops }: Pick<Member, 'role' | 'place' | 'url' | 'ops'>): Child {
      const env = {
        LOG_LEVEL: 'info',
        HOST: network.address === place.address ? place.address : '0.0.0.0',
        METRICS_PORT: new URL(ops).port,
        NATS_URL: nats.url,
        EDGE_SECRET: SECRET,
        // Each trial of the settler has a withdrawal settled.
        CLAIM_INTERVAL_SEC: '0',
        SMALL_CLAIM_INTERVAL_SEC: '0',
      };
      const args = ['serve', ...common, '--roles', role, '--port', new URL(url).port];
      return startChild('cli/main.ts', args, env, [], place.within);
    }

    function start(member: Member): void {
      const child = serve(member);
      member.child = child;
      void child.ended.then(async (code) => {
        if (isClosing || member.isHeld || member.child !== child) return;
        onEnd(member, code);
        await delay(RESTART_MS);
        if (!isClosing && !member.isHeld && member.child === child) start(member);
      });
    }

    for (const role of PROCESS_ROLES) {
      for (const number of [1, 2]) {
        const place = network.place(`${role}${number}`);
        const [port, opsPort] = [await freePort('127.0.0.1'), await freePort('127.0.0.1')];
        const at = (one: number): string => `http://${place.address}:${one}`;
        const own = { role, place, url: at(port), ops: at(opsPort) };
        const member = { ...own, name: `${role}${number}`, isHeld: false } as Member;
        members.push(member);
        start(member);
      }
    }

    const isAlive = ({ child }: Member): boolean =>
      child.process.exitCode === null && child.process.signalCode === null;
    const playsSince = ({ child }: Member): number =>
      (JSON.parse(child.errors().findLast((one) => one.includes(STARTED)) ?? '{"time":0}') as { time: number }).time;

    const deployment: Deployment = {
      ...{ manifest, provider, postgres, nats, start, close },
      members: (role) => members.filter((member) => member.role === role),
      active(role) {
        const all = members.filter((member) => member.role === role && isAlive(member));
        const [newest] = all.sort((a, b) => playsSince(b) - playsSince(a));
        if (newest === undefined) throw new Error(`no ${role} runs`);
        return newest;
      },
      async untilWhole() {
        const answers = async (url: string): Promise<boolean> =>
          (await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => null))?.status === 200;
        await until(
          'every role, with its standby',
          async () => {
            if (!members.every(isAlive)) return false;
            const ready = members.filter(({ role }) => role === 'edge' || role === 'gateway');
            if (!(await Promise.all(ready.map(({ ops }) => answers(`${ops}/ready`)))).every(Boolean)) return false;
            const playing = ROLE_NAMES.map((role) => deployment.active(role));
            if (!(await Promise.all(playing.map(({ ops }) => answers(`${ops}/ready`)))).every(Boolean)) return false;
            const waiting = await deployment.query(WAITING).catch(() => []);
            return waiting.length === ROLE_NAMES.length;
          },
          WHOLE_MS,
        );
      },
      async query<T extends object>(sql: string, values: readonly unknown[] = []) {
        const client = await ask(postgres.url);
        try {
          return (await client.query<T>(sql, [...values])).rows;
        } finally {
          await client.end().catch(() => undefined);
        }
      },
      async operate(...args) {
        const child = startChild('cli/main.ts', [...args, ...common], { LOG_LEVEL: 'warn' });
        await new Promise<void>((resolve) => child.process.once('close', () => resolve()));
        return { ok: child.process.exitCode === 0, output: child.output() };
      },
    };
    return deployment;
  } catch (error) {
    await close();
    throw error;
  }
}

/** A connection that gives up on a server that does not answer. */
export async function ask(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000, query_timeout: 10_000 });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

const WAITING = `select 1 from pg_stat_activity where application_name = 'curvebook lock'
  and (query like '%pg_try_advisory_lock%' or query like 'select exists (select 1 from pg_locks%')
  and state_change > clock_timestamp() - interval '1 second'`;
