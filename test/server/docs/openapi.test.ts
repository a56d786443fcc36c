import { Validator } from '@seriousme/openapi-schema-validator';
import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { API_DOC, API_TYPES, STREAM_TYPES, apiFiles } from '../../../cli/api-doc.js';
import { abiFiles, PACKAGE_ROOT } from '../../../contracts-package/generate.js';
import { createApp } from '../../../server/app.js';
import { ENDPOINTS } from '../../../server/endpoints.js';
import { INFO_TYPES } from '../../../server/orders/info/registry.js';
import { INFO_REPLIES } from '../../../server/orders/info/schemas.js';
import {
  ACTION_TYPES,
  exchangeReplySchema,
  exchangeRequestSchema,
  infoRequestSchema,
} from '../../../server/orders/endpoints.js';
import { listen, type Listening } from '../../../server/listen.js';
import { openApiRoutes } from '../../../server/openapi/routes.js';
import { readLimits } from '../../../server/rate-limit.js';
import { readRoutes } from '../../../server/read/endpoints.js';
import type { ReadDeps } from '../../../server/read/deps.js';
import { conform, conformAnswer, conformWire, DOCUMENT } from '../../support/api/openapi.js';

const INFO = { title: 'Curvebook <test>', version: '1.2.3', description: 'Read & quote', url: null };

