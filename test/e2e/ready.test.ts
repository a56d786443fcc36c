/** A start with a long order log: nothing says that it is ready before the port answers and the orders are there. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import type { Address, OrderLogRow } from '../../core/types.js';
import { freePort } from '../../deploy/sandbox/ports.js';
import { openDb } from '../../ledger/db/db.js';
import { appendOrderRows, lastOrderSeq } from '../../ledger/orders/order-log.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { accountOf, startStack, type Stack } from '../support/stack.js';

/** `npm run test:deep` has as many rows as once took half a minute to read. */
const IS_DEEP = process.env.RUNS !== undefined;
const ROWS = IS_DEEP ? 200_000 : 20_000;
/** A probe is to be answered within this, however long the log is. Judged in the deep run, where reading takes many times as long. */
const LONGEST_WAIT_MS = 1_000;
const CHUNK = 2_000;

describe(`a start with ${ROWS} rows in the order log`, function () {
  this.timeout(600_000);
  let stack: Stack;
  let opsUrl: string;
  let maker: Address;
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-ready-'));
  const databaseUrl = `sqlite:${join(folder, 'ledger.sqlite')}`;

  before(async () => {
    const opsPort = await freePort('127.0.0.1');
    opsUrl = `http://127.0.0.1:${opsPort}`;
    stack = await startStack({ databaseUrl, env: { METRICS_PORT: String(opsPort) } });
    maker = accountOf(stack, 'maker1').address.toLowerCase() as Address;
    await stack.operate('maker', 'approve', maker);
    await stack.endServer('SIGTERM');
    await fill();
  });
  after(async () => {
    await stack?.close();
    rmSync(folder, { recursive: true });
  });

  /** Orders that were placed and cancelled, and a last one that is open. */
  async function fill(): Promise<void> {
    const db = await openDb(databaseUrl);
    const writer = await acquireWriter(db, 'order');
    const first = (await lastOrderSeq(db.knex)) + 1;
    const timeMs = Date.now();
    const rowAt = (orderSeq: number): OrderLogRow => {
      const terms = {
        market: 0,
        side: 'bid' as const,
        priceTicks: 1_000n,
        sizeLots: 1n,
        tif: 'Gtc' as const,
        cloid: null,
      };
      const opened = { type: 'open' as const, oid: orderSeq, ...terms };
      const closed = { type: 'close' as const, oid: orderSeq, reason: 'canceled' as const };
      const effects = orderSeq === first + ROWS - 1 ? [opened] : [opened, closed];
      return { orderSeq, timeMs, maker, signer: maker, nonce: timeMs - ROWS + orderSeq, kind: 'order', effects };
    };
    for (let at = 0; at < ROWS; at += CHUNK) {
      const rows = Array.from({ length: Math.min(CHUNK, ROWS - at) }, (_, i) => rowAt(first + at + i));
      await writer.tx((tx) => appendOrderRows(tx, rows));
    }
    await writer.release();
    await db.close();
  }

  /** Status of a probe, or why nobody answers. */
  const probe = (url: string, path = '/ready'): Promise<number | string> =>
    fetch(`${url}${path}`).then(
      async (response) => (await response.text(), response.status),
      (error: unknown) => ((error as Error).cause as { code?: string } | undefined)?.code ?? 'ECONNRESET',
    );

  const openOrders = async (): Promise<number> => {
    const body = JSON.stringify({ type: 'openOrders', user: maker });
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${stack.manifest.serverUrl}/info`, { method: 'POST', body, headers });
    return ((await answer.json()) as unknown[]).length;
  };

  it('is ready once its port answers and every order is there, and its probes answer meanwhile', async () => {
    const startedMs = performance.now();
    const started = stack.startServer();
    let failed: unknown;
    started.catch((error: unknown) => (failed = error));
    const seen = { ops: new Set<number | string>(), api: new Set<number | string>() };
    const waitsMs: number[] = [];
    while (failed === undefined) {
      // The private port first: whatever it promises must hold for what is asked afterwards.
      const askedMs = performance.now();
      const live = await probe(opsUrl, '/live');
      const ops = await probe(opsUrl);
      if (live === 200 && ops !== 200) waitsMs.push(performance.now() - askedMs);
      const api = await probe(stack.manifest.serverUrl);
      seen.ops.add(ops);
      seen.api.add(api);
      if (ops === 200) expect(api, 'the other port').to.equal(200);
      if (api === 200) {
        expect(await openOrders()).to.equal(1);
        if (ops === 200) break;
      }
      await delay(5);
    }
    console.log(`      ready after ${Math.round(performance.now() - startedMs)} ms`);
    await started;
    const longestMs = Math.max(...waitsMs);
    console.log(
      `      ${waitsMs.length} answers of the private port meanwhile, the longest took ${Math.round(longestMs)} ms`,
    );
    expect(waitsMs, 'answers while the log was read').to.have.length.above(1);
    if (IS_DEEP) expect(longestMs).to.be.below(LONGEST_WAIT_MS);
    for (const statuses of Object.values(seen)) {
      const others = [...statuses].filter((one) => one !== 200);
      expect(['ECONNREFUSED', 'ECONNRESET', 503]).to.include.members(others);
    }
  });
});
