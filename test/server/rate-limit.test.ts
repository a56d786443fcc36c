import { expect } from 'chai';
import Router from '@koa/router';
import { createApp } from '../../server/app.js';
import { listen } from '../../server/listen.js';
import type { Listening } from '../../server/listen.js';
import { rateLimit } from '../../server/rate-limit.js';
import { errorSchema } from '../../server/read/schemas.js';

const NOW_MS = 1_700_000_000_000;

describe('Rate limits', () => {
  let listening: Listening | null = null;
  let served = 0;

  afterEach(async () => {
    await listening?.close();
    listening = null;
  });

  async function start(requests: number): Promise<string> {
    served = 0;
    const router = new Router();
    router.use(rateLimit({ name: 'test', requests, windowSec: 60 }, () => NOW_MS));
    router.get('/ok', (ctx) => {
      served += 1;
      ctx.body = { ok: true };
    });
    router.get('/refused', (ctx) => {
      ctx.throw(404, 'nothing here');
    });
    const silent = (): void => undefined;
    const app = createApp({ routers: [router], logger: { info: silent, error: silent } });
    listening = await listen(app, 0, '127.0.0.1');
    return listening.url;
  }

  const number = (response: Response, name: string) => parseInt(response.headers.get(name) ?? '', 10);

  it('says on every answer where the client stands, also on refusals', async () => {
    const url = await start(3);
    const paths = ['/ok', '/refused', '/ok'];
    for (const [i, path] of paths.entries()) {
      const response = await fetch(url + path);
      expect(number(response, 'x-ratelimit-limit')).to.equal(3);
      expect(number(response, 'x-ratelimit-remaining')).to.equal(2 - i);
      expect(number(response, 'x-ratelimit-reset')).to.be.within(NOW_MS + 50_000, NOW_MS + 60_000);
      expect(response.headers.has('retry-after')).to.equal(false);
    }
  });

  it('refuses what is beyond the limit before the handler runs, and says when to come back', async () => {
    const url = await start(2);
    await fetch(`${url}/ok`);
    await fetch(`${url}/ok`);
    const response = await fetch(`${url}/ok`);
    expect(response.status).to.equal(429);
    expect(errorSchema.parse(await response.json()).error.code).to.equal('RATE_LIMITED');
    expect(number(response, 'x-ratelimit-remaining')).to.equal(0);
    expect(number(response, 'retry-after')).to.be.within(50, 60);
    expect(served).to.equal(2);
  });
});
