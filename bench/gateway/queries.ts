import { Agent, request } from 'node:http';
import { settingsSchema } from '../../cli/config.js';
import { queryWeight } from '../../server/orders/info/weights.js';
import { inRounds, median, medianRatio, type Row } from './measure.js';
import { makers, orderAction, signedBody } from './requests.js';
import { startServer } from './server.js';

const ROUNDS = 5;
const CONNECTIONS = 8;
const QUERIES = 400;
/** Open orders of one maker: an answer of some 200 KiB. */
const ORDERS = 1_000;
const SHORT = JSON.stringify({ type: 'l2Book', coin: '@0' });
const LONG = JSON.stringify({ type: 'frontendOpenOrders', user: makers[0] });

/** Statuses of so many queries over eight connections. */
async function ask(agent: Agent, port: number, body: string, count: number): Promise<number[]> {
  const statuses: number[] = [];
  const headers = { 'content-type': 'application/json', 'content-length': body.length };
  const one = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const sent = request({ port, host: '127.0.0.1', path: '/info', method: 'POST', agent, headers }, (response) => {
        response.resume();
        statuses.push(response.statusCode ?? 0);
        response.once('end', resolve);
      });
      sent.once('error', reject);
      sent.end(body);
    });
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      for (let sent = 0; sent < count / CONNECTIONS; sent += 1) await one();
    }),
  );
  return statuses;
}

/** G16: CPU time of a query that is refused since its address has used up its budget, against one that is answered. */
export async function measureQueries(): Promise<Row[]> {
  const open = await startServer('durable');
  const budgeted = await startServer('budgeted');
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  try {
    for (const server of [open, budgeted]) await server.call(signedBody(orderAction(ORDERS), 0));
    const { QUERIES_PER_MINUTE: perMinute } = settingsSchema.parse({});
    /** CPU time of the server per query, all of which must end with this status. */
    const perQuery =
      (server: typeof open, body: string, status: number, count: number) => async (): Promise<number> => {
        // A new minute may have begun, with a new budget.
        if (status === 429) while (!(await ask(agent, server.port, LONG, count)).every((one) => one === status));
        const beforeUs = await server.cpuUs();
        const statuses = await ask(agent, server.port, body, count);
        if (!statuses.every((one) => one === status)) throw new Error(`not all queries ended with ${status}`);
        return ((await server.cpuUs()) - beforeUs) / statuses.length;
      };
    const us = await inRounds(
      {
        short: perQuery(open, SHORT, 200, QUERIES),
        long: perQuery(open, LONG, 200, QUERIES / 10),
        refused: perQuery(budgeted, LONG, 429, QUERIES),
      },
      ROUNDS,
    );
    const { short, long, refused } = { short: median(us.short), long: median(us.long), refused: median(us.refused) };
    return [
      {
        goal: 'G16',
        what: 'CPU time of a query beyond the budget / of a long answer',
        value: medianRatio(us.refused, us.long),
        unit: 'x',
        bound: { atMost: 0.25 },
      },
      {
        goal: 'G16',
        what: 'the same / of a short answer',
        value: medianRatio(us.refused, us.short),
        unit: 'x',
        bound: { atMost: 1.1 },
      },
      { goal: '', what: 'CPU time of a long answer', value: long, unit: 'us', bound: null },
      { goal: '', what: 'of a short one', value: short, unit: 'us', bound: null },
      { goal: '', what: 'of a refusal', value: refused, unit: 'us', bound: null },
      {
        goal: '',
        what: 'of a core, for short queries within the budget',
        value: (short * perMinute) / queryWeight(JSON.parse(SHORT)) / 600_000,
        unit: '%',
        bound: null,
      },
      {
        goal: '',
        what: 'of a core, for long ones within it',
        value: (long * perMinute) / queryWeight(JSON.parse(LONG)) / 600_000,
        unit: '%',
        bound: null,
      },
    ];
  } finally {
    agent.destroy();
    open.stop();
    budgeted.stop();
  }
}