describe('The OpenAPI document', () => {
  let listening: Listening | null = null;

  afterEach(async () => {
    await listening?.close();
    listening = null;
  });

  async function start(): Promise<string> {
    const silent = (): void => undefined;
    const app = createApp({
      routers: [openApiRoutes(ENDPOINTS, INFO, readLimits(100).read)],
      logger: { info: silent, error: silent },
    });
    listening = await listen(app, 0, '127.0.0.1');
    return listening.url;
  }

  it('is committed as it is, with the types of the SDK', async () => {
    const { document, types, streamTypes } = await apiFiles();
    expect(readFileSync(API_DOC, 'utf8'), 'run npm run docs:api').to.equal(document);
    expect(readFileSync(API_TYPES, 'utf8'), 'run npm run docs:api').to.equal(types);
    expect(readFileSync(STREAM_TYPES, 'utf8'), 'run npm run docs:api').to.equal(streamTypes);
  });

  it('stands beside the ABIs of what the contracts compiled to', () => {
    for (const [path, text] of Object.entries(abiFiles())) {
      expect(readFileSync(PACKAGE_ROOT + path, 'utf8'), `${path}: run npm run docs:api`).to.equal(text);
    }
  });

  it('is valid OpenAPI 3.1', async () => {
    const { valid, errors } = await new Validator().validate(structuredClone(DOCUMENT));
    expect(valid, JSON.stringify(errors)).to.equal(true);
  });

  it('describes each route of the read API, and no other', () => {
    const served = readRoutes({ limits: readLimits(1) } as ReadDeps)
      .stack.filter((layer) => layer.methods.length > 0)
      .map((layer) => String(layer.path).replace(/:(\w+)/g, '{$1}'));
    const described = Object.keys(DOCUMENT.paths).filter((path) => path === '/health' || path.startsWith('/v0/'));
    expect(described).to.have.members(served);
  });

  it('is served with a validator, and costs nothing when unchanged', async () => {
    const url = await start();
    const first = await fetch(`${url}/openapi.json`);
    expect(((await first.json()) as { info: unknown }).info).to.deep.include({ version: '1.2.3' });
    const etag = first.headers.get('etag') ?? '';
    const second = await fetch(`${url}/openapi.json`, {
      headers: { 'if-none-match': etag },
    });
    expect(second.status).to.equal(304);
  });

  it('names the actions and queries of the wire, and takes recorded requests of its clients', () => {
    const { l1, userSigned } = JSON.parse(
      readFileSync(new URL('../../fixtures/wire-vectors.json', import.meta.url), 'utf8'),
    ) as Record<'l1' | 'userSigned', { action: { type: string }; vaultAddress?: unknown; nonce: number }[]>;
    const known = [...l1, ...userSigned].filter(
      ({ action, vaultAddress }) => ACTION_TYPES.includes(action.type) && (vaultAddress ?? null) === null,
    );
    expect(new Set(known.map(({ action }) => action.type))).to.deep.equal(new Set(ACTION_TYPES));
    for (const request of known)
      expect(exchangeRequestSchema.safeParse(request).error, request.action.type).to.equal(undefined);
    expect(exchangeRequestSchema.safeParse({ ...known[0], nonce: 'x' }).success).to.equal(false);
    const user = `0x${'1'.repeat(40)}`;
    for (const type of INFO_TYPES) {
      const req = { coin: '@0', interval: '1h', startTime: 0 };
      const query = { type, user, oid: 1, startTime: 0, coin: '@0', req };
      expect(infoRequestSchema.safeParse(query).success, type).to.equal(true);
    }
    expect(infoRequestSchema.safeParse({ type: 'nothing' }).success).to.equal(false);
    for (const reply of [
      { status: 'ok', response: { type: 'default' } },
      { status: 'ok', response: { type: 'order', data: { statuses: [{ resting: { oid: 1 } }, { error: 'x: y' }] } } },
      { status: 'err', response: 'unknown_signer: x' },
    ])
      expect(exchangeReplySchema.safeParse(reply).success).to.equal(true);
  });

  it('says by type what queries are answered with, and answers are held against it', async () => {
    expect(Object.keys(INFO_REPLIES)).to.have.members(INFO_TYPES);
    const schema = DOCUMENT.components.schemas.InfoReply as { anyOf: { title?: string; $ref?: string }[] };
    const named = schema.anyOf.flatMap(({ title }) => title?.replace('of ', '').split(', ') ?? []);
    expect(named).to.have.members(INFO_TYPES);

    const said = async (type: string, reply: unknown, status = 200): Promise<string> => {
      const headers = { 'content-type': status === 200 ? 'application/json' : 'text/plain' };
      const answer = new Response(JSON.stringify(reply), { status, headers });
      return conformWire('/info', JSON.stringify({ type }), answer).then(
        () => 'nothing',
        (error: unknown) => (error as Error).message,
      );
    };
    expect(await said('openOrders', [])).to.equal('nothing');
    expect(await said('meta', [])).to.include('the answer to meta differs from its schema');
    expect(await said('userRole', { role: 'user', more: 1 })).to.include('differs from the document');
    expect(await said('userRole', null, 422)).to.equal('nothing');
    expect(await said('userRole', null, 418)).to.include('does not know status 418');
  });

  it('has a page for people that names every endpoint and loads nothing', async () => {
    const url = await start();
    const response = await fetch(`${url}/docs/reference`);
    const page = await response.text();
    expect(response.headers.get('content-type')).to.match(/^text\/html/);
    for (const { path } of ENDPOINTS) expect(page).to.contain(path);
    expect(page).to.contain('Curvebook &lt;test&gt;').and.to.contain('Read &amp; quote');
    expect(page).not.to.match(/<script|src=|https?:\/\//);
  });

  it('is held against every answer that tests fetch, headers included', async () => {
    const headers = { 'content-type': 'application/json', etag: '"1"' };
    const limits = { 'x-ratelimit-limit': '9', 'x-ratelimit-remaining': '8', 'x-ratelimit-reset': '7' };
    const fails = async (status: number, body: string | null, sent: Record<string, string>): Promise<string> =>
      conformAnswer('GET', 'http://127.0.0.1/v0/pairs', new Response(body, { status, headers: sent })).then(
        () => 'nothing',
        (error: unknown) => (error as Error).message,
      );
    const error = JSON.stringify({ error: { code: 'RATE_LIMITED', message: 'slower' } });
    expect(await fails(200, '[]', { ...headers, ...limits })).to.equal('nothing');
    expect(await fails(304, null, { ...headers, ...limits })).to.equal('nothing');
    expect(await fails(200, '[]', headers)).to.include('has no x-ratelimit-limit');
    expect(await fails(200, '[{}]', { ...headers, ...limits })).to.include('differs');
    expect(await fails(200, '[]', { ...headers, ...limits, 'content-type': 'text/plain' })).to.include('is no JSON');
    expect(await fails(429, error, { ...headers, ...limits })).to.include('has no retry-after');
    expect(await fails(418, error, { ...headers, ...limits })).to.include('does not know status 418');
    const { require } = JSON.parse(readFileSync('.mocharc.json', 'utf8')) as { require: string };
    expect(readFileSync(require, 'utf8')).to.include('conformAnswer(');
  });

  it('refuses what it does not describe', () => {
    const pairs = [
      {
        pair: 'A-B',
        base_token: 'A',
        quote_token: 'B',
        tick_size: '0.01',
        lot_size: '1',
        min_order_value: '0',
        delisted: false,
        quarantine: null,
      },
    ];
    conform('GET', '/v0/pairs', 200, pairs);
    expect(() => conform('GET', '/v0/pairs', 200, [{ ...pairs[0], extra: 1 }])).to.throw(/differs/);
    expect(() => conform('GET', '/v0/pairs', 418, [])).to.throw(/status 418/);
    expect(() => conform('GET', '/v0/nothing', 200, [])).to.throw(/does not know/);
    expect(() => conform('GET', '/v0/book/A-B', 404, { error: 'x' })).to.throw(/differs/);
  });
});
