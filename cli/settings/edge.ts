/** Settings of edges, and of the gateway that they hand actions over to. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { BusOptions } from '../../server/edge/bus.js';
import { flag, integer } from './fields.js';

/** In place of roles: a process that serves clients, and hands their actions over. */
export const EDGE = 'edge';

const natsUrl = z.url({ protocol: /^(nats|tls)$/, error: 'must be a nats:// or tls:// URL' });
const file = z.string().min(1).optional();

const origin = z
  .url({ protocol: /^https?$/, error: 'must be an http:// or https:// URL' })
  .transform((url) => new URL(url).origin);

export const edgeSettings = {
  GATEWAY_URLS: z
    .string()
    .transform((list) => list.split(',').map((url) => url.trim()))
    .pipe(z.array(origin).min(1))
    .optional()
    .describe(
      'gateways, comma-separated, as this process reaches them, of which it hands to the active one what it can not take itself: a standby actions, and it, a reader and an edge quotes and orders of the swap API. Absent: refused with 503',
    ),
  NATS_URL: z
    .string()
    .transform((list) => list.split(',').map((url) => url.trim()))
    .pipe(z.array(natsUrl).min(1))
    .refine(
      (urls) => urls.every((url) => !URL.canParse(url) || new URL(url).username === ''),
      'names a user: use NATS_USER and NATS_PASSWORD',
    )
    .optional()
    .describe(
      'servers of NATS, comma-separated, over which edges reach the gateway; of both. Absent: the gateway serves no edges',
    ),
  NATS_USER: z.string().min(1).default('curvebook').describe('user at NATS, with NATS_PASSWORD'),
  NATS_PASSWORD: z.string().min(1).optional().describe('password of that user; absent: none is said'),
  NATS_CREDENTIALS: file.describe('credentials file for NATS, in place of user and password'),
  NATS_CA: file.describe('certificates, a file in PEM, of one of which the certificate of NATS must be; with tls://'),
  NATS_CERT: file.describe('certificate by which this process shows itself to NATS, a file in PEM'),
  NATS_KEY: file.describe('its key, a file in PEM'),
  EDGE_SECRET: z
    .string()
    .min(32, 'must have at least 32 characters')
    .max(1_024)
    .optional()
    .describe(
      'shared by edges and gateways, at least 32 characters: whoever has it can act for every maker, unless EDGE_VERIFY is set',
    ),
  EDGE_VERIFY: flag('false').describe(
    'gateway: recovers the signer of each action of an edge again, so that an edge can act for nobody',
  ),
  EDGE_TICK_MS: integer(0, 1_000, 5).describe('edge: how long actions are gathered into one message'),
  EDGE_TIMEOUT_MS: integer(1_000, 60_000, 8_000).describe(
    'edge, and who has GATEWAY_URLS: how long an action waits for the gateway; then it is answered that nothing was stored, or that its outcome is unknown',
  ),
  EDGE_MAX_WAITING: integer(1, 100_000, 2_000).describe(
    'edge, and who has GATEWAY_URLS: actions without an answer; further ones are refused, and nothing of them is stored',
  ),
};

export type EdgeSettings = z.output<z.ZodObject<typeof edgeSettings>>;

/** Problems of these settings together. */
export function edgeProblems(
  settings: EdgeSettings & { ROLES: readonly string[]; DATABASE_URL: string },
): [isWrong: boolean, problem: string][] {
  const { NATS_URL, NATS_CREDENTIALS, NATS_PASSWORD, NATS_CERT, NATS_KEY, NATS_CA } = settings;
  const isEdge = settings.ROLES.includes(EDGE);
  const hasTls = [NATS_CERT, NATS_KEY, NATS_CA].some((one) => one !== undefined);
  return [
    [isEdge && NATS_URL === undefined, 'NATS_URL: required for an edge, which hands actions over by it'],
    [
      isEdge && settings.DATABASE_URL.startsWith('sqlite:'),
      'DATABASE_URL: names SQLite, which is for one process; an edge needs PostgreSQL',
    ],
    [
      NATS_URL !== undefined && settings.EDGE_SECRET === undefined,
      'EDGE_SECRET: required with NATS_URL, the same for edges and gateways',
    ],
    [
      NATS_URL !== undefined && NATS_CREDENTIALS !== undefined && NATS_PASSWORD !== undefined,
      'NATS_CREDENTIALS: in place of NATS_PASSWORD, not beside it',
    ],
    [(NATS_CERT === undefined) !== (NATS_KEY === undefined), 'NATS_CERT: only with NATS_KEY, and the reverse'],
    [
      hasTls && NATS_URL?.some((url) => !url.startsWith('tls:')) === true,
      'NATS_URL: must name tls:// servers only, since certificates are set',
    ],
    ...Object.entries({ NATS_CREDENTIALS, NATS_CA, NATS_CERT, NATS_KEY }).map(([name, path]): [boolean, string] => [
      path !== undefined && !isReadable(path),
      `${name}: can't read ${path}`,
    ]),
  ];
}

function isReadable(path: string): boolean {
  try {
    readFileSync(path);
    return true;
  } catch {
    return false;
  }
}

/** How NATS is reached, and the secret; null when no edges are configured. */
export function busOf(settings: EdgeSettings): { bus: Omit<BusOptions, 'name' | 'logger'>; secret: string } | null {
  const { NATS_URL, EDGE_SECRET, NATS_CREDENTIALS, NATS_CA, NATS_CERT, NATS_KEY } = settings;
  if (NATS_URL === undefined || EDGE_SECRET === undefined) return null;
  const isTls = NATS_URL.some((url) => url.startsWith('tls:'));
  const tls = {
    ...(NATS_CA === undefined ? {} : { caFile: NATS_CA }),
    ...(NATS_CERT === undefined ? {} : { certFile: NATS_CERT }),
    ...(NATS_KEY === undefined ? {} : { keyFile: NATS_KEY }),
  };
  return {
    secret: EDGE_SECRET,
    bus: {
      servers: NATS_URL,
      user: settings.NATS_PASSWORD === undefined ? undefined : settings.NATS_USER,
      password: settings.NATS_PASSWORD,
      credentials: NATS_CREDENTIALS === undefined ? undefined : readFileSync(NATS_CREDENTIALS),
      tls: isTls ? tls : undefined,
    },
  };
}
