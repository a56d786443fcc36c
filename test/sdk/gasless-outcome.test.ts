/** What a gasless order is said to have become, when answers are lost, late, mangled or not waited for. */
import { expect } from 'chai';
import type { CurvebookError } from '../../sdk/src/errors.js';
import { createTakerClient, type GaslessListeners, type OrderStatus, type TypedData } from '../../sdk/src/taker.js';
import { NOW_MS, world } from '../support/api/lying-server.js';

const swap = { sell: 'USDC', buy: 'WETH', amount: '300' };
const limit = { ...swap, minBuy: '0.1194', validForSec: 60 };
/** Of the quotes of the server, and of `limit`. */
const VALID_TO_SEC = NOW_MS / 1_000 + 60;
/** After which an order that ended must be seen to have. */
const LATE_SEC = 120;

type Reply = [status: number, body: unknown] | 'no answer' | 'endless';
const accepted: Reply = [200, { orderId: 'o', status: 'pending' }];
const pending: Reply = [200, { orderId: 'o', status: 'pending' }];
const filled: Reply = [200, { orderId: 'o', status: 'filled' }];
const refused = (status: number, code: string): Reply => [status, { error: { code, message: 'no' } }];
const notFound = refused(404, 'NOT_FOUND');

function respond(reply: Reply): Promise<Response> {
  if (reply === 'no answer') return Promise.reject(new TypeError('fetch failed'));
  if (reply === 'endless') {
    const chunk = new Uint8Array(2 ** 20);
    return Promise.resolve(new Response(new ReadableStream({ pull: (out) => out.enqueue(chunk) })));
  }
  const [status, body] = reply;
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return Promise.resolve(new Response(status === 304 ? null : text, { status }));
}

interface Told {
  /** What submissions, and then looks at the order, are answered; the last answer stays. */
  submissions?: Reply[];
  looks?: Reply[];
  approval?: object;
  onSign?: (data: TypedData, count: number) => void;
  onPost?: () => void;
  onLook?: (count: number) => void;
}

/** A taker of a server that answers as it is told. */
function takerOf({ submissions = [accepted], looks = [filled], approval, onSign, onPost, onLook }: Told) {
  const { options, signed } = world({ approval });
  const time = { ms: NOW_MS };
  const [posts, asked] = [[] as string[], [] as (AbortSignal | null | undefined)[]];
  const [left, leftLooks] = [[...submissions], [...looks]];
  let count = 0;
  const next = (list: Reply[]): Reply => (list.length > 1 ? list.shift()! : list[0]!);
  const fetcher = ((url: string, init: RequestInit = {}) => {
    const { pathname } = new URL(url);
    if (pathname === '/api/v1/quote') asked.push(init.signal);
    if (pathname === '/api/v1/orders/o') {
      if (init.signal?.aborted === true) return Promise.reject(init.signal.reason as Error);
      count += 1;
      onLook?.(count);
      return respond(next(leftLooks));
    }
    if (pathname !== '/api/v1/orders') return options.fetch(url, init);
    posts.push(init.body as string);
    onPost?.();
    return respond(next(left));
  }) as typeof fetch;
  const signer = {
    ...options.signer,
    async signTypedData(data: TypedData) {
      const signature = await options.signer.signTypedData(data);
      onSign?.(data, signed.length);
      return signature;
    },
  };
  const taker = createTakerClient({ ...options, signer, fetch: fetcher, clock: () => time.ms });
  return { taker, time, posts, asked, signed, looks: () => count };
}

const failureOf = (job: Promise<unknown>): Promise<CurvebookError> =>
  job.then(
    (value) => expect.fail(`succeeded: ${JSON.stringify(value)}`),
    (error: unknown) => error as CurvebookError,
  );

async function outcomeOf(job: Promise<OrderStatus | string>): Promise<string> {
  const done = await job.catch((error: unknown) => (error as CurvebookError).code);
  return typeof done === 'string' ? done : done.status;
}

const clientOrderIdOf = (post: string | undefined): string =>
  (JSON.parse(post ?? '{}') as { clientOrderId: string }).clientOrderId;

