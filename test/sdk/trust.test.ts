import { expect } from 'chai';
import { createMakerClient } from '../../sdk/src/maker.js';
import { createTakerClient } from '../../sdk/src/taker.js';
import type { DirectSwap, Swap } from '../../sdk/src/taker.js';
import {
  addressOf,
  permit2,
  USDC,
  contracts,
  NOW_MS,
  PRICE,
  type World,
  world,
  codeOf,
} from '../support/api/lying-server.js';

describe('what a server that lies gets signed', () => {
  const offer: DirectSwap = { sell: 'USDC', buy: 'WETH', amount: '300' };
  const cases: [string, World, Partial<Swap>, string | null][] = [
    ['an honest quote', {}, {}, null],
    ['a minimum of 1 wei', { quote: { buyAmount: '1', minBuyAmount: '1' } }, {}, 'BAD_QUOTE'],
    ['a unit less than the least', { quote: { minBuyAmount: '119399999999999999' } }, {}, 'BAD_QUOTE'],
    [
      'a fee within bounds',
      { quote: { feeAmount: '3000000', buyAmount: '1', minBuyAmount: '118206000000000000' } },
      {},
      null,
    ],
    [
      'less than that fee explains',
      { quote: { feeAmount: '3000000', buyAmount: '1', minBuyAmount: '118205999999999999' } },
      {},
      'BAD_QUOTE',
    ],
    [
      'a fee beyond a hundredth',
      { quote: { feeAmount: '3000001', minBuyAmount: '118206000000000000' } },
      {},
      'FEE_TOO_HIGH',
    ],
    ['a fee beyond what was bounded', { quote: { feeAmount: '3' } }, { maxFee: '0.000002' }, 'FEE_TOO_HIGH'],
    ['a fee of all', { quote: { feeAmount: '300000000' } }, { maxFee: '300' }, 'FEE_TOO_HIGH'],
    ['a negative fee', { quote: { feeAmount: '-5' } }, {}, 'BAD_QUOTE'],
    ['another amount', { quote: { sellAmount: '300000001' } }, {}, 'BAD_QUOTE'],
    ['a day of validity', { quote: { validTo: NOW_MS / 1_000 + 86_400 } }, {}, 'BAD_QUOTE'],
    ['a price that fell meanwhile', { prices: [PRICE * 2n, PRICE] }, {}, null],
    ['nothing on-chain', { prices: [0n] }, {}, 'NO_MINIMUM'],
    ['nothing on-chain, above the minimum', { prices: [0n] }, { minBuy: '0.11' }, null],
    ['nothing on-chain, below the minimum', { prices: [0n] }, { minBuy: '0.12' }, 'BAD_QUOTE'],
    ['a minimum above the price', {}, { minBuy: '0.12' }, 'BAD_QUOTE'],
  ];
  for (const [what, lie, more, code] of cases) {
    it(`${what}: ${code ?? 'signed'}`, async () => {
      const { options, signed } = world(lie);
      expect(await codeOf(createTakerClient(options).swapGasless({ ...offer, ...more }))).to.equal(code);
      expect(signed).to.have.length(code === null ? 1 : 0);
    });
  }

  it('a quote that another block made poor is asked for again, a few times, and a good one is signed', async () => {
    for (const [poor, code, asked] of [
      [2, null, 3],
      [3, 'BAD_QUOTE', 3],
    ] as const) {
      const { options, signed } = world();
      let quotes = 0;
      const changing = (async (url: string, init: RequestInit = {}) => {
        const reply = await options.fetch(url, init);
        if (!url.endsWith('/quote')) return reply;
        quotes += 1;
        const least = ((PRICE * 9_950n) / 10_000n).toString();
        return new Response(quotes > poor ? await reply.text() : (await reply.text()).replace(least, '5'));
      }) as typeof fetch;
      const swapped = createTakerClient({ ...options, fetch: changing }).swapGasless(offer);
      expect([await codeOf(swapped), quotes, signed.length]).to.deep.equal([code, asked, code === null ? 1 : 0]);
    }
  });

  it('an approval is signed for the token and for Permit2 only, whatever the server says of it', async () => {
    const evil = addressOf('8');
    const typedData = {
      domain: { name: 'USD Coin', version: '2', chainId: 1, verifyingContract: evil, salt: evil },
      primaryType: 'PermitWitnessTransferFrom',
      types: { Permit: [{ name: 'spender', type: 'address' }] },
      message: { owner: evil, spender: evil, value: '1', nonce: '3', deadline: '99999999999' },
    };
    for (const type of ['eip2612', 'dai']) {
      const { options, signed } = world({ approval: { required: true, type, typedData } });
      expect(await codeOf(createTakerClient(options).swapGasless(offer))).to.equal(null);
      const [approval, order] = signed;
      expect([signed.length, order?.primaryType]).to.deep.equal([2, 'PermitWitnessTransferFrom']);
      expect([approval?.primaryType, Object.keys(approval?.types ?? {})]).to.deep.equal(['Permit', ['Permit']]);
      expect(approval?.domain).to.deep.equal({
        name: 'USD Coin',
        version: '2',
        chainId: 8453,
        verifyingContract: USDC,
      });
      const until = `${NOW_MS / 1_000 + 60}`;
      const [owner, value] = [addressOf('9'), (2n ** 256n - 1n).toString()];
      expect(approval?.message).to.deep.equal(
        type === 'dai'
          ? { holder: owner, spender: permit2, nonce: '3', expiry: until, allowed: true }
          : { owner, spender: permit2, value, nonce: '3', deadline: until },
      );
    }
  });

  it('no approval is signed that is not needed, and none without saying so where the token takes none', async () => {
    const typedData = { domain: {}, message: { nonce: '0' } };
    const cases: [object, string | null, number][] = [
      [{ required: false, type: 'eip2612', typedData }, null, 1],
      [{ required: true, type: 'none', typedData: null }, 'APPROVAL_NEEDED', 0],
      [{ required: true, type: 'none', typedData }, 'APPROVAL_NEEDED', 0],
      [{ required: true, type: 'dai', typedData: { domain: {}, message: { nonce: '-1' } } }, 'BAD_QUOTE', 0],
    ];
    for (const [approval, code, count] of cases) {
      const { options, signed } = world({ approval });
      expect(await codeOf(createTakerClient(options).swapGasless(offer))).to.equal(code);
      expect(signed).to.have.length(count);
    }
  });

  it('an allowance that orders on their way take is raised by what one more takes, and by nothing the server says', async () => {
    const approval = { required: true, type: 'none', typedData: null };
    const { options, sent } = world({ approval, allowanceUnits: 500_000_000n });
    const taker = createTakerClient(options);
    expect(await taker.allowGasless('USDC', '300')).to.equal(null);
    expect(await codeOf(taker.swapGasless(offer))).to.equal('APPROVAL_NEEDED');
    expect(await taker.allowGasless('USDC', '300')).to.equal('0xhash');
    expect(sent.map(({ data }) => BigInt(`0x${data.slice(-64)}`))).to.deep.equal([800_000_000n]);
    // Once for each time that it was needed.
    expect(await taker.allowGasless('USDC', '300')).to.equal(null);
  });

  it('an allowance without a limit, or nearly, is not raised beyond what an allowance can be', async () => {
    const approval = { required: true, type: 'none', typedData: null };
    const most = 2n ** 256n - 1n;
    for (const [allowanceUnits, raised] of [
      [most, []],
      [most - 1n, [most]],
      [most - 300_000_000n, [most]],
    ] as const) {
      const { options, sent } = world({ approval, allowanceUnits });
      const taker = createTakerClient(options);
      expect(await codeOf(taker.swapGasless(offer))).to.equal('APPROVAL_NEEDED');
      expect(await taker.allowGasless('USDC', '300')).to.equal(raised.length === 0 ? null : '0xhash');
      expect(sent.map(({ data }) => BigInt(`0x${data.slice(-64)}`))).to.deep.equal(raised);
    }
  });

  it('a limit order is signed as it was asked for, or not at all', async () => {
    const limit = { sell: 'USDC', buy: 'WETH', amount: '300', minBuy: '0.13', validForSec: 600 };
    const validTo = NOW_MS / 1_000 + 600;
    const minBuyAmount = '130000000000000000';
    const { options, signed } = world({ quote: { minBuyAmount, validTo, feeAmount: '299999999' } });
    expect(await createTakerClient(options).placeLimit(limit)).to.equal('o');
    const message = signed[0]?.message as { deadline: string; permitted: object; witness: { minAmountOut: string } };
    expect([message.deadline, message.permitted, message.witness.minAmountOut]).to.deep.equal([
      `${validTo}`,
      { token: USDC, amount: '300000000' },
      minBuyAmount,
    ]);
    const lies = [
      { minBuyAmount: '129999999999999999', validTo },
      { minBuyAmount, validTo: validTo + 1 },
      { minBuyAmount, validTo, sellAmount: '300000001' },
    ];
    for (const quote of lies) {
      const liar = world({ quote });
      expect(await codeOf(createTakerClient(liar.options).placeLimit(limit))).to.equal('BAD_QUOTE');
      expect(liar.signed).to.have.length(0);
    }
    for (const validForSec of [59, 0.5, 30 * 86_400 + 1]) {
      expect(await codeOf(createTakerClient(options).placeLimit({ ...limit, validForSec }))).to.equal('BAD_ARGUMENT');
    }
  });

  it('JSON of another API is refused by its code', async () => {
    for (const body of [
      'null',
      '{}',
      '[]',
      '"x"',
      '5',
      '{"chain_id":8453}',
      '{"chain_id":8453,"contracts":null,"tokens":[],"markets":[]}',
    ]) {
      const { options, signed, sent } = world();
      const other = (() => Promise.resolve(new Response(body))) as unknown as typeof fetch;
      const [taker, maker] = [
        createTakerClient({ ...options, fetch: other }),
        createMakerClient({ ...options, fetch: other }),
      ];
      for (const asked of [
        taker.swap(offer),
        taker.swapGasless(offer),
        maker.deposit('USDC', '1'),
        maker.cancel([{ pair: 'WETH-USDC', oid: 1 }]),
      ])
        expect(await codeOf(asked), body).to.equal('HTTP_ERROR');
      const quoted = createTakerClient({
        ...options,
        fetch: ((url: string) => (url.endsWith('/quote') ? other(url) : options.fetch(url))) as typeof fetch,
      });
      expect(await codeOf(quoted.swapGasless(offer)), body).to.equal('BAD_QUOTE');
      expect([signed, sent]).to.deep.equal([[], []]);
    }
  });

  it('what is no exact decimal is refused by its code, numbers included, before anything is signed', async () => {
    const grid = {
      asset: 10_000,
      base: 'WETH',
      quote: 'USDC',
      pair: 'WETH-USDC',
      tick_size: '0.01',
      lot_size: '0.0001',
    };
    const { options, signed, sent } = world({ deployment: { markets: [grid] } });
    const [taker, maker] = [createTakerClient(options), createMakerClient(options)];
    const order = { pair: 'WETH-USDC', side: 'buy', price: '2500', size: '1' } as const;
    // 300 without quotes, as plain JavaScript passes it.
    const wrong: unknown[] = [
      '1e3',
      '-1',
      '+1',
      ' 1',
      '',
      '1.',
      '0x10',
      '1,5',
      '9'.repeat(200),
      300,
      1.5,
      10n,
      null,
      {},
    ];
    for (const value of wrong) {
      const amount = value as string;
      const asked: Promise<unknown>[] = [
        taker.swap({ ...offer, amount }),
        taker.swapGasless({ ...offer, amount }),
        taker.placeLimit({ ...offer, minBuy: amount }),
        taker.allowGasless('USDC', amount),
        maker.deposit('USDC', amount),
        maker.requestWithdraw('USDC', amount),
        maker.order([{ ...order, price: amount }]),
        maker.order([{ ...order, size: amount }]),
      ];
      for (const [i, promise] of asked.entries())
        expect(await codeOf(promise), `${i}: ${amount}`).to.equal('BAD_ARGUMENT');
    }
    expect(await codeOf(taker.swapGasless({ ...offer, maxFee: '0.0000001' })), 'too fine').to.equal('BAD_ARGUMENT');
    expect([signed, sent]).to.deep.equal([[], []]);
  });

  it('a partner and a hash are signed as they were asked for, whatever the server says, and count in the least', async () => {
    const partner = { address: addressOf('8'), bps: 100 };
    const appData = `0x${'AB'.repeat(32)}`;
    const least = (PRICE * 9_900n * 9_950n) / 10_000n ** 2n;
    const lie = { partnerFee: { partner: addressOf('7'), bps: 500 } };
    const swap = { ...offer, partner, appData };
    const { options, signed } = world({ quote: { buyAmount: '1', minBuyAmount: `${least}`, ...lie } });
    expect(await codeOf(createTakerClient(options).swapGasless(swap))).to.equal(null);
    const { types, message } = signed[0]!;
    expect(Object.keys(types)).to.include('PartnerOrderWitness');
    expect((message as { witness: object }).witness).to.deep.include({
      ...{ partner: addressOf('8'), partnerBps: '100', appData: appData.toLowerCase() },
    });
    const less = world({ quote: { buyAmount: '1', minBuyAmount: `${least - 1n}` } });
    expect(await codeOf(createTakerClient(less.options).swapGasless(swap))).to.equal('BAD_QUOTE');
    for (const wrong of [
      { partner: { ...partner, bps: 1_001 } },
      { partner: { ...partner, bps: 0.5 } },
      { appData: '0x12' },
    ])
      expect(await codeOf(createTakerClient(options).swapGasless({ ...offer, ...wrong }))).to.equal('BAD_ARGUMENT');
  });

  it('a submission that is not answered is the same one again, and a status that is not is asked for again', async () => {
    const { options } = world();
    const bodies: string[] = [];
    const failing = new Map([
      ['POST /api/v1/orders', [504, 0]],
      ['GET /api/v1/orders/o', [429, 0, 503]],
    ]);
    const unreliable = ((url: string, init: RequestInit = {}) => {
      const asked = `${init.method ?? 'GET'} ${new URL(url).pathname}`;
      if (asked === 'POST /api/v1/orders') bodies.push(init.body as string);
      const fault = failing.get(asked)?.shift();
      if (fault === 0) return Promise.reject(new TypeError('fetch failed'));
      if (fault !== undefined) return Promise.resolve(new Response('', { status: fault }));
      return options.fetch(url, init);
    }) as typeof fetch;
    const { status } = await createTakerClient({ ...options, fetch: unreliable }).swapGasless(offer);
    expect([status, bodies.length, new Set(bodies).size]).to.deep.equal(['filled', 3, 1]);
    expect([...failing.values()].flat()).to.deep.equal([]);
  });

  it('a submission that nobody answers says under which name the order may be there', async () => {
    const { options } = world();
    let count = 0;
    const silent = ((url: string, init: RequestInit = {}) => {
      if (!(init.method === 'POST' && url.endsWith('/orders'))) return options.fetch(url, init);
      count += 1;
      return Promise.reject(new TypeError('fetch failed'));
    }) as typeof fetch;
    const asked = createTakerClient({ ...options, fetch: silent }).placeLimit({ ...offer, minBuy: '0.1194' });
    expect([await codeOf(asked), count]).to.deep.equal(['BAD_QUOTE', 0]);
    const swapped = createTakerClient({ ...options, fetch: silent }).swapGasless(offer);
    const failure = (await swapped.catch((error: unknown) => error)) as { code: string; message: string };
    expect(failure.code).to.equal('ORDER_UNKNOWN');
    expect(failure.message).to.match(/order [0-9a-f-]{36} /);
    expect(count).to.equal(5);
  }).timeout(60_000);

  it('an order is cancelled by a signature over its id for this settler', async () => {
    const { options, signed } = world();
    await createTakerClient(options).cancelGasless('o');
    expect([signed[0]?.primaryType, signed[0]?.message, signed[0]?.domain['verifyingContract']]).to.deep.equal([
      'OrderCancellation',
      { orderId: 'o' },
      contracts.orderSettler,
    ]);
  });

  it('an order counts as cancelled only where the answer says so, of that order', async () => {
    const cases: [number, unknown, string | null][] = [
      [200, { orderId: 'o', quoteId: 'q', status: 'failed' }, null],
      [200, { orderId: 'o', status: 'filled' }, 'ORDER_ENDED'],
      [200, { orderId: 'o', status: 'expired' }, 'ORDER_ENDED'],
      [200, { orderId: 'o', status: 'pending' }, 'NO_ANSWER'],
      [200, { orderId: 'o', status: 'cancelled' }, 'NO_ANSWER'],
      [200, { orderId: 'p', status: 'failed' }, 'NO_ANSWER'],
      [200, { status: 'failed' }, 'NO_ANSWER'],
      ...[{}, null, [], '<html>', ''].map((body): [number, unknown, string] => [200, body, 'NO_ANSWER']),
      [304, '', 'NO_ANSWER'],
      [502, '<html>', 'NO_ANSWER'],
      [500, { error: { code: 'INTERNAL_ERROR', message: 'no' } }, 'NO_ANSWER'],
      [403, '<html>', 'NO_ANSWER'],
      [409, '<html>', 'NO_ANSWER'],
      [409, { error: { code: 'ORDER_SENT', message: 'no' } }, 'ORDER_SENT'],
      [409, { error: { code: 'ORDER_ENDED', message: 'no' } }, 'ORDER_ENDED'],
      [404, { error: { code: 'NOT_FOUND', message: 'no' } }, 'NOT_FOUND'],
      [400, { error: { code: 'BAD_REQUEST', message: 'no' } }, 'BAD_REQUEST'],
      [429, { error: { code: 'RATE_LIMITED', message: 'no' } }, 'RATE_LIMITED'],
      [503, { error: { code: 'CHAIN_UNAVAILABLE', message: 'no' } }, 'CHAIN_UNAVAILABLE'],
      [503, { error: { code: 'OUTCOME_UNKNOWN', message: 'no' } }, 'OUTCOME_UNKNOWN'],
    ];
    for (const [status, body, code] of cases) {
      const { options } = world();
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const fetcher = ((url: string, init: RequestInit = {}) =>
        init.method === 'DELETE'
          ? Promise.resolve(new Response(status === 304 ? null : text, { status }))
          : options.fetch(url, init)) as typeof fetch;
      const cancelled = createTakerClient({ ...options, fetch: fetcher }).cancelGasless('o');
      expect(await codeOf(cancelled), `${status} ${text}`).to.equal(code);
    }
  });

  it('a swap in a transaction takes no less than its minimum either', async () => {
    const { options, sent } = world();
    const taker = createTakerClient(options);
    expect(await codeOf(taker.swap({ ...offer, minBuy: '0.1200001' }))).to.equal('BELOW_MINIMUM');
    expect(sent).to.have.length(0);
    await taker.swap({ ...offer, minBuy: '0.12' });
    expect(BigInt(`0x${sent[0]?.data.slice(10 + 64 * 3, 10 + 64 * 4)}`)).to.equal(PRICE);
  });
});
