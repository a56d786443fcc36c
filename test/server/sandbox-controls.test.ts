import { request } from 'node:http';
import { expect } from 'chai';
import { createApp } from '../../server/app.js';
import { listen } from '../../server/listen.js';
import type { Listening } from '../../server/listen.js';
import { sandboxRoutes } from '../../server/sandbox.js';

const MAKER = `0x${'Ab'.repeat(20)}`;

describe('Sandbox controls', () => {
  let server: Listening;
  const done: string[] = [];
  let standing: string | null = null;

  before(async () => {
    const router = sandboxRoutes({
      accounts: [{ role: 'maker1', address: `0x${'1'.repeat(40)}`, privateKey: `0x${'2'.repeat(64)}` }],
      halt: async (note) => void done.push(`halt ${note}`),
      resume: async () => standing,
      approve: async (maker) => void done.push(`approve ${maker}`),
      restart: () => void done.push('restart'),
    });
    const silent = (): void => undefined;
    const app = createApp({ routers: [router], logger: { info: silent, error: silent }, trustProxy: true });
    server = await listen(app, 0, '127.0.0.1');
  });
  after(() => server.close());
  beforeEach(() => done.splice(0));

  function ask(
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body = '{}',
  ): Promise<{ status: number; body: Record<string, unknown> }> {
    return new Promise((resolve, reject) => {
      const { port } = new URL(server.url);
      const sent = request({ host: '127.0.0.1', port, method, path, headers }, (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString()));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) }));
      });
      sent.on('error', reject);
      sent.end(method === 'GET' ? undefined : body);
    });
  }

  const JSON_BODY = { 'content-type': 'application/json' };

  it('do what the commands do, and name them', async () => {
    expect((await ask('GET', '/sandbox/accounts')).body).to.have.deep.nested.property('[0].role', 'maker1');
    const halted = await ask('POST', '/sandbox/halt', JSON_BODY, '{"note":"try"}');
    expect(halted).to.deep.equal({ status: 200, body: { done: 'halt', command: 'curvebook halt "try"' } });
    await ask('POST', '/sandbox/approve', JSON_BODY, JSON.stringify({ maker: MAKER }));
    expect((await ask('POST', '/sandbox/resume', JSON_BODY)).status).to.equal(200);
    standing = 'halted by canonical_mismatch';
    expect((await ask('POST', '/sandbox/resume', JSON_BODY)).status).to.equal(409);
    await ask('POST', '/sandbox/restart', JSON_BODY);
    expect(done).to.deep.equal(['halt try', `approve ${MAKER.toLowerCase()}`, 'restart']);
  });

  it('serve no other site, no other name and nobody behind a proxy', async () => {
    const { port } = new URL(server.url);
    const refused: Record<string, string>[] = [
      { origin: 'https://example.org' },
      { origin: 'null' },
      { origin: `http://127.0.0.1:${Number(port) + 1}` },
      { host: `rebound.example.org:${port}` },
      { host: `rebound.example.org:${port}`, origin: `http://rebound.example.org:${port}` },
      { 'x-forwarded-for': '127.0.0.1' },
    ];
    for (const headers of refused) {
      const what = JSON.stringify(headers);
      expect((await ask('GET', '/sandbox/accounts', headers)).status, what).to.equal(403);
      expect((await ask('POST', '/sandbox/halt', { ...JSON_BODY, ...headers })).status, what).to.equal(403);
    }
    expect(done).to.deep.equal([]);
    const own = await ask('POST', '/sandbox/halt', { ...JSON_BODY, origin: `http://127.0.0.1:${port}` });
    expect(own.status).to.equal(200);
  });

  it('refuse what they do not know', async () => {
    for (const body of ['{"note":5}', '{"more":1}', 'x', '[]']) {
      expect((await ask('POST', '/sandbox/halt', JSON_BODY, body)).status, body).to.equal(400);
    }
    expect((await ask('POST', '/sandbox/approve', JSON_BODY, '{"maker":"0x12"}')).status).to.equal(400);
    expect((await ask('POST', '/sandbox/halt', { 'content-type': 'text/plain' })).status).to.equal(400);
    expect(done).to.deep.equal([]);
  });
});
