/**
 * The measured server, in a process of its own. `bare` serves bodies that it is sent over one Koa route; `load <url> <fills> [seconds between blocks]`
 * fills a database and ends; `serve <url>` serves the whole public interface over it, with metrics, limits and everything else in front. Asked for
 * its CPU time, it answers with microseconds, those of its PostgreSQL processes included when they run on this machine.
 */
import Router from '@koa/router';
import Koa from 'koa';
import { migrate, openDb } from '../../ledger/db/db.js';
import { listen } from '../../server/listen.js';
import { backendsCpuUs, publicApp } from './app.js';
import { loadWorld } from './world.js';

const [mode = 'bare', url = '', fills = '0', blockSec = ''] = process.argv.slice(2);
const bodies: string[] = [];
const cleanUp: (() => Promise<void>)[] = [];
/** CPU time of the database's processes, microseconds. */
let databaseCpuUs = (): number => 0;

/** One route, which does nothing but send the bytes. */
function bareApp(): Koa {
  const router = new Router();
  router.get('/:body', (ctx) => {
    ctx.type = 'application/json';
    ctx.body = bodies[Number.parseInt(ctx.params.body ?? '', 10)];
  });
  const app = new Koa();
  app.use(router.routes());
  return app;
}

async function curvebookApp(): Promise<Koa> {
  const db = await openDb(url);
  cleanUp.push(() => db.close());
  if (db.kind === 'pg') databaseCpuUs = backendsCpuUs(db);
  return publicApp(db);
}

/** Fills the database and ends, so that the server that is measured starts on a filled database. */
async function load(): Promise<never> {
  const db = await openDb(url);
  await migrate(db);
  await loadWorld(db, Number.parseInt(fills, 10), blockSec === '' ? {} : { blockSec: Number.parseInt(blockSec, 10) });
  if (db.kind === 'pg') await db.knex.raw('vacuum (analyze)');
  await db.close();
  process.exit(0);
}

if (mode === 'load') await load();
const app = mode === 'bare' ? bareApp() : await curvebookApp();
const { port, close, server } = await listen(app, 0, '127.0.0.1');
// Connections are idle while databases are loaded and other cases are measured, and must not be closed.
server.keepAliveTimeout = 600_000;
server.headersTimeout = 0;
server.requestTimeout = 0;
process.on('message', (message: { body: string } | { cpu: true }) => {
  if ('body' in message) return process.send?.(bodies.push(message.body));
  const { user, system } = process.cpuUsage();
  return process.send?.(user + system + databaseCpuUs());
});
process.send?.({ port });
process.on('disconnect', () => {
  void (async () => {
    await close();
    for (const work of cleanUp) await work();
    process.exit(0);
  })();
});