describe('what became of a gasless order', () => {
  it('is asked for by an id of its own, on pages over plain HTTP too, which have no crypto.randomUUID', async () => {
    const own = Object.getOwnPropertyDescriptor(crypto, 'randomUUID');
    Object.defineProperty(crypto, 'randomUUID', { value: undefined, configurable: true });
    try {
      const [one, other] = [takerOf({}), takerOf({})];
      for (const { taker } of [one, other]) await taker.swapGasless(limit);
      const ids = [one, other].map(({ posts }) => clientOrderIdOf(posts[0]));
      for (const id of ids)
        expect(id).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(new Set(ids).size).to.equal(2);
    } finally {
      if (own === undefined) Reflect.deleteProperty(crypto, 'randomUUID');
      else Object.defineProperty(crypto, 'randomUUID', own);
    }
  });

  it('is asked again where the answer does not say it: a reader that lags, something in between, a status nobody knows', async () => {
    const unclear: Reply[] = [
      notFound,
      [200, '<html>'],
      [200, {}],
      [200, null],
      [200, { orderId: 'o', status: 'settled' }],
      [304, null],
      [403, 'forbidden: by a firewall'],
      'endless',
      refused(503, 'REPLICA_LAG'),
    ];
    const jobs = unclear.map(async (reply) => {
      const { taker, looks } = takerOf({ looks: [reply, filled] });
      expect([await outcomeOf(taker.swapGasless(swap)), looks()], JSON.stringify(reply)).to.deep.equal(['filled', 2]);
    });
    await Promise.all(jobs);
  });

  it('is called unknown, by its ids, once it must have ended and no answer has said so, and not before', async () => {
    const jobs = [notFound, pending, [200, {}] as Reply, 'no answer' as const].map(async (reply) => {
      const told = takerOf({
        looks: [reply],
        onLook(count) {
          // The second look is at the last moment at which it may be too early to tell.
          told.time.ms = (VALID_TO_SEC + LATE_SEC) * 1_000 + (count > 1 ? 1 : 0);
        },
      });
      const failure = await failureOf(told.taker.swapGasless(swap));
      expect([failure.code, told.looks()]).to.deep.equal(['ORDER_UNKNOWN', 2]);
      const clientOrderId = clientOrderIdOf(told.posts[0]);
      expect(failure.order).to.deep.equal({ orderId: 'o', clientOrderId, validToSec: VALID_TO_SEC });
      expect(failure.message).to.contain('order o ').and.to.contain(clientOrderId);
    });
    await Promise.all(jobs);
  });

  it('is waited for although the clock is ahead', async () => {
    const told = takerOf({ looks: [pending, notFound, filled], onPost: () => (told.time.ms += 3_600_000) });
    expect(await outcomeOf(told.taker.swapGasless(swap))).to.equal('filled');
  });

  it('is unknown when an answer was lost on the way or mangled, whatever others say after that', async () => {
    const lost: Reply[] = [
      'no answer',
      'endless',
      refused(503, 'OUTCOME_UNKNOWN'),
      refused(500, 'INTERNAL_ERROR'),
      // Not of this API.
      refused(502, 'origin_down'),
      [504, ''],
      [403, '<html>'],
      [403, 'forbidden: by a firewall'],
      [200, '<html>'],
      [200, ''],
      [200, {}],
      [200, null],
      [200, { orderId: 7 }],
      [200, { orderId: '' }],
      [304, null],
    ];
    const jobs = lost.flatMap((reply) =>
      [refused(503, 'STANDBY'), refused(400, 'BAD_REQUEST'), reply].map(async (rest) => {
        const { taker, posts } = takerOf({ submissions: [reply, rest] });
        const failure = await failureOf(taker.placeLimit(limit));
        const what = `${JSON.stringify(reply)}, then ${JSON.stringify(rest)}`;
        expect(failure.code, what).to.equal('ORDER_UNKNOWN');
        expect([posts.length, new Set(posts).size], what).to.deep.equal([rest[0] === 400 ? 2 : 5, 1]);
        const clientOrderId = clientOrderIdOf(posts[0]);
        expect(failure.order, what).to.deep.equal({ orderId: null, clientOrderId, validToSec: VALID_TO_SEC });
        expect(failure.message, what).to.contain(clientOrderId);
      }),
    );
    await Promise.all(jobs);
  });

  it('is unknown where a refusal has a code that submissions do not have, above all one by which callers sign again', async () => {
    const wrong: Reply[] = [
      refused(400, 'APPROVAL_NEEDED'),
      refused(429, 'APPROVAL_NEEDED'),
      refused(503, 'APPROVAL_NEEDED'),
      refused(409, 'BAD_QUOTE'),
      refused(400, 'INSUFFICIENT_LIQUIDITY'),
      refused(403, 'BAD_REQUEST'),
      refused(400, 'STANDBY'),
      refused(400, 'RATE_LIMITED'),
      notFound,
      refused(405, 'METHOD_NOT_ALLOWED'),
    ];
    const jobs = wrong.flatMap((reply) =>
      (['swapGasless', 'placeLimit'] as const).map(async (name) => {
        const { taker, posts, signed } = takerOf({ submissions: [reply] });
        const failure = await failureOf(name === 'placeLimit' ? taker.placeLimit(limit) : taker.swapGasless(swap));
        const what = `${name}: ${JSON.stringify(reply)}`;
        expect([failure.code, posts.length, new Set(posts).size, signed.length], what).to.deep.equal([
          ...['ORDER_UNKNOWN', 5, 1, 1],
        ]);
        expect(failure.order?.clientOrderId, what).to.equal(clientOrderIdOf(posts[0]));
      }),
    );
    await Promise.all(jobs);
  });

  it('is what the answer to the same submission says', async () => {
    for (const reply of [[200, '<html>'] as Reply, refused(503, 'OUTCOME_UNKNOWN')]) {
      const { taker, posts } = takerOf({ submissions: [reply, accepted] });
      expect(await outcomeOf(taker.swapGasless(swap))).to.equal('filled');
      expect([posts.length, new Set(posts).size]).to.deep.equal([2, 1]);
    }
  });

  it('is known where each answer says that nothing was stored', async () => {
    const cases: [Reply, string, number][] = [
      [refused(503, 'STANDBY'), 'STANDBY', 5],
      [refused(503, 'WRITE_FAILED'), 'WRITE_FAILED', 5],
      [refused(503, 'TOO_MANY_ORDERS'), 'TOO_MANY_ORDERS', 5],
      [refused(503, 'CHAIN_UNAVAILABLE'), 'CHAIN_UNAVAILABLE', 5],
      [refused(429, 'RATE_LIMITED'), 'RATE_LIMITED', 5],
      [refused(400, 'BAD_REQUEST'), 'BAD_REQUEST', 1],
      [refused(413, 'BAD_REQUEST'), 'BAD_REQUEST', 1],
      [[429, '<html>'], 'RATE_LIMITED', 5],
    ];
    const jobs = cases.map(async ([reply, code, count]) => {
      const { taker, posts } = takerOf({ submissions: [reply] });
      const failure = await failureOf(taker.swapGasless(swap));
      expect([failure.code, failure.order, posts.length]).to.deep.equal([code, null, count]);
    });
    await Promise.all(jobs);
  });
});

