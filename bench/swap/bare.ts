/**
 * The least that an API with durable answers can do: a Koa route that reads a JSON body, commits it as one row, and answers. Arguments: the
 * database's URL. Prints its port.
 */
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:http';
import Router from '@koa/router';
import Koa from 'koa';
import { stringify } from '../../core/json.js';
import { openDb } from '../../ledger/db/db.js';
import { readJsonBody } from '../../server/orders/body.js';

const [url = ''] = process.argv.slice(2);
const db = await openDb(url);
await db.knex.schema.createTable('bench_rows', (table) => {
  table.text('id').primary();
  table.text('body').notNullable();
});
const router = new Router();
router.post('/row', async (ctx) => {
  const body = stringify(await readJsonBody(ctx.req));
  const id = crypto.randomUUID();
  await db.knex('bench_rows').insert({ id, body });
  ctx.type = 'application/json';
  ctx.body = stringify({ id, body });
});
const app = new Koa().use(router.routes()).callback();
const server = createServer((request, response) => void app(request, response));
// Connections are idle while other cases are measured and must not be closed.
server.keepAliveTimeout = 600_000;
server.listen(0, '127.0.0.1', () => process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`));
process.once('SIGTERM', () => process.exit(0));
