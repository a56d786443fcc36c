/** Arguments that plain JavaScript can pass and that mean nothing: refused by their code, with nothing asked for, signed or sent. */
import { expect } from 'chai';
import { CurvebookError } from '../../sdk/src/errors.js';
import { createMakerClient, type MakerClient, type NewOrder } from '../../sdk/src/maker.js';
import { createTakerClient, type TakerClient } from '../../sdk/src/taker.js';
import { addressOf, codeOf, world } from '../support/api/lying-server.js';

const grid = { asset: 10_000, base: 'WETH', quote: 'USDC', pair: 'WETH-USDC', tick_size: '0.01', lot_size: '0.0001' };
const order: NewOrder = { pair: 'WETH-USDC', side: 'sell', price: '2500', size: '1' };
const swap = { sell: 'USDC', buy: 'WETH', amount: '300', minBuy: '0.1194' };
const cloid = `0x${'5'.repeat(32)}`;
const signature = `0x${'12'.repeat(64)}1b`;

/** Clients whose wallet signs well, and what was asked of it and of the server. */
function clients({ deployment = {}, answers = {} }: { deployment?: object; answers?: Record<string, unknown> } = {}) {
  const { options, signed, sent } = world({
    deployment: { markets: [grid], order_sources: ['a'], ...deployment },
  });
  const posts: string[] = [];
  const fetcher = ((url: string, init: RequestInit = {}) => {
    const { pathname } = new URL(url);
    if (init.method === 'POST') posts.push(`${pathname} ${init.body as string}`);
    if (pathname in answers) return Promise.resolve(new Response(JSON.stringify(answers[pathname])));
    if (pathname !== '/exchange') return options.fetch(url, init);
    const statuses = [{ resting: { oid: 1 } }];
    const body = { status: 'ok', response: { type: 'order', data: { statuses } } };
    return Promise.resolve(new Response(JSON.stringify(body)));
  }) as typeof fetch;
  const signer = {
    ...options.signer,
    async signTypedData(data: never) {
      await options.signer.signTypedData(data);
      return signature;
    },
  };
  const all = { ...options, signer, fetch: fetcher };
  return { maker: createMakerClient(all), taker: createTakerClient(all), all, signed, sent, posts };
}

/** Each is refused, and nobody but the server's description of itself was asked. */
async function expectRefused(jobs: Record<string, (told: ReturnType<typeof clients>) => Promise<unknown>>) {
  for (const [what, perform] of Object.entries(jobs)) {
    const told = clients();
    expect(await codeOf(perform(told)), what).to.equal('BAD_ARGUMENT');
    expect([told.signed, told.sent, told.posts], what).to.deep.equal([[], [], []]);
  }
}

const each = <T>(values: readonly T[], job: (value: never, told: ReturnType<typeof clients>) => Promise<unknown>) =>
  Object.fromEntries(
    values.map((value, i) => [
      `${i}: ${String(value)}`,
      (told: ReturnType<typeof clients>) => job(value as never, told),
    ]),
  );