describe('a signal that aborts', () => {
  const permit = {
    required: true,
    type: 'eip2612',
    typedData: { domain: { name: 'USD Coin', version: '2' }, message: { nonce: '3' } },
  };
  const ways = {
    swapGasless: (told: ReturnType<typeof takerOf>, signal: AbortSignal, listeners?: GaslessListeners) =>
      told.taker.swapGasless(swap, signal, listeners),
    placeLimit: (told: ReturnType<typeof takerOf>, signal: AbortSignal, listeners?: GaslessListeners) =>
      told.taker.placeLimit(limit, listeners, signal),
  };

  for (const [name, start] of Object.entries(ways)) {
    it(`${name}: ends it with its own reason as long as nothing was submitted, and nothing is signed after it`, async () => {
      const reason = new Error('the page was left');
      const expectEnd = async (
        told: ReturnType<typeof takerOf>,
        mine: AbortController,
        count: number,
        what: string,
      ) => {
        expect(await failureOf(start(told, mine.signal, { onQuote: () => undefined })), what).to.equal(reason);
        expect([told.signed.length, told.posts.length], what).to.deep.equal([count, 0]);
      };
      const early = new AbortController();
      early.abort(reason);
      const idle = takerOf({});
      await expectEnd(idle, early, 0, 'before it began');
      expect(idle.asked, 'no quote is asked for').to.deep.equal([]);
      for (const last of [1, 2]) {
        const mine = new AbortController();
        const onSign = (_data: TypedData, count: number): void => (count === last ? mine.abort(reason) : undefined);
        await expectEnd(takerOf({ approval: permit, onSign }), mine, last, `at signature ${last}`);
      }
    });

    it(`${name}: ends the request of a quote`, async () => {
      const mine = new AbortController();
      const told = takerOf({});
      await start(told, mine.signal);
      expect(told.asked.map((one) => one?.aborted)).to.deep.equal([false]);
      mine.abort();
      expect(told.asked.map((one) => one?.aborted)).to.deep.equal([true]);
    });

    it(`${name}: says under which name the order may be there when the submission was not answered`, async () => {
      const mine = new AbortController();
      const told = takerOf({ submissions: ['no answer'], onPost: () => mine.abort() });
      const failure = await failureOf(start(told, mine.signal));
      const clientOrderId = clientOrderIdOf(told.posts[0]);
      expect([failure.code, told.posts.length]).to.deep.equal(['WAIT_ABORTED', 1]);
      expect(failure.order).to.deep.equal({ orderId: null, clientOrderId, validToSec: VALID_TO_SEC });
      expect(failure.message).to.contain(clientOrderId);
    });

    it(`${name}: ends it with its own reason where the submission was refused`, async () => {
      const mine = new AbortController();
      const told = takerOf({ submissions: [refused(503, 'STANDBY')], onPost: () => mine.abort() });
      expect([await failureOf(start(told, mine.signal)), told.posts.length]).to.deep.equal([mine.signal.reason, 1]);
    });
  }

  it('does not sign a quote that was shown', async () => {
    const mine = new AbortController();
    const told = takerOf({});
    const failure = await failureOf(told.taker.swapGasless(swap, mine.signal, { onQuote: () => mine.abort() }));
    expect([failure, told.signed, told.posts]).to.deep.equal([mine.signal.reason, [], []]);
  });

  it('ends the waiting, not the order: the error says which it is', async () => {
    for (const when of ['with the submission', 'in between', 'at a look'] as const) {
      const mine = new AbortController();
      const told = takerOf({
        looks: [pending],
        ...(when === 'with the submission' && { onPost: () => mine.abort() }),
        ...(when === 'at a look' && { onLook: () => mine.abort() }),
        ...(when === 'in between' && { onLook: () => setTimeout(() => mine.abort(), 20) }),
      });
      const submitted: string[] = [];
      const startedMs = Date.now();
      const failure = await failureOf(
        told.taker.swapGasless(swap, mine.signal, { onSubmitted: (id) => submitted.push(id) }),
      );
      const clientOrderId = clientOrderIdOf(told.posts[0]);
      expect([failure.code, submitted], when).to.deep.equal(['WAIT_ABORTED', ['o']]);
      expect(failure.order, when).to.deep.equal({ orderId: 'o', clientOrderId, validToSec: VALID_TO_SEC });
      expect(failure.message, when).to.contain('order o ').and.to.contain(clientOrderId);
      expect(Date.now() - startedMs, `${when}: at once`).to.be.lessThan(900);
    }
  });

  it('leaves the id of a limit order that was accepted meanwhile', async () => {
    const mine = new AbortController();
    const told = takerOf({ onPost: () => mine.abort() });
    expect(await told.taker.placeLimit(limit, {}, mine.signal)).to.equal('o');
  });
});

