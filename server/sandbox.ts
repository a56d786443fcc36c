import Router from '@koa/router';
import type { RouterMiddleware } from '@koa/router';
import { z } from 'zod';
import type { Address } from '../core/types.js';
import { ApiError } from './errors.js';
import { addressParameter } from './read/schemas.js';
import { readBody } from './swap/body.js';

/** An account with a public private key. */
interface SandboxAccount {
  role: string;
  address: Address;
  privateKey: string;
}

/** What the owner's commands do on a deployment. */
export interface SandboxControls {
  accounts: readonly SandboxAccount[];
  halt(note: string): Promise<void>;
  /** Null on success, else the reason why this halt can't be resumed. */
  resume(): Promise<string | null>;
  approve(maker: Address): Promise<void>;
  /** The roles end and start again from what is stored, as after a crash. */
  restart(): void;
}

const nothing = z.strictObject({});
const haltBody = z.strictObject({ note: z.string().max(200).default('halted from the console') });
const approveBody = z.strictObject({ maker: addressParameter });

/**
 * GET /sandbox/accounts and POST /sandbox/{halt,resume,approve,restart}: the buttons of a sandbox's pages. Only a sandbox has them, and
 * only for requests from this machine by pages of this server: a page of another site in a browser on this machine gets 403, whatever host
 * name it uses for this server.
 */
export function sandboxRoutes(controls: SandboxControls): Router {
  const router = new Router();
  router.get('/sandbox/accounts', localOnly, (ctx) => {
    ctx.set('Cache-Control', 'no-store');
    ctx.body = controls.accounts.map(({ role, address, privateKey }) => ({ role, address, private_key: privateKey }));
  });
  router.post('/sandbox/halt', localOnly, async (ctx) => {
    const { note } = await readBody(ctx.req, haltBody);
    await controls.halt(note);
    ctx.body = { done: 'halt', command: `curvebook halt ${JSON.stringify(note)}` };
  });
  router.post('/sandbox/resume', localOnly, async (ctx) => {
    await readBody(ctx.req, nothing);
    const standing = await controls.resume();
    if (standing !== null) throw new ApiError(409, 'CAUSE_STANDS', standing);
    ctx.body = { done: 'resume', command: 'curvebook resume' };
  });
  router.post('/sandbox/approve', localOnly, async (ctx) => {
    const { maker } = await readBody(ctx.req, approveBody);
    await controls.approve(maker.toLowerCase() as Address);
    ctx.body = { done: 'approve', command: `curvebook maker approve ${maker}` };
  });
  router.post('/sandbox/restart', localOnly, async (ctx) => {
    await readBody(ctx.req, nothing);
    ctx.body = { done: 'restart', command: 'curvebook serve' };
    // After the answer was sent.
    ctx.res.once('close', () => controls.restart());
  });
  return router;
}

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|::1|::ffff:127(?:\.\d{1,3}){3})$/;
const LOCAL_NAME = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

/** Refuses requests from other machines, through a proxy, with another host name, or from pages of other sites. */
const localOnly: RouterMiddleware = async (ctx, next) => {
  const { host = '', origin } = ctx.req.headers;
  const isHere = LOOPBACK.test(ctx.req.socket.remoteAddress ?? '') && ctx.req.headers['x-forwarded-for'] === undefined;
  const isOurs = LOCAL_NAME.test(host) && (origin === undefined || origin === `http://${host}`);
  if (!isHere || !isOurs) throw new ApiError(403, 'FORBIDDEN', 'only pages of this server on this machine may do this');
  await next();
};