describe('arguments that mean nothing', () => {
  it('of a side: neither of the two is taken for the other', async () => {
    const wrong = ['Buy', 'SELL', 'bid', 'ask', '', undefined, null, true, false, 1, ['buy'], {}];
    await expectRefused(each(wrong, (side, { maker }) => maker.order([{ ...order, side }])));
    await expectRefused(each(wrong, (side, { maker }) => maker.modify(1, { ...order, side })));
    const { maker, posts } = clients();
    for (const side of ['buy', 'sell'] as const) await maker.order([{ ...order, side }]);
    expect(posts.map((post) => /"b":(\w+)/.exec(post)?.[1])).to.deep.equal(['true', 'false']);
  });

  it('of how long an order lives', async () => {
    const wrong = ['Ioc', 'FrontendMarket', 'alo', 'GTC', '', null, 1, {}];
    await expectRefused(each(wrong, (tif, { maker }) => maker.order([{ ...order, tif }])));
    const { maker, posts } = clients();
    for (const tif of [undefined, 'Alo', 'Gtc'] as const) await maker.order([{ ...order, tif }]);
    expect(posts.map((post) => /"tif":"(\w+)"/.exec(post)?.[1])).to.deep.equal(['Alo', 'Alo', 'Gtc']);
  });

  it('of ids, lists and names', async () => {
    const ids = ['1', 1.5, -1, NaN, Infinity, 2 ** 53, 1n, null, undefined, {}];
    await expectRefused(each(ids, (oid, { maker }) => maker.cancel([{ pair: order.pair, oid }])));
    await expectRefused(each(ids, (oid, { maker }) => maker.modify(oid, order)));
    const cloids = ['0x12', `0x${'g'.repeat(32)}`, '5'.repeat(34), 5, null, {}, `${cloid}5`];
    await expectRefused(each(cloids, (one, { maker }) => maker.order([{ ...order, cloid: one }])));
    await expectRefused(
      each([...cloids, undefined], (one, { maker }) => maker.cancelByCloid([{ pair: order.pair, cloid: one }])),
    );
    for (const list of [undefined, null, 'x', {}, order, [null], ['x']])
      await expectRefused(each([list], (one, { maker }) => maker.order(one)));
    for (const list of [undefined, null, {}, [null], [5]]) {
      await expectRefused(each([list], (one, { maker }) => maker.cancel(one)));
      await expectRefused(each([list], (one, { maker }) => maker.cancelByCloid(one)));
    }
    await expectRefused(each([5, null, {}], (name, { maker }) => maker.approveAgent(addressOf('8'), name)));
    await expectRefused(each(['', 5, null, undefined, {}], (id, { taker }) => taker.cancelGasless(id)));
    const { maker, posts } = clients();
    await maker.order([{ ...order, cloid: cloid.toUpperCase().replace('0X', '0x') }]);
    await maker.cancel([{ pair: order.pair, oid: 7 }]);
    expect([posts[0], posts[1]].map((post) => /"c":"\w+"|"o":\d+/.exec(post!)?.[0])).to.deep.equal([
      `"c":"${cloid}"`,
      '"o":7',
    ]);
  });

  it('of the time of a cancel: it is not taken for none', async () => {
    const wrong = [undefined, NaN, Infinity, 1.5, '1800000000000', 1_800_000_000_000n, new Date(), -1, false];
    await expectRefused(each(wrong, (timeMs, { maker }) => maker.scheduleCancel(timeMs)));
    const { maker, posts } = clients();
    await maker.scheduleCancel(null);
    await maker.scheduleCancel(1_800_000_060_000);
    expect(posts.map((post) => post.includes('"time":1800000060000'))).to.deep.equal([false, true]);
  });

  it('of tokens, of a partner, and of a hash', async () => {
    for (const token of [5, null, undefined, {}, ['USDC']])
      await expectRefused({
        ...each([token], (sell, { taker }) => taker.swapGasless({ ...swap, sell })),
        buy: ({ taker }) => taker.placeLimit({ ...swap, buy: token as never }),
        allow: ({ taker }) => taker.allowGasless(token as never, '1'),
        deposit: ({ maker }) => maker.deposit(token as never, '1'),
      });
    // Without `bps` a partner would get nothing, and nobody would notice.
    const partners = [null, 'x', addressOf('8'), { address: addressOf('8') }, { bps: 5 }, { address: 5, bps: 5 }];
    await expectRefused(each(partners, (partner, { taker }) => taker.swapGasless({ ...swap, partner })));
    await expectRefused(each([5, null, {}, '0x12'], (appData, { taker }) => taker.placeLimit({ ...swap, appData })));
  });

  it('of a swap by a transaction, which pays no partner', async () => {
    const partnered = { ...swap, partner: { address: addressOf('8'), bps: 10 } };
    const hashed = { ...swap, appData: `0x${'ab'.repeat(32)}` };
    await expectRefused({
      // @ts-expect-error -- the type refuses it, too
      partner: ({ taker }) => taker.swap(partnered),
      // @ts-expect-error -- and this
      appData: ({ taker }) => taker.swap(hashed),
    });
  });

  it('of listeners and of a signal, which are found out before a signature is asked for', async () => {
    const limit = { ...swap, validForSec: 60 };
    const { signal } = new AbortController();
    const wrong = [5, 'x', true, () => undefined, signal, { onSubmitted: 5 }, { onSubmitted: {} }];
    await expectRefused(each(wrong, (one, { taker }) => taker.placeLimit(limit, one)));
    await expectRefused(
      each([...wrong, { onQuote: 'x' }], (one, { taker }) => taker.swapGasless(swap, undefined, one)),
    );
    const signals = [5, 'x', true, {}, { aborted: false }, { onQuote: () => undefined }];
    await expectRefused(each(signals, (one, { taker }) => taker.swapGasless(swap, one)));
    await expectRefused(each(signals, (one, { taker }) => taker.placeLimit(limit, {}, one)));
    await expectRefused(each(signals, (one, { taker }) => taker.swap(swap, one)));
    await expectRefused(each(signals, (one, { maker }) => maker.deposit('USDC', '1', one)));
    const { taker } = clients();
    expect(await codeOf(taker.placeLimit(limit, null as never, null as never))).to.equal(null);
    expect(await codeOf(taker.swapGasless(swap, null as never, null as never))).to.equal(null);
  });

  it('of contracts that are trusted: none is not all', async () => {
    const acts: ((all: { taker: TakerClient; maker: MakerClient }) => Promise<unknown>)[] = [
      ({ taker }) => taker.swap(swap),
      ({ taker }) => taker.swapGasless(swap),
      ({ maker }) => maker.deposit('USDC', '1'),
    ];
    for (const perform of acts)
      for (const [contracts, code] of [
        [undefined, 'NO_CONTRACTS'],
        [null, 'NO_CONTRACTS'],
        ['Server', 'NO_CONTRACTS'],
        [true, 'NO_CONTRACTS'],
      ] as const) {
        const { all, signed, sent } = clients();
        const options = { ...all, contracts: contracts as never };
        const made = { taker: createTakerClient(options), maker: createMakerClient(options) };
        expect(await codeOf(perform(made)), String(contracts)).to.equal(code);
        expect([signed, sent]).to.deep.equal([[], []]);
      }
  });

  it('of the clients: a URL and a time that are none', async () => {
    const { all } = clients();
    for (const more of [
      { url: undefined },
      { url: 5 },
      { timeoutMs: 0 },
      { timeoutMs: NaN },
      { timeoutMs: Infinity },
      { timeoutMs: 1.5 },
      { timeoutMs: '10' },
    ])
      for (const create of [createMakerClient, createTakerClient])
        expect(() => create({ ...all, ...more } as never), JSON.stringify(more))
          .to.throw()
          .with.property('code', 'BAD_ARGUMENT');
    const clocked = createMakerClient({ ...all, clock: () => NaN });
    expect(await codeOf(clocked.order([order]))).to.equal('BAD_ARGUMENT');
    const fractions = createMakerClient({ ...all, clock: () => 1_800_000_000_000.25 });
    expect(await codeOf(fractions.order([order])), 'of a clock that is finer').to.equal(null);
  });
});

