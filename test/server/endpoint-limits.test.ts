/** Every endpoint declares how often one client may ask, and the table's word is what is served. */
import { expect } from 'chai';
import { settingsSchema } from '../../cli/config.js';
import { createApp } from '../../server/app.js';
import { listen } from '../../server/listen.js';
import { routesOf, type ServedEndpoint } from '../../server/openapi/endpoint.js';
import { PROBE_ENDPOINTS } from '../../server/ops/probes.js';
import { ORDER_ENDPOINTS } from '../../server/orders/endpoints.js';
import { rateLimit, readLimits } from '../../server/rate-limit.js';
import { READ_ENDPOINTS } from '../../server/read/endpoints.js';
import { SWAP_ENDPOINTS } from '../../server/swap/endpoints.js';

const ONCE = { name: 'test', requests: 1, windowSec: 60 };
type Table = readonly ServedEndpoint<unknown>[];
const TABLES: [table: Table, deps: () => unknown][] = [
  [READ_ENDPOINTS as Table, () => ({ limits: readLimits(1), nowMs: () => 0 })],
  [
    SWAP_ENDPOINTS as Table,
    () => ({ limits: { tokens: ONCE, quotes: ONCE, orders: ONCE, submissions: ONCE }, nowMs: () => 0 }),
  ],
  [PROBE_ENDPOINTS as Table, () => ({ limit: rateLimit(ONCE) })],
  [ORDER_ENDPOINTS as Table, () => ({})],
];
const ALL = TABLES.flatMap(([table]) => table);

describe('the limit of each endpoint', () => {
  it('is a setting, and its refusal is documented', () => {
    for (const { method, path, limit, refusals } of ALL) {
      expect(settingsSchema.shape, `${method} ${path}`).to.have.property(limit.setting);
      expect(Object.keys(refusals), `${method} ${path}`).to.include('429');
    }
  });

  it('is counted by the handler of the signed actions and of the queries alone', () => {
    const own = ALL.filter(({ limit }) => limit.count === null);
    expect(own.map(({ path }) => path)).to.deep.equal(['/exchange', '/info']);
  });

  it('holds before anything else runs', async () => {
    const silent = (): void => undefined;
    for (const [table, deps] of TABLES) {
      for (const endpoint of table.filter(({ limit }) => limit.count !== null)) {
        // Elsewhere, since what is answered here is not what the document says.
        const path = `/limited${endpoint.path}`;
        const served: ServedEndpoint<unknown> = { ...endpoint, path, handler: () => (ctx) => void (ctx.body = {}) };
        const app = createApp({ routers: [routesOf([served], deps())], logger: { info: silent, error: silent } });
        const { url, close } = await listen(app, 0, '127.0.0.1');
        try {
          const ask = async (): Promise<number> =>
            (await fetch(url + path.replace(/\{\w+\}/g, '1'), { method: endpoint.method })).status;
          expect([await ask(), await ask()], `${endpoint.method} ${endpoint.path}`).to.deep.equal([200, 429]);
        } finally {
          await close();
        }
      }
    }
  });
});
