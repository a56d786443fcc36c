import type { Readiness } from '../../core/types.js';
import Router from '@koa/router';
import type { RouterMiddleware } from '@koa/router';
import type { Middleware } from 'koa';
import { z } from 'zod';
import { notKept, routesOf, type RequestLimit, type ServedEndpoint } from '../openapi/endpoint.js';
import type { Registry } from 'prom-client';

/** State of the process for supervisors (alive), load balancers (ready) and senders of actions (active). */
export interface Probes {
  /** Null while everything that this process runs is alive; else what is not. Then the process should be restarted. */
  failure(): string | null;
  /** Whether this process can serve requests: a gateway serves reads, also on standby and while the ledger is not ready. */
  ready(): Readiness;
  /** Whether this process takes actions, cancels among them: it is a gateway that owns the order log. */
  active(): { active: boolean; reason: string | null };
}

const reasonSchema = z.string().nullable();
const liveSchema = z.strictObject({ live: z.boolean(), problem: reasonSchema });
const readySchema = z.strictObject({ ready: z.boolean(), reason: reasonSchema });
const activeSchema = z.strictObject({ active: z.boolean(), reason: reasonSchema });

interface ProbeDeps extends Probes {
  limit: Middleware;
}

/** Of a process that can't go on, such as one that lost its log: whoever asks is to go elsewhere, however long its end takes. */
const ENDING = 'ending';
const isEnding = (probes: Probes): boolean => probes.failure() !== null;

/** 200, or 503 with the reason. */
const probe =
  (answer: (probes: Probes) => { ok: boolean; body: object }) =>
  (probes: Probes): RouterMiddleware =>
  (ctx) => {
    const { ok, body } = answer(probes);
    ctx.status = ok ? 200 : 503;
    ctx.body = body;
  };

const limit: RequestLimit<ProbeDeps> = { setting: 'READ_REQUESTS_PER_MINUTE', count: (deps) => deps.limit };
const RATE_LIMITED = 'RATE_LIMITED: come back after retry-after seconds';

/** The probes: routes and the OpenAPI document come from this table. */
export const PROBE_ENDPOINTS: readonly ServedEndpoint<ProbeDeps>[] = [
  {
    method: 'get',
    path: '/live',
    limit,
    handler: probe((probes) => {
      const problem = probes.failure();
      return { ok: problem === null, body: { live: problem === null, problem } };
    }),
    group: 'Probes',
    summary: 'The process works; a restart is the remedy when it does not',
    answer: liveSchema,
    alsoAnswers: { 503: 'The process can not go on; it is about to end' },
    refusals: { 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/ready',
    limit,
    handler: probe((probes) => {
      const body = isEnding(probes) ? { ready: false, reason: ENDING } : probes.ready();
      return { ok: body.ready, body };
    }),
    group: 'Probes',
    summary: 'Reads may be sent here',
    description:
      'A gateway on standby is ready, too. It says nothing of the ledger: that is in /v0/status and in the limits of a maker.',
    answer: readySchema,
    alsoAnswers: { 503: 'It does not serve yet' },
    refusals: { 429: RATE_LIMITED },
  },
  {
    method: 'get',
    path: '/active',
    limit,
    handler: probe((probes) => {
      const body = isEnding(probes) ? { active: false, reason: ENDING } : probes.active();
      return { ok: body.active, body };
    }),
    group: 'Probes',
    summary: 'Actions may be sent here: this gateway owns the order log',
    description: 'Whatever the state of the ledger, so that cancels get through while it is stale or halted.',
    answer: activeSchema,
    alsoAnswers: { 503: 'Another process owns the order log, or this one is starting' },
    refusals: { 429: RATE_LIMITED },
  },
];

/** GET /live, /ready and /active. */
export const probeRoutes = (probes: Probes, limit: Middleware = (_ctx, next) => next()): Router =>
  routesOf(PROBE_ENDPOINTS, { ...probes, limit }, [notKept]);

/** For machines that watch this process, on a port that the public does not reach: GET /metrics. */
export function metricsRoutes(registry: Registry): Router {
  const router = new Router();
  router.get('/metrics', async (ctx) => {
    ctx.body = await registry.metrics();
    ctx.set('content-type', registry.contentType);
  });
  return router;
}
