/** How the console's files are served: only its own, under a policy that lets nothing else run. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Middleware } from 'koa';
import { createApp } from '../../server/app.js';
import { consoleRoutes } from '../../server/console.js';
import { listen, type Listening } from '../../server/listen.js';

const silent = (): void => undefined;
const unlimited: Middleware = (_ctx, next) => next();

describe('files of the console', () => {
  let folder: string;
  let listening: Listening;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'curvebook-console-'));
    mkdirSync(join(folder, 'assets'));
    writeFileSync(join(folder, 'index.html'), '<!doctype html><title>Curvebook</title>');
    writeFileSync(join(folder, 'assets', 'main-AB12.js'), 'export {};');
    writeFileSync(join(folder, 'assets', 'main-AB12.js.map'), '{}');
    const docs = { '/docs': '<p>front</p>', '/docs/errors/EXPIRED': '<p>upper</p>', '404': '<p>no such page</p>' };
    writeFileSync(join(folder, 'docs.json'), JSON.stringify({ ...docs, '/docs/errors/expired': '<p>lower</p>' }));
    const routes = consoleRoutes(unlimited, { rpcUrl: 'https://rpc.example.org/v1/secret', folder });
    if (routes === null) throw new Error('nothing was built');
    listening = await listen(createApp({ routers: [routes], logger: { info: silent, error: silent } }), 0, '127.0.0.1');
  });
  after(async () => {
    await listening?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('serves the page at each of its paths, under its policy, and not again when nothing changed', async () => {
    for (const path of ['/', '/market', '/market/WETH-USDC', '/swap', '/maker', '/operator', '/fills/WETH-USDC/7']) {
      const page = await fetch(listening.url + path);
      expect(page.status, path).to.equal(200);
      expect(page.headers.get('content-type')).to.include('text/html');
      const policy = page.headers.get('content-security-policy') ?? '';
      for (const rule of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]) {
        expect(policy.split('; ')).to.include(rule);
      }
      expect(policy.split('; ')).to.include("connect-src 'self' https://rpc.example.org");
      expect(policy).not.to.include('unsafe');
      const etag = page.headers.get('etag') ?? '';
      expect((await fetch(listening.url + path, { headers: { 'if-none-match': etag } })).status).to.equal(304);
    }
  });

  it('serves the docs by their exact paths, under a policy that talks to this server alone', async () => {
    for (const [path, text] of Object.entries({
      '/docs': 'front',
      '/docs/': 'front',
      '/docs/errors/EXPIRED': 'upper',
      '/docs/errors/expired': 'lower',
    })) {
      const page = await fetch(listening.url + path);
      expect(page.status, path).to.equal(200);
      expect(await page.text(), path).to.include(text);
      expect((page.headers.get('content-security-policy') ?? '').split('; ')).to.include("connect-src 'self'");
      const etag = page.headers.get('etag') ?? '';
      expect((await fetch(listening.url + path, { headers: { 'if-none-match': etag } })).status).to.equal(304);
    }
    for (const path of [
      '/docs/nowhere',
      '/docs/404',
      '/docs/errors/..%2f..%2fexpired',
      '/docs/errors/Expired',
      '/docs/__proto__',
    ]) {
      const page = await fetch(listening.url + path);
      expect(page.status, path).to.equal(404);
      expect(await page.text(), path).to.include('no such page');
      expect(page.headers.get('content-security-policy')).to.include("default-src 'none'");
    }
  });

  it('serves the files that it loads for good, and no others', async () => {
    const script = await fetch(`${listening.url}/assets/main-AB12.js`);
    expect(script.status).to.equal(200);
    expect(script.headers.get('content-type')).to.include('text/javascript');
    expect(script.headers.get('cache-control')).to.include('immutable');
    const others = ['main-AB12.js.map', 'nothing.js', '..%2findex.html', '%2e%2e%2f%2e%2e%2fpackage.json'];
    for (const name of others) {
      const missing = await fetch(`${listening.url}/assets/${name}`);
      expect([missing.status, missing.headers.get('content-type')], name).to.deep.equal([
        404,
        'text/plain; charset=utf-8',
      ]);
    }
  });

  it('talks to nobody else where no endpoint is named, or one that is none', async () => {
    for (const rpcUrl of [null, 'javascript:alert(1)', "http:// ; script-src 'unsafe-inline'", 'nonsense']) {
      const routes = consoleRoutes(unlimited, { rpcUrl, folder });
      if (routes === null) throw new Error('nothing was built');
      const app = createApp({ routers: [routes], logger: { info: silent, error: silent } });
      const served = await listen(app, 0, '127.0.0.1');
      const policy = (await fetch(served.url)).headers.get('content-security-policy') ?? '';
      await served.close();
      expect(policy.split('; '), String(rpcUrl)).to.include("connect-src 'self'");
    }
  });

  it('has no pages without a build', () => {
    expect(consoleRoutes(unlimited, { folder: join(folder, 'nowhere') })).to.equal(null);
  });
});
