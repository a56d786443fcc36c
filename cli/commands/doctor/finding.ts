/** Checks of `curvebook doctor` by stable codes, with remedies. */

export type Level = 'ok' | 'warn' | 'fail';

/** Every check with its remedy. Scripts act on the codes: they never change their meaning. */
export const REMEDIES = {
  SETTINGS: 'mend the settings that are named, in .env or the environment; docs/settings.md lists all',
  MANIFEST:
    'deploy with `npm run deploy -- deploy` and `configure`, or name the record of the deployment with MANIFEST',
  CONFIGURATION: 'mend <chainId>.config.json beside the manifest, or write one with `curvebook init`',
  SECRETS: 'chmod 600 the file, so that nobody else on this machine reads it',
  ENDPOINTS: 'name three endpoints of different providers in RPC_URL',
  ENDPOINT: 'mend or replace this endpoint in RPC_URL: its URL, its key or its quota',
  ENDPOINT_CHAIN: 'replace this endpoint: it serves another chain',
  ENDPOINT_LAG: 'wait until the node has caught up, or replace it',
  ENDPOINT_HEADER: 'replace this endpoint: blocks can not be proven by its headers',
  ENDPOINT_STATE: 'use a node that keeps the state of 128 blocks at least; an archive node for `reconcile --deep`',
  ENDPOINT_LOGS:
    'use a node with the logs of all blocks since the deployment; lower SCAN_MAX_BLOCKS for one that refuses ranges',
  ENDPOINT_RECEIPTS: 'use a node with eth_getBlockReceipts; without it receipts are asked for one by one',
  ENDPOINT_PROOFS: 'have one endpoint with eth_getProof; nonces that endpoints differ on are proven by it',
  ENDPOINTS_AGREE: 'find out which endpoint is on another fork, and replace it',
  HEADS: 'mend HEADS_URL, or leave it out: the chain is looked at by its pace then',
  CLOCK: 'set the clock of this machine by NTP (timedatectl set-ntp true)',
  CHAIN_AGE: 'wait for the chain, or replace endpoints that stand still',
  CONTRACTS: 'name the manifest of this chain: the record of the deployment, made by `npm run deploy`',
  OWNER: 'have the next owner accept: `npm run deploy -- accept-ownership`',
  ROLES:
    'name the address in <chainId>.config.json, and run `npm run deploy -- configure`; or use the key that is named there',
  BALANCE: 'send ether to the address',
  WITHDRAW_DELAY:
    'set withdrawDelaySec to 300 at least in <chainId>.config.json, and run `npm run deploy -- configure`; it holds for claims that are settled later',
  PERMIT2: 'signed orders wait for it: anybody may deploy Permit2 at its address',
  SWAPS: 'mend the addresses of the swap settings, or run `npm run deploy -- configure`',
  MARKETS:
    'run `npm run deploy -- configure`; a grid that is listed is for good, so mend the configuration where they differ',
  LIFETIME: 'lower CURVE_TTL_SEC to what the market allows, or raise its maxTtlSec and run configure',
  FEE_CEILING: 'raise FEE_CEILING_GWEI, or wait for a lower base fee',
  POST_BUDGET: 'raise POST_BUDGET_GWEI_PER_HOUR, or expect pauses of posting at this price',
  DATABASE: 'mend DATABASE_URL, or start the database and create what it names',
  DURABILITY: 'turn fsync, full_page_writes and synchronous_commit on; keep SQLite on a local disk',
  REPLICAS: 'set synchronous_standby_names on the primary (docs/operators.md, Replicas of the database)',
  DISK: 'make room on the disk of the database',
  NATS: 'mend NATS_URL and its login, or start that server; name all servers of a cluster of three',
  PORT: 'stop what listens there, or set another port',
  METRICS: 'set METRICS_PORT: alerts, probes and dashboards need it',
  ALERTS:
    'mend ALERT_WEBHOOK_URL or its receiver, which containers reach by its name, not at 127.0.0.1; `doctor --test-alert` sends it a test alert',
  ARCHIVE: 'set ARCHIVE_DIR to a folder on another disk that this user may write to',
  COST: 'nothing to do',
} as const;

export type Code = keyof typeof REMEDIES;

export interface Finding {
  level: Level;
  code: Code;
  /** What was looked at: an endpoint's host, a role, a pair, a file. */
  subject: string;
  message: string;
  /** Null where nothing is to be done. */
  remedy: string | null;
}

/** Collects findings, in order. */
export interface Report {
  ok(code: Code, subject: string, message: string): void;
  warn(code: Code, subject: string, message: string): void;
  fail(code: Code, subject: string, message: string): void;
  readonly findings: readonly Finding[];
}

const MAX_MESSAGE_CHARS = 300;

/** Makes foreign text safe to print: without control characters, and short. */
export function harmless(text: string): string {
  const plain = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ');
  return plain.length > MAX_MESSAGE_CHARS ? `${plain.slice(0, MAX_MESSAGE_CHARS)}…` : plain;
}

export function createReport(): Report {
  const findings: Finding[] = [];
  const add =
    (level: Level) =>
    (code: Code, subject: string, message: string): void =>
      void findings.push({
        level,
        code,
        subject: harmless(subject),
        message: harmless(message),
        remedy: level === 'ok' ? null : REMEDIES[code],
      });
  return { ok: add('ok'), warn: add('warn'), fail: add('fail'), findings };
}

/** What went wrong, in one line. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
