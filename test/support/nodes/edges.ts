/** Edges in front of one gateway, all as processes of their own, over a NATS server of their own. */
import { SigningKey } from 'ethers';
import pg from 'pg';
import { bytesToHex } from '../../../core/hash.js';
import { agentDigest } from '../../../core/wire/digest.js';
import { connectionId, encodeAction } from '../../../core/wire/encode.js';
import { freePort } from '../../../deploy/sandbox/ports.js';
import { startChild, type Child } from '../child.js';
import { startNats, type Nats } from './nats.js';
import { accountOf, startStack, until, type Stack, type TestDatabase } from '../stack.js';

export const GATEWAY = 'gateway';
const OTHERS = 'watcher,poster,settler,executor';
const SECRET = 'a secret of tests, which protects nothing';

interface SignedBody {
  action: object;
  nonce: number;
  signature: object;
}

export interface Edges {
  stack: Stack;
  nats: Nats;
  urls: readonly string[];
  pid(index: number): number;
  /** Ends an edge as a crash does, or starts it again; it resolves when it is ready. */
  kill(index: number): Promise<void>;
  revive(index: number): Promise<void>;
  untilReady(): Promise<void>;
  /** A process with the gateway's role that waits for its log. */
  standby(): Promise<{ url: string; child: Child; metrics(): Promise<Map<string, number>> }>;
  /** What maker1, or this key, signs, with a nonce that nobody used. */
  signed(action: object, privateKey?: string): Promise<SignedBody>;
  post(url: string, body: object): Promise<{ status: number; text: string }>;
  /** Rows of the order log with this nonce. */
  rowsOf(nonce: number): Promise<number>;
  /** Messages with actions that the gateway has judged. */
  judged(): Promise<number>;
  /** The samples of an edge, or of the gateway, by name and labels. */
  metricsOf(process: number | typeof GATEWAY): Promise<Map<string, number>>;
  query<T>(sql: string, values?: unknown[]): Promise<T[]>;
  close(): Promise<void>;
}

interface EdgesOptions {
  count?: number;
  /** Settings of the gateway and of edges. */
  env?: Record<string, string>;
  /** Settings of edges alone. */
  edgeEnv?: Record<string, string>;
  blockTimeMs?: number;
}

/** The samples of a process by name and labels. */
async function samplesAt(port: number): Promise<Map<string, number>> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const samples = text.matchAll(/^([^#\n].*) (\S+)$/gm);
  return new Map([...samples].map(([, name, value]) => [name!, Number(value)]));
}

let lastNonce = 0;

/** What a key signs, in the form of a request. */
export function signBody(action: object, privateKey: string): SignedBody {
  lastNonce = Math.max(lastNonce + 1, Date.now());
  const context = { nonce: lastNonce, vaultAddress: null, expiresAfter: null };
  const digest = agentDigest('a', connectionId(encodeAction(action), context));
  const { r, s, v } = new SigningKey(privateKey).sign(bytesToHex(digest));
  return { action, nonce: lastNonce, signature: { r, s, v } };
}

export async function startEdges(
  program: string,
  db: TestDatabase,
  { count = 2, env = {}, edgeEnv = {}, blockTimeMs = 250 }: EdgesOptions = {},
): Promise<Edges> {
  const nats = await startNats(program);
  const children: (Child | null)[] = [];
  const standbys: Child[] = [];
  const metricsPort = await freePort('127.0.0.1');
  const edgeMetricsPorts = await Promise.all(Array.from({ length: count }, () => freePort('127.0.0.1')));
  const common = { NATS_URL: nats.url, EDGE_SECRET: SECRET, ...env };
  const stack = await startStack({
    databaseUrl: db.url,
    processes: [OTHERS, GATEWAY],
    blockTimeMs,
    env: common,
    envOf: { [GATEWAY]: { METRICS_PORT: `${metricsPort}` } },
  });
  const ports = await Promise.all(Array.from({ length: count }, () => freePort('127.0.0.1')));
  const urls = ports.map((port) => `http://127.0.0.1:${port}`);
  const schema = new URL(db.url).searchParams.get('schema') ?? 'public';
  const plain = new URL(db.url);
  plain.searchParams.delete('schema');
  const client = new pg.Client({ connectionString: plain.toString(), options: `-c search_path=${schema}` });
  await client.connect();

  function serve(port: number, roles: string, more: Record<string, string>): Child {
    const args = ['serve', '--manifest', stack.manifestPath, '--database', db.url, '--port', `${port}`];
    return startChild('cli/main.ts', args, { LOG_LEVEL: 'info', ROLES: roles, ...common, ...more });
  }

  const isReady = async (url: string, path = '/ready'): Promise<boolean> =>
    (await fetch(`${url}${path}`).catch(() => null))?.status === 200;

  async function revive(index: number): Promise<void> {
    const child = serve(ports[index]!, 'edge', { METRICS_PORT: `${edgeMetricsPorts[index]}`, ...edgeEnv });
    children[index] = child;
    await until(`edge ${index}`, () => {
      if (child.process.exitCode !== null) throw new Error(`an edge ended:\n${child.output()}`);
      return isReady(urls[index]!);
    });
  }

  const edges: Edges = {
    stack,
    nats,
    urls,
    pid: (index) => children[index]!.process.pid!,
    async kill(index) {
      await children[index]?.end('SIGKILL');
      children[index] = null;
    },
    revive,
    untilReady: () =>
      until('every edge', async () => (await Promise.all(urls.map((url) => isReady(url)))).every(Boolean)),
    async standby() {
      const port = await freePort('127.0.0.1');
      const ownMetrics = await freePort('127.0.0.1');
      const child = serve(port, GATEWAY, { METRICS_PORT: `${ownMetrics}` });
      standbys.push(child);
      const url = `http://127.0.0.1:${port}`;
      await until('the standby', () => isReady(url));
      return { url, child, metrics: () => samplesAt(ownMetrics) };
    },
    signed: (action, privateKey = accountOf(stack, 'maker1').privateKey) =>
      Promise.resolve(signBody(action, privateKey)),
    async post(url, body) {
      const response = await fetch(`${url}/exchange`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      });
      return { status: response.status, text: await response.text() };
    },
    async rowsOf(nonce) {
      const { rows } = await client.query<{ count: number }>(
        'select count(*)::int as count from order_log where nonce = $1',
        [nonce],
      );
      return rows[0]!.count;
    },
    async judged() {
      return (await edges.metricsOf(GATEWAY)).get('curvebook_sequencer_messages{outcome="judged"}') ?? -1;
    },
    metricsOf: (process) => samplesAt(process === GATEWAY ? metricsPort : edgeMetricsPorts[process]!),
    async query<T>(sql: string, values: unknown[] = []) {
      return (await client.query(sql, values)).rows as T[];
    },
    async close() {
      await client.end();
      await Promise.all([...children, ...standbys].flatMap((child) => (child === null ? [] : [child.end('SIGKILL')])));
      await stack.close();
      await nats.close();
      await db.drop();
    },
  };
  await Promise.all(urls.map((_, index) => revive(index)));
  await stack.operate('maker', 'approve', accountOf(stack, 'maker1').address);
  // Orders are taken while the ledger is ready.
  await until('an order', async () => {
    const order = { a: 10_000, b: true, p: '1000', s: '0.1', r: false, t: { limit: { tif: 'Gtc' } } };
    const answer = await edges.post(
      urls[0]!,
      signBody({ type: 'order', orders: [order], grouping: 'na' }, accountOf(stack, 'maker1').privateKey),
    );
    return answer.text.includes('resting');
  });
  return edges;
}
