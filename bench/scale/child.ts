/**
 * The measured server, in a process of its own: `child.ts <url> <schema>` serves the whole public interface over an empty schema of
 * PostgreSQL that it fills. When asked, it answers with its CPU time and that of the database's processes, both in microseconds, or with
 * the rows and bytes of the order log, or with the bytes of its heap.
 */
import { migrate, openDb } from '../../ledger/db/db.js';
import { tableBytes } from '../../ledger/db/storage.js';
import { signatureBackend } from '../../core/wire/recover.js';
import { listen } from '../../server/listen.js';
import { backendsCpuUs, publicApp } from '../read/app.js';
import { prepareWorld } from './world.js';

const [url = '', schema = ''] = process.argv.slice(2);
const db = await openDb(url, { schema });
const databaseUs = backendsCpuUs(db);
await migrate(db);
await prepareWorld(db);
const { port, close, server } = await listen(await publicApp(db), 0, '127.0.0.1');
// Connections are idle while other cases are measured, and must not be closed.
server.keepAliveTimeout = 600_000;
server.headersTimeout = 0;
server.requestTimeout = 0;

async function log(): Promise<{ rows: number; bytes: number }> {
  const row = await db.knex('order_log').count<{ count: number }[]>({ count: '*' }).first();
  return { rows: row?.count ?? 0, bytes: (await tableBytes(db)).get('order_log') ?? 0 };
}

process.on('message', (question: 'cpu' | 'log' | 'heap') => {
  if (question === 'heap') {
    (globalThis as { gc?: () => void }).gc?.();
    return void process.send?.({ bytes: process.memoryUsage().heapUsed });
  }
  if (question === 'log') return void log().then((answer) => process.send?.(answer));
  const { user, system } = process.cpuUsage();
  process.send?.({ cpuUs: user + system, databaseUs: databaseUs() });
});
process.on('disconnect', () => {
  void (async () => {
    await close();
    await db.knex.raw('drop schema ?? cascade', [schema]);
    await db.close();
    process.exit(0);
  })();
});
process.send?.({ port, backend: signatureBackend });