describe('a listener that fails', () => {
  const mine = new Error('the page has a fault');
  const failing: Record<string, () => unknown> = {
    throws() {
      throw mine;
    },
    rejects: () => Promise.reject(mine),
    'rejects late': () => new Promise((_resolve, reject) => setTimeout(() => reject(mine), 5)),
  };

  it('does not lose an order that was accepted: the error says which it is', async () => {
    for (const [how, onSubmitted] of Object.entries(failing))
      for (const name of ['swapGasless', 'placeLimit'] as const) {
        const told = takerOf({});
        const { taker } = told;
        const job =
          name === 'placeLimit'
            ? taker.placeLimit(limit, { onSubmitted })
            : taker.swapGasless(swap, undefined, { onSubmitted });
        const failure = await failureOf(job);
        const clientOrderId = clientOrderIdOf(told.posts[0]);
        expect([failure.code, failure.cause, told.posts.length], `${name} ${how}`).to.deep.equal([
          ...['WAIT_ABORTED', mine, 1],
        ]);
        expect(failure.order).to.deep.equal({ orderId: 'o', clientOrderId, validToSec: VALID_TO_SEC });
      }
  });

  it('keeps its own error before anything is signed, and is waited for', async () => {
    for (const [how, onQuote] of Object.entries(failing)) {
      const told = takerOf({});
      expect(await failureOf(told.taker.swapGasless(swap, undefined, { onQuote })), how).to.equal(mine);
      expect([told.signed, told.posts], how).to.deep.equal([[], []]);
    }
  });

  it('is none where there is none', async () => {
    for (const listeners of [undefined, null, {}, { onQuote: null, onSubmitted: undefined }] as never[]) {
      expect(await outcomeOf(takerOf({}).taker.swapGasless(swap, undefined, listeners))).to.equal('filled');
      expect(await outcomeOf(takerOf({}).taker.placeLimit(limit, listeners))).to.equal('o');
    }
  });
});
