/** Checks this machine and its services other than the chain: clock, files, ports, alerts. */
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { unescape } from 'node:querystring';
import { WebSocket } from 'ws';
import { assertPortFree } from '../../../deploy/sandbox/ports.js';
import { boundedText } from '../../../keepers/chain/rpc.js';
import { tryBus } from '../../../server/edge/bus.js';
import { busOf, type EdgeSettings } from '../../settings/edge.js';
import { median } from './median.js';
import { reasonOf, type Report } from './finding.js';

const REQUEST_MS = 5_000;
const MAX_ANSWER_BYTES = 65_536;
/** Tolerance for `Date` headers, which have whole seconds and network delay. */
const CLOCK_WARN_MS = 2_500;
/** The limit of `clock_skew`. */
const CLOCK_FAIL_MS = 5_000;

/** Compares the clock with what endpoints' web servers say of the time; it must be right, since orders and curves expire by it. */
export async function checkClock(urls: readonly string[], report: Report, nowMs: () => number): Promise<void> {
  const origins = [...new Set(urls.map((url) => new URL(url).origin))];
  const offsets = (await Promise.all(origins.map((origin) => clockOffset(origin, nowMs)))).filter(
    (one) => one !== null,
  );
  const offsetMs = median(offsets);
  if (offsetMs === null) return report.warn('CLOCK', 'this machine', 'no endpoint says what time it is');
  const by = Math.abs(offsetMs);
  const text = `${(by / 1_000).toFixed(1)} s ${offsetMs < 0 ? 'ahead of' : 'behind'} ${offsets.length} endpoints`;
  if (by > CLOCK_FAIL_MS) report.fail('CLOCK', 'this machine', text);
  else if (by > CLOCK_WARN_MS) report.warn('CLOCK', 'this machine', text);
  else report.ok('CLOCK', 'this machine', text);
}

/** How far the other clock is ahead of ours, in ms; null where it does not say. */
async function clockOffset(origin: string, nowMs: () => number): Promise<number | null> {
  try {
    const startedMs = nowMs();
    const response = await fetch(origin, {
      method: 'HEAD',
      redirect: 'manual',
      signal: AbortSignal.timeout(REQUEST_MS),
    });
    const dateMs = Date.parse(response.headers.get('date') ?? '');
    // Whole seconds: half of one more on average.
    return Number.isNaN(dateMs) ? null : dateMs + 500 - (startedMs + nowMs()) / 2;
  } catch {
    return null;
  }
}

/** Files with secrets that others on this machine may read. */
export function checkSecrets(files: readonly string[], report: Report): void {
  for (const file of files) {
    if (!existsSync(file)) report.fail('SECRETS', file, 'is not there');
    else if ((statSync(file).mode & 0o077) !== 0)
      report.warn('SECRETS', file, `others may read it (mode ${(statSync(file).mode & 0o777).toString(8)})`);
    else report.ok('SECRETS', file, 'is read by its owner alone');
  }
}

/** A port is also fine when a server of this deployment already listens on it. */
export async function checkPort(
  {
    host,
    port,
    setting,
    deploymentId,
  }: { host: string; port: number; setting: 'PORT' | 'METRICS_PORT'; deploymentId: string | null },
  report: Report,
): Promise<void> {
  const subject = `${host}:${port}`;
  try {
    await assertPortFree(host, port, setting);
    report.ok('PORT', subject, 'is free');
  } catch (error) {
    const at = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
    if (deploymentId !== null && (await served(`http://${at}:${port}`, setting)).includes(deploymentId))
      report.ok('PORT', subject, 'a server of this deployment listens');
    else report.fail('PORT', subject, reasonOf(error));
  }
}

async function served(url: string, setting: 'PORT' | 'METRICS_PORT'): Promise<string> {
  const path = setting === 'PORT' ? '/health' : '/metrics';
  return fetch(`${url}${path}`, { signal: AbortSignal.timeout(REQUEST_MS) })
    .then((response) => boundedText(response, MAX_ANSWER_BYTES))
    .catch(() => '');
}

/**
 * Whether the receiver of alerts answers; with `test` it is sent an alert as Alertmanager would, which must be taken. Of its URL only the host is
 * shown: a login, the path and the query may be secrets.
 */
