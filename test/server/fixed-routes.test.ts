import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import Router from '@koa/router';
import { expect } from 'chai';
import Koa from 'koa';
import { fixedRoutes } from '../../server/fixed-routes.js';

/** Two routers that overlap: fixed paths before and behind parameters, and something that runs before all routes of one. */
function createRouters(): Router[] {
  const one = new Router();
  one.get(
    '/plain',
    (ctx, next) => {
      ctx.set('x-before', 'yes');
      return next();
    },
    (ctx) => {
      ctx.body = 'one';
    },
  );
  one.get('/things/:id', (ctx) => {
    ctx.body = `thing ${ctx.params['id']}`;
  });
  one.get('/things/special', (ctx) => {
    ctx.body = `special ${JSON.stringify(ctx.params)}`;
  });
  one.get('/things/:id/parts/:part', (ctx) => {
    ctx.body = `part ${JSON.stringify(ctx.params)}`;
  });
  one.get('/things/:id/parts/all', (ctx) => {
    ctx.body = 'all parts';
  });
  const two = new Router({ prefix: '/two' });
  two.use((ctx, next) => {
    ctx.set('x-two', 'yes');
    return next();
  });
  two.post('/act', (ctx) => {
    ctx.body = 'acted';
  });
  const three = new Router();
  three.all('/plain', (ctx) => {
    ctx.body = 'three';
  });
  three.post('/pass', (_ctx, next) => next());
  return [one, two, three];
}

const REQUESTS = [
  'GET /plain',
  'GET /plain?x=1',
  'HEAD /plain',
  'POST /plain',
  'DELETE /plain',
  'GET /plain/',
  'GET /PLAIN',
  'GET /things/5',
  'GET /things/5?x=1',
  'HEAD /things/5',
  'POST /things/5',
  'GET /things/a%20b',
  'GET /things/%zz',
  'GET /things/',
  'GET /things/5/',
  'GET /THINGS/5',
  'GET /things/5/parts/6',
  'GET /things//parts/6',
  'GET /things/5/parts/all',
  'GET /things/special',
  'POST /two/act',
  'GET /two/act',
  'POST /pass',
  'GET /nothing',
];

async function answers(isFixed: boolean): Promise<{ texts: string[]; tried: number }> {
  const routers = createRouters();
  const app = new Koa();
  if (isFixed) app.use(fixedRoutes(routers));
  let tried = 0;
  app.use((_ctx, next) => {
    tried += 1;
    return next();
  });
  for (const router of routers) app.use(router.routes());
  app.use((ctx) => {
    ctx.status = 404;
    ctx.body = `none for ${ctx.path}`;
  });
  app.use(() => undefined);
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const texts: string[] = [];
    for (const request of REQUESTS) {
      const [method, path] = request.split(' ');
      const { port } = server.address() as AddressInfo;
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { method: method ?? '' });
      const headers = ['x-before', 'x-two', 'content-type'].map((name) => response.headers.get(name));
      texts.push(`${request}: ${response.status} ${headers.join(' ')} ${await response.text()}`);
    }
    return { texts, tried };
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe('fixed routes', () => {
  it('are answered as the routers answer them', async () => {
    const { texts } = await answers(true);
    expect(texts).to.deep.equal((await answers(false)).texts);
    expect(texts[0]).to.equal('GET /plain: 200 yes  text/plain; charset=utf-8 one');
  });

  it('keep the routers from being asked', async () => {
    // Left to the routers: eight spellings, two that two routes take, and four that no handler answers.
    const { tried } = await answers(true);
    expect(tried).to.equal(14);
  });

  it('name the route for whoever counts requests', async () => {
    const app = new Koa();
    let route: unknown;
    app.use(async (ctx, next) => {
      await next();
      route = (ctx as { _matchedRoute?: unknown })._matchedRoute;
    });
    app.use(fixedRoutes(createRouters()));
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    await (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/plain`)).text();
    server.close();
    expect(route).to.equal('/plain');
  });
});