describe('what a server says that means nothing', () => {
  it('is no error of JavaScript', async () => {
    const token = { symbol: 'WETH', address: addressOf('5'), decimals: 18 };
    const deployments = [
      { contracts: { custodian: null } },
      { contracts: { custodian: { address: 'x' } } },
      { tokens: [null] },
      { tokens: [{ ...token, address: 5 }] },
      { tokens: [{ ...token, decimals: '18' }] },
      { tokens: [{ ...token, decimals: 78 }] },
      { markets: [null] },
      { markets: [{ ...grid, tick_size: 'x' }] },
      { markets: [{ ...grid, lot_size: '0.0000000000000000001' }] },
      { markets: [{ ...grid, lot_size: '0' }] },
      { markets: [{ ...grid, asset: '1' }] },
      { order_sources: undefined },
      { order_sources: [] },
      { order_sources: ['c'] },
    ];
    for (const deployment of deployments) {
      const { maker, signed } = clients({ deployment });
      expect(await codeOf(maker.order([order])), JSON.stringify(deployment)).to.equal('HTTP_ERROR');
      expect(signed).to.deep.equal([]);
    }
    const { maker, posts } = clients({ deployment: { order_sources: ['b'] } });
    expect([await codeOf(maker.order([order])), posts.length]).to.deep.equal([null, 1]);
  });

  it('is an answer to an action that does not say what became of it', async () => {
    const resting = { resting: { oid: 7 } };
    const unsaid = [null, 'NO_ANSWER'] as const;
    for (const [statuses, ...results] of [
      [
        [resting, { error: 'off_tick: no' }],
        [7, null],
        [null, 'off_tick'],
      ],
      [[resting], [7, null], unsaid],
      [[{ resting: null }, 'success'], unsaid, [null, null]],
      [[{ resting: { oid: '7' } }, 5], unsaid, unsaid],
      [[null, resting, resting], unsaid, [7, null]],
      ['none', unsaid, unsaid],
      [undefined, unsaid, unsaid],
    ] as const) {
      const answer = { status: 'ok', response: { type: 'order', data: { statuses } } };
      const { maker } = clients({ answers: { '/exchange': answer } });
      const made = await maker.order([order, order]);
      expect(
        made.map(({ oid, error }) => [oid, error?.code ?? null]),
        JSON.stringify(statuses),
      ).to.deep.equal(results);
    }
    for (const answer of [null, {}, { status: 'ok?' }, { status: 'err' }, { status: 'err', response: {} }, []]) {
      const { maker } = clients({ answers: { '/exchange': answer } });
      expect(await codeOf(maker.order([order])), JSON.stringify(answer)).to.equal('NO_ANSWER');
      expect(await codeOf(maker.scheduleCancel(null)), JSON.stringify(answer)).to.equal('NO_ANSWER');
    }
    const { maker } = clients({ answers: { '/exchange': { status: 'err', response: 'not_ready: wait' } } });
    expect(await codeOf(maker.order([order]))).to.equal('not_ready');
  });

  it('is what came instead of an answer to an action: only what the order interface says of it counts', async () => {
    const changed = [401, 403, 408, 499, 500, 502, 503, 504].flatMap((status): [number, string][] => [
      [status, '<html>'],
      [status, ''],
      [status, 'origin_down: no answer'],
      [status, '{"error":{"code":"INTERNAL_ERROR","message":"no"}}'],
    ]);
    const unsaid: [number, string][] = [
      ...changed,
      [500, 'Internal error'],
      [500, 'standby: of another API'],
      [200, '<html>'],
      [200, ''],
      [200, 'x'.repeat(2 ** 25 + 1)],
      [304, ''],
    ];
    const said: [number, string, string][] = [
      [200, '{"status":"err","response":"off_tick: no"}', 'off_tick'],
      [429, 'null', 'RATE_LIMITED'],
      [429, '<html>', 'RATE_LIMITED'],
      [503, 'standby: nothing was stored', 'standby'],
      [503, 'write_failed: nothing was stored', 'write_failed'],
      [503, 'outcome_unknown: it may have been', 'outcome_unknown'],
      [503, 'replica_lag: too old', 'replica_lag'],
      [422, 'Failed to deserialize the JSON body into the target type: orders', 'HTTP_ERROR'],
      [413, 'The request body is longer than 1048576 bytes', 'HTTP_ERROR'],
      [404, '{}', 'HTTP_ERROR'],
    ];
    const acts: ((maker: MakerClient) => Promise<unknown>)[] = [
      (maker) => maker.order([order]),
      (maker) => maker.cancel([{ pair: order.pair, oid: 7 }]),
      (maker) => maker.scheduleCancel(null),
      (maker) => maker.approveAgent(addressOf('8')),
    ];
    for (const [status, text, code = 'NO_ANSWER'] of [...unsaid, ...said])
      for (const perform of acts) {
        const { all } = clients();
        const fetcher = ((url: string, init: RequestInit = {}) =>
          new URL(url).pathname === '/exchange'
            ? Promise.resolve(new Response(status === 304 ? null : text, { status }))
            : all.fetch(url, init)) as typeof fetch;
        const failure = (await perform(createMakerClient({ ...all, fetch: fetcher })).then(
          () => null,
          (error: unknown) => error,
        )) as CurvebookError | null;
        const what = `${status} ${text.slice(0, 40)}`;
        expect(failure?.code, what).to.equal(code);
        if (code !== 'NO_ANSWER') continue;
        expect(failure?.message, what).to.contain('may have been stored');
        if (status !== 304) expect(failure?.cause, what).to.be.instanceOf(CurvebookError);
      }
  });

  it('is a quote that is not signed', async () => {
    for (const typedData of [
      undefined,
      {},
      { domain: {} },
      { domain: null, message: { nonce: '1' } },
      { message: {} },
      5,
    ]) {
      const { options, signed } = world({ approval: { required: true, type: 'eip2612', typedData } });
      expect(await codeOf(createTakerClient(options).swapGasless(swap)), JSON.stringify(typedData)).to.equal(
        'BAD_QUOTE',
      );
      expect(signed).to.deep.equal([]);
    }
  });

  it('is a signature of a wallet that is none', async () => {
    for (const wrong of ['0xzz', 'hello', '', '0x123', undefined, null, 5, {}, `0x${'12'.repeat(64)}05`]) {
      const { all, posts } = clients();
      const signer = { ...all.signer, signTypedData: () => Promise.resolve(wrong as string) };
      expect(await codeOf(createMakerClient({ ...all, signer }).order([order])), typeof wrong).to.equal(
        'BAD_SIGNATURE',
      );
      expect(posts).to.deep.equal([]);
    }
  });
});