export async function checkAlerts(
  url: string | undefined,
  test: boolean,
  report: Report,
  nowMs: () => number,
): Promise<void> {
  const setting = 'ALERT_WEBHOOK_URL';
  if (url === undefined) return report.warn('ALERTS', setting, 'nobody is told of alerts');
  const receiver = receiverOf(url);
  if (receiver === null) return report.fail('ALERTS', setting, 'is no URL of http:// or https://');
  const { target, login } = receiver;
  try {
    const signal = AbortSignal.timeout(REQUEST_MS);
    const sent = test
      ? await fetch(target, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...login },
          body: testAlert(nowMs()),
          signal,
        })
      : await fetch(target, { method: 'HEAD', headers: login, signal });
    await sent.body?.cancel();
    const { status } = sent;
    if (test ? sent.ok : status < 500 && status !== 404)
      report.ok('ALERTS', target.host, test ? `took a test alert (${status})` : `answers (${status})`);
    else report.fail('ALERTS', target.host, `answers ${status}${test ? ' to a test alert' : ''}`);
  } catch (error) {
    report.fail('ALERTS', target.host, failureOf(error));
  }
}

/** Where alerts go, and the login of the URL as Alertmanager sends it, since fetch refuses a URL with one. Null for what Alertmanager refuses. */
function receiverOf(url: string): { target: URL; login: { authorization?: string } } | null {
  const target = URL.parse(url);
  if (target === null || !/^https?:$/.test(target.protocol)) return null;
  const { username, password } = target;
  if (/%(?![\da-f]{2})/i.test(username + password)) return null;
  target.username = target.password = '';
  if (username === '' && password === '') return { target, login: {} };
  const credentials = Buffer.from(`${unescape(username)}:${unescape(password)}`).toString('base64');
  return { target, login: { authorization: `Basic ${credentials}` } };
}

/** Why there was no answer, by codes: messages of fetch may hold the URL. */
function failureOf(error: unknown): string {
  if (error instanceof DOMException && error.name === 'TimeoutError') return `no answer in ${REQUEST_MS / 1_000} s`;
  const { cause } = error as { cause?: { code?: unknown } };
  return typeof cause?.code === 'string' ? `can't be reached (${cause.code})` : "can't be asked";
}

/** The body of Alertmanager's webhooks, version 4. */
function testAlert(nowMs: number): string {
  const labels = { alertname: 'DoctorTest', severity: 'warning' };
  const annotations = { summary: 'curvebook doctor asks whether alerts arrive; nothing is wrong' };
  const alert = {
    status: 'firing',
    labels,
    annotations,
    startsAt: new Date(nowMs).toISOString(),
    endsAt: '0001-01-01T00:00:00Z',
  };
  const shared = { groupLabels: labels, commonLabels: labels, commonAnnotations: annotations };
  return JSON.stringify({ version: '4', status: 'firing', receiver: 'operator', ...shared, alerts: [alert] });
}

/**
 * Servers of NATS, by which edges reach the gateway: each takes a connection with our login, since any of them may be the one that is left. Nothing
 * is checked where none is configured.
 */
export async function checkNats(settings: EdgeSettings, report: Report): Promise<void> {
  let bus;
  try {
    bus = busOf(settings)?.bus;
  } catch (error) {
    return report.fail('NATS', 'NATS_CREDENTIALS', reasonOf(error));
  }
  if (bus === undefined) return;
  const { servers } = bus;
  if (servers.length === 1) report.warn('NATS', 'NATS_URL', 'names one server: edges take no action while it is away');
  await Promise.all(
    servers.map(async (url) => {
      const { host } = new URL(url);
      try {
        await tryBus({ ...bus, servers: [url], name: 'curvebook doctor' });
        report.ok('NATS', host, 'takes our login');
      } catch (error) {
        report.fail('NATS', host, reasonOf(error));
      }
    }),
  );
}

/** Endpoints that tell of heads: each takes a connection. */
export async function checkHeads(urls: readonly string[], report: Report): Promise<void> {
  await Promise.all(
    urls.map(async (url) => {
      const { host } = new URL(url);
      const problem = await connectOnce(url);
      if (problem === null) report.ok('HEADS', host, 'takes WebSocket connections');
      else report.warn('HEADS', host, problem);
    }),
  );
}

function connectOnce(url: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url, { handshakeTimeout: REQUEST_MS, maxPayload: MAX_ANSWER_BYTES });
    socket.once('open', () => {
      resolve(null);
      socket.terminate();
    });
    socket.on('error', (error) => resolve(reasonOf(error)));
  });
}

/** The archive's folder. */
export function checkArchive(folder: string | undefined, report: Report): void {
  if (folder === undefined)
    return report.warn('ARCHIVE', 'ARCHIVE_DIR', 'is not set: a lost database can not be made again');
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    report.ok('ARCHIVE', folder, 'can be written');
  } catch (error) {
    report.fail('ARCHIVE', folder, reasonOf(error));
  }
}
