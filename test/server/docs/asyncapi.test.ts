import asyncApiSpecs from '@asyncapi/specs';
import { Ajv } from 'ajv';
import { expect } from 'chai';
import fc from 'fast-check';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { readFileSync } from 'node:fs';
import { apiFiles, STREAM_DOC } from '../../../cli/api-doc.js';
import { createApp } from '../../../server/app.js';
import { listen, type Listening } from '../../../server/listen.js';
import { openApiRoutes } from '../../../server/openapi/routes.js';
import { readLimits } from '../../../server/rate-limit.js';
import { asyncApiDocument } from '../../../server/stream/document.js';
import { readSubscription } from '../../../server/stream/subscription.js';
import { conformFrame, conformMessage, STREAM_DOCUMENT } from '../../support/api/asyncapi.js';
import { fcOptions } from '../../support/fc.js';
import { MAKERS, WETH_USDC } from '../../support/markets.js';

const OF_COINS = ['l2Book', 'trades', 'bbo', 'candle', 'activeAssetCtx'];

describe('The AsyncAPI document', () => {
  it('is committed as it is', async () => {
    expect(readFileSync(STREAM_DOC, 'utf8'), 'run npm run docs:api').to.equal((await apiFiles()).stream);
  });

  it('is valid AsyncAPI 3.0', () => {
    const ajv = new Ajv({ strict: false, meta: false, validateSchema: false, validateFormats: false });
    const validate = ajv.compile(asyncApiSpecs.schemas['3.0.0']);
    expect(validate(STREAM_DOCUMENT), ajv.errorsText(validate.errors)).to.equal(true);
    expect(validate({ ...STREAM_DOCUMENT, operations: { x: { action: 'sends' } } })).to.equal(false);
  });

  it('refers to nothing that is not there', () => {
    const refs: string[] = [];
    JSON.stringify(STREAM_DOCUMENT, (key, value: unknown) => {
      if (key === '$ref') refs.push(value as string);
      return value;
    });
    expect(refs.length).to.be.greaterThan(20);
    for (const ref of refs) {
      const found = ref
        .slice(2)
        .split('/')
        .reduce<unknown>((at, part) => (at as Record<string, unknown> | undefined)?.[part], STREAM_DOCUMENT);
      expect(ref.startsWith('#/') && found !== undefined, ref).to.equal(true);
    }
  });

  it('names the server as clients see it', () => {
    const info = { title: 't', version: '1', description: '', url: 'https://maker.example:444/x' };
    expect(asyncApiDocument(info).servers).to.deep.equal({ server: { host: 'maker.example:444', protocol: 'wss' } });
  });

  it('is served, and named on the page', async () => {
    const silent = (): void => undefined;
    const routes = openApiRoutes([], { title: 't', version: '7', description: '', url: null }, readLimits(100).read);
    const server = await listen(
      createApp({ routers: [routes], logger: { info: silent, error: silent } }),
      0,
      '127.0.0.1',
    );
    try {
      const served = (await (await fetch(`${server.url}/asyncapi.json`)).json()) as {
        info: { version: string };
        servers: object;
      };
      expect(served.info.version).to.equal('7');
      const host = new URL(server.url).host;
      expect(served.servers).to.deep.equal({ server: { host, protocol: 'ws' } });
      expect(await (await fetch(`${server.url}/docs/reference`)).text()).to.include('href="/asyncapi.json"');
    } finally {
      await server.close();
    }
  });

  describe('where no URL is configured', () => {
    const INFO = { title: 't', version: '7', description: '', url: null };
    let errors: unknown[];
    let server: Listening;
    /** How often a document was made. */
    let made: number;

    beforeEach(async () => {
      errors = [];
      const logger = { info: () => undefined, error: (fields: unknown) => void errors.push(fields) };
      made = 0;
      const info = {
        ...INFO,
        get version() {
          made += 1;
          return INFO.version;
        },
      };
      const routes = openApiRoutes([], info, readLimits(1_000).read);
      server = await listen(createApp({ routers: [routes], logger }), 0, '127.0.0.1');
    });

    afterEach(() => server.close());

    /** Status, tag and body of the answer to a client that names this host. */
    async function ask(host: string, tag = '"none"'): Promise<[number | undefined, string, string]> {
      const asked = get(`${server.url}/asyncapi.json`, { headers: { host, 'if-none-match': tag } });
      const [response] = (await once(asked, 'response')) as [IncomingMessage];
      const body = (await response.toArray()).map(String).join('');
      return [response.statusCode, response.headers.etag ?? '', body];
    }

    const textFor = (host: string): string =>
      JSON.stringify(asyncApiDocument({ ...INFO, url: `http://${host}` }), null, 2);

    it('names the host of the request, under a tag of its own', async () => {
      const [, tag, body] = await ask('maker.example');
      expect(body).to.equal(textFor('maker.example'));
      expect((await ask('maker.example', tag))[0]).to.equal(304);
      const [status, otherTag, other] = await ask('other.example:81', tag);
      expect([status, other]).to.deep.equal([200, textFor('other.example:81')]);
      expect(otherTag).to.not.equal(tag);
    });

    for (const host of ['no name', '1.2.3.4.5', '999.1.1.1', 'maker.example:99999', '[::::]'])
      it(`names a host of its own for ${host}`, async () => {
        const [status, , body] = await ask(host);
        expect(errors).to.deep.equal([]);
        expect([status, body.slice(0, 500)]).to.deep.equal([200, textFor('127.0.0.1:8080').slice(0, 500)]);
      });

    it('is made once, whatever hosts clients name', async () => {
      const before = made;
      expect(before, 'read where a document is made').to.be.greaterThan(0);
      for (let i = 0; i < 50; i++) await ask(`host-${i}.example`);
      expect(made).to.equal(before);
    });
  });

  it('allows a subscription exactly when the server does', () => {
    const nothing = fc.constantFrom<unknown>(undefined, null, '', 0, false, true, 5, [], {}, 'x'.repeat(65));
    const some = <T>(...good: T[]): fc.Arbitrary<unknown> => fc.oneof(fc.constantFrom<unknown>(...good), nothing);
    const subscription = fc.record({
      type: some(
        'orderUpdates',
        'userFills',
        'l2Book',
        'allMids',
        'trades',
        'bbo',
        'candle',
        'activeAssetCtx',
        'userEvents',
        'userHistoricalOrders',
        'userNonFundingLedgerUpdates',
        'userFundings',
        'notification',
        'openOrders',
        'spotState',
        'swapOrders',
        'webData2',
        'fills',
        'curves',
        'status',
      ),
      user: some(MAKERS[0], MAKERS[0]?.slice(2), '0xAB', `0x${'0'.repeat(40)}`),
      coin: some('@0'),
      pair: some('WETH-USDC'),
      dex: some('', null),
      aggregateByTime: some(false, true),
      nSigFigs: some(null, 2, 5),
      mantissa: some(null, 1, 2),
      interval: some('1m', '1M', '6h'),
      extra: nothing,
    });
    const isAllowed = (check: () => unknown): boolean => {
      try {
        check();
        return true;
      } catch {
        return false;
      }
    };
    fc.assert(
      fc.property(subscription, (drawn) => {
        const sent = JSON.parse(JSON.stringify(drawn)) as { type?: unknown; coin?: unknown; pair?: unknown };
        const byServer = isAllowed(() => readSubscription(sent, [WETH_USDC]));
        const message = { method: 'subscribe', subscription: sent };
        const byDocument = isAllowed(() => conformMessage('subscribeRequest', message));
        // Which coins and pairs there are is nothing that a document could say.
        const ofPair = sent.type === 'fills' || sent.type === 'curves';
        if (OF_COINS.includes(String(sent.type)) && sent.coin !== '@0') expect(byServer).to.equal(false);
        else if (ofPair && sent.pair !== 'WETH-USDC') expect(byServer).to.equal(false);
        else expect(byServer, JSON.stringify(sent)).to.equal(byDocument);
      }),
      fcOptions(1_000),
    );
  });

  it('refuses frames that it does not describe', () => {
    conformFrame({ channel: 'pong' });
    expect(() => conformFrame({ channel: 'pong', data: 1 } as { channel: string })).to.throw(/differs/);
    expect(() => conformFrame({ channel: 'funding' })).to.throw(/does not know/);
  });
});
