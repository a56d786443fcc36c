/** The maker page: its checklist is ticked by what is so and by nothing else, and what is signed is what was looked at. */
import { expect } from 'chai';
import { CurvebookError } from '../../sdk/src/index.js';
import { approveKept, mayAgentSign } from '../../web/src/maker/agent.js';
import { isOutdated, standingOf } from '../../web/src/maker/edit.js';
import { createPlacing } from '../../web/src/maker/place.js';
import { isUncounted } from '../../web/src/maker/requested.js';
import { stepsOf } from '../../web/src/maker/steps.js';
import { whenReady } from '../../web/src/maker/when-ready.js';
import { drawn } from '../support/console/drawn.js';

type Facts = Parameters<typeof stepsOf>[0];

const facts = (change: Record<string, unknown> = {}): Facts =>
  ({
    account: { data: { approval: 'none', agents: [], scheduled_cancel_ms: null } },
    limits: { data: { ledger: { balances: [{ token: 'WETH', balance: '0' }] } } },
    withdrawals: { data: { events: [] } },
    allowances: { data: new Map([['0xaa', 0n]]) },
    ...change,
  }) as unknown as Facts;

const done = (given: Facts): string[] =>
  stepsOf(given, true, false).flatMap(({ name, isDone }) => (isDone === true ? [name] : []));

describe('the checklist of a maker', () => {
  it('ticks nothing for a newcomer, and knows nothing before it was told', () => {
    expect(done(facts())).to.deep.equal([]);
    const unknown = facts(Object.fromEntries(Object.keys(facts()).map((name) => [name, { data: null }])));
    expect(stepsOf(unknown, true, null).map(({ isDone }) => isDone)).to.deep.equal([
      null,
      null,
      null,
      null,
      null,
      null,
    ]);
  });

  it('ticks each step by what is so', () => {
    const account = { data: { approval: 'approved', agents: [{}], scheduled_cancel_ms: 5 } };
    expect(done(facts({ account }))).to.deep.equal(['Approved', 'Scheduled cancel']);
    expect(done(facts({ allowances: { data: new Map([['0xaa', 1n]]) } }))).to.deep.equal(['Allowance']);
    // A deposit uses up the allowance that it needed.
    const withdrawals = { data: { events: [{ event: 'deposited' }] } };
    expect(done(facts({ withdrawals }))).to.deep.equal(['Allowance', 'Deposited']);
    const limits = (balance: string) => ({ data: { ledger: { balances: [{ token: 'WETH', balance }] } } });
    expect(done(facts({ limits: limits('0.00001') }))).to.deep.equal(['Credited']);
    expect(done(facts({ limits: limits('-3') }))).to.deep.equal([]);
  });

  it('does not call a suspended maker approved', () => {
    const [first] = stepsOf(facts({ account: { data: { approval: 'suspended', agents: [] } } }), true, null);
    expect(first).to.include({ name: 'Approved', isDone: false });
    expect(first?.text).to.contain('suspended');
  });
});

describe('the agent of a tab', () => {
  const NOW_MS = 1_000_000;
  const held = { key: '0x01', address: '0xaa', sinceMs: 0 };
  const agent = (address: string, valid_until_ms = NOW_MS + 1) => ({ address, name: 'console', valid_until_ms });

  const listed = (agents: object[], atMs = NOW_MS) =>
    ({ data: { agents }, atMs }) as Parameters<typeof mayAgentSign>[1];

  it('signs where the account lists the key of this tab, and not for an agent of another tab', () => {
    expect(mayAgentSign(held, listed([agent('0xbb'), agent('0xaa')]), NOW_MS)).to.equal(true);
    for (const agents of [[], [agent('0xbb')], [agent('0xaa', NOW_MS)]])
      expect(mayAgentSign(held, listed(agents), NOW_MS)).to.equal(false);
    expect(mayAgentSign(null, listed([agent('0xaa')]), NOW_MS)).to.equal(false);
    expect(mayAgentSign(null, { data: null, atMs: null }, NOW_MS)).to.equal(false);
  });

  it('is not called missing before it is known, nor by an answer that may be older than it', () => {
    expect(mayAgentSign(held, { data: null, atMs: null }, NOW_MS)).to.equal(null);
    expect(mayAgentSign({ ...held, address: null }, listed([]), NOW_MS)).to.equal(null);
    const fresh = { ...held, sinceMs: NOW_MS - 1_000 };
    const others = [agent('0xbb')];
    expect(mayAgentSign(fresh, listed(others), NOW_MS)).to.equal(null);
    // Nothing newer was answered since.
    expect(mayAgentSign(fresh, listed(others), NOW_MS + 60_000)).to.equal(null);
    expect(mayAgentSign(fresh, listed(others, NOW_MS + 10_000), NOW_MS + 10_000)).to.equal(false);
  });

  /** The keys that the tab stored, one after the other, and which it went on with. */
  async function approving(outcome: Error | null): Promise<{ stored: (string | null)[]; held: string | null }> {
    const stored: (string | null)[] = [];
    let adopted: string | null = null;
    await approveKept('0xnew', {
      former: '0xold',
      store: (key) => void stored.push(key),
      adopt: (key) => void (adopted = key),
      approve: async () => {
        expect(stored).to.deep.equal(['0xnew']);
        if (outcome !== null) throw outcome;
      },
    }).catch((error: unknown) => expect(error).to.equal(outcome));
    return { stored, held: adopted };
  }

  it('has its key before the approval is sent, so that no reload can lose it', async () => {
    expect(await approving(null)).to.deep.equal({ stored: ['0xnew'], held: '0xnew' });
  });

  it('keeps the key while nobody knows whether the approval was stored', async () => {
    const unknown = [
      ...['NO_ANSWER', 'HTTP_ERROR', 'NOT_JSON', 'TOO_LONG', 'outcome_unknown', 'duplicate_nonce'].map(
        (code) => new CurvebookError(code, 'x'),
      ),
      new CurvebookError('INTERNAL_ERROR', 'x', { status: 500 }),
      new Error('what is this'),
    ];
    for (const error of unknown)
      expect(await approving(error), String(error)).to.deep.equal({ stored: ['0xnew'], held: '0xnew' });
  });

  it('takes the key away where the approval is refused for certain, and has the former one again', async () => {
    for (const code of ['REFUSED', 'WRONG_CHAIN', 'WALLET_BUSY', 'unknown_account', 'agent_slots', 'RATE_LIMITED'])
      expect(await approving(new CurvebookError(code, 'x'))).to.deep.equal({ stored: ['0xnew', '0xold'], held: null });
  });

  const desk = async (isAgent: boolean | null, agents: object[]): Promise<string> => {
    const account = { data: { approval: 'approved', agents, scheduled_cancel_ms: null } };
    const props = { session: { address: '0xcc', kind: 'wallet' }, facts: facts({ account }), custody: {}, isAgent };
    const shown = { deployment: { deployment_id: 'd', sandbox: false } };
    return (await drawn('maker/checklist.tsx', 'Checklist', { ...props, onAgent: () => undefined }, shown)).text;
  };

  it('can be made in a tab that has none, whatever agents the account has', async () => {
    const said = await desk(false, [agent('0xbb')]);
    expect(said).to.contain('Make an agent for this tab').and.contain('Agent : to do').and.contain('replaces');
    expect(await desk(false, []))
      .to.contain('Make an agent for this tab')
      .and.not.contain('replaces');
    for (const known of [true, null])
      expect(await desk(known, [agent('0xaa')])).not.to.contain('Make an agent for this tab');
  });
});

describe('the ticket of a maker', () => {
  const token = (symbol: string) => ({ symbol, address: `0x${symbol}` });
  const market = (pair: string, asset: number, tick_size: string, lot_size: string) => {
    const [base, quote] = pair.split('-').map((symbol) => `0x${symbol}`);
    return { ...{ pair, base, quote, asset, tick_size, lot_size }, min_order_value: '10' };
  };
  const [weth, btc] = [market('WETH-USDC', 10_000, '0.01', '0.0001'), market('cbBTC-DAI', 10_001, '0.5', '0.00001')];
  const shown = {
    deployment: { tokens: ['WETH', 'USDC', 'cbBTC', 'DAI'].map(token), markets: [weth, btc] },
    ...{ market: weth, base: 'WETH', quote: 'USDC' },
  };

  /** The ticket, and what it sends. */
  async function ticket(edited: object | null, live: object | null = null): Promise<{ text: string; sent: unknown[] }> {
    const sent: unknown[] = [];
    const orders = {
      order: async ([order]: { pair: string }[]) => (sent.push(order?.pair), [{ oid: 1, error: null }]),
      modify: async (oid: number, { pair, size }: { pair: string; size: string }) => (
        sent.push(oid, pair, size),
        [{ oid, error: null }]
      ),
    };
    const props = { address: '0xcc', orders, live, edited, onEnd: () => undefined, off: null };
    const { text, all } = await drawn('maker/ticket.tsx', 'Ticket', props, shown);
    (all('form')[0]?.onSubmit as (event: object) => void)({ preventDefault: () => undefined });
    await new Promise((done) => setTimeout(done, 0));
    return { text, sent };
  }

  it('places an order in the market of the page', async () => {
    const { text, sent } = await ticket(null);
    for (const says of ['Quote in WETH-USDC', 'Sell WETH', 'Price in USDC, in steps of 0.01', 'steps of 0.0001'])
      expect(text).to.contain(says);
    expect(sent).to.deep.equal(['WETH-USDC']);
  });

  it("changes an order in the order's own market, whichever the page shows", async () => {
    const { text, sent } = await ticket({ market: btc, oid: 7, side: 'sell', price: '65000', size: '0.5' });
    for (const says of ['Change order 7 in cbBTC-DAI', 'Sell cbBTC', 'Price in DAI, in steps of 0.5', 'of 0.00001'])
      expect(text).to.contain(says);
    expect(text).not.to.contain('WETH');
    expect(sent).to.deep.equal([7, 'cbBTC-DAI', '0.5']);
  });

  const edited = { market: btc, oid: 7, side: 'sell', price: '65000', size: '0.5' } as const;
  const open = (...rows: [oid: number, sz: string][]) =>
    ({ isComplete: true, open: new Map(rows.map(([oid, sz]) => [oid, { oid, sz }])) }) as unknown as Parameters<
      typeof standingOf
    >[1];

  it('follows what is left of the order while it is changed, and shows it', async () => {
    expect((await ticket(edited, open([7, '0.5']))).text).not.to.contain('are left');
    const { text, sent } = await ticket(edited, open([7, '0.2']));
    expect(text).to.contain('0.2 of 0.5 cbBTC are left of the order');
    expect(sent).to.deep.equal([7, 'cbBTC-DAI', '0.2']);
  });

  it('changes nothing that is no longer open, and says so', async () => {
    const { text, sent } = await ticket(edited, open([8, '1']));
    expect(text).to.contain('Order 7 is no longer open');
    expect(sent).to.deep.equal([]);
    // Before everything is known, nothing is missing.
    const partly = { isComplete: false, open: new Map() };
    expect((await ticket(edited, partly)).sent).to.deep.equal([7, 'cbBTC-DAI', '0.5']);
    expect(standingOf(edited, null)).to.deep.equal({ left: '0.5', isGone: false });
  });

  it('takes a size that was typed for another rest of the order only once that was seen', () => {
    expect(isOutdated('0.6', '0.5', '0.5')).to.equal(false);
    expect(isOutdated('0.6', '0.2', '0.5')).to.equal(true);
    expect(isOutdated('0.6', '0.2', '0.2')).to.equal(false);
    expect(isOutdated('0.6', '0.1', '0.2')).to.equal(true);
    expect(isOutdated(null, '0.2', '0.5')).to.equal(false);
  });
});

describe('an order that is placed again', () => {
  const terms = { pair: 'WETH-USDC', side: 'sell', price: '2500', size: '1' } as const;
  const failure = (code: string) => new CurvebookError(code, 'x');

  /** Presses with these terms, one after the other, each answered so; the client order ids that were sent, and what was said. */
  async function pressed(presses: { answer: Error | number; change?: object; found?: number | null }[]) {
    const placing = createPlacing();
    const [cloids, said]: [(string | undefined)[], string[]] = [[], []];
    for (const { answer, change, found = null } of presses) {
      const order = async ([one]: readonly { cloid?: string }[]) => {
        cloids.push(one?.cloid);
        if (answer instanceof Error) throw answer;
        return [{ oid: answer, error: null }];
      };
      const told = placing.place({ order }, { ...terms, ...change }, async () => found);
      said.push(await told.catch((error: unknown) => (error as { code: string }).code));
    }
    return { cloids, said };
  }

  it('has the same client order id for as long as it may have been stored', async () => {
    for (const code of ['NO_ANSWER', 'HTTP_ERROR', 'outcome_unknown', 'duplicate_nonce']) {
      const lost = { answer: failure(code) };
      const { cloids, said } = await pressed([lost, { answer: failure('RATE_LIMITED') }, { answer: 5 }, { answer: 6 }]);
      expect(cloids[0], code).to.match(/^0x[0-9a-f]{32}$/);
      expect(cloids.slice(1, 3), code).to.deep.equal([cloids[0], cloids[0]]);
      expect(cloids[3], code).not.to.equal(cloids[0]);
      expect(said[2]).to.equal('order 5 rests in the book');
    }
  });

  it('is another one after a certain refusal, and with other terms', async () => {
    const refused = await pressed([{ answer: failure('off_tick') }, { answer: 5 }]);
    expect(refused.cloids[1]).not.to.equal(refused.cloids[0]);
    for (const change of [{ pair: 'cbBTC-DAI' }, { side: 'buy' }, { price: '2501' }, { size: '2' }]) {
      const { cloids } = await pressed([{ answer: failure('NO_ANSWER') }, { answer: 5, change }]);
      expect(cloids[1], JSON.stringify(change)).not.to.equal(cloids[0]);
    }
  });

  it('is not sent again where it is found, also closed, and rests already where its id is taken', async () => {
    const found = await pressed([{ answer: failure('NO_ANSWER') }, { answer: 6, found: 5 }, { answer: 7 }]);
    expect(found.said[1]).to.contain('order 5 was stored before');
    expect(found.cloids.length).to.equal(2);
    expect(found.cloids[1]).not.to.equal(found.cloids[0]);
    const taken = await pressed([{ answer: failure('NO_ANSWER') }, { answer: failure('duplicate_cloid') }]);
    expect(taken.said[1]).to.contain('rests already');
    expect((await pressed([{ answer: failure('duplicate_cloid') }])).said).to.deep.equal(['duplicate_cloid']);
  });
});

describe('a withdrawal that was just asked for', () => {
  it('is not asked for again unasked until the balances that are shown count it', () => {
    const limits = (next_block: number) => ({ ledger: { next_block } });
    const events = { events: [{ tx_hash: '0xab', block_number: 7 }] } as unknown as Parameters<typeof isUncounted>[2];
    expect(isUncounted(undefined, limits(1), events)).to.equal(false);
    for (const unread of [null, { events: [] }]) expect(isUncounted('0xab', limits(99), unread)).to.equal(true);
    expect(isUncounted('0xab', limits(7), events)).to.equal(true);
    expect(isUncounted('0xAB', limits(8), events)).to.equal(false);
  });
});

describe('executing a claim whose countdown is over', () => {
  const refusal = (code: string): CurvebookError => new CurvebookError(code, 'the contract refuses it');
  const of = async (codes: string[], leftAt = Infinity): Promise<{ told: string; pauses: number }> => {
    let pauses = 0;
    const leaving = new AbortController();
    const execute = (): Promise<string> => {
      const code = codes.shift();
      return code === undefined ? Promise.resolve('done') : Promise.reject(refusal(code));
    };
    const pause = async (): Promise<void> => {
      pauses += 1;
      if (pauses === leftAt) leaving.abort(refusal('LEFT'));
    };
    const told = await whenReady(execute, leaving.signal, pause).catch(
      (error: unknown) => (error as CurvebookError).code,
    );
    return { told, pauses };
  };

  it('waits for the block whose time is late enough', async () => {
    expect(await of(['ClaimNotReady', 'ClaimNotReady'])).to.deep.equal({ told: 'done', pauses: 2 });
  });

  it('asks no more once its page was left', async () => {
    expect(await of(['ClaimNotReady', 'ClaimNotReady'], 1)).to.deep.equal({ told: 'LEFT', pauses: 1 });
  });

  it('does not try again what was refused for another reason, nor without an end', async () => {
    expect(await of(['ClaimNotReady', 'NoClaim', 'ClaimNotReady'])).to.deep.equal({ told: 'NoClaim', pauses: 1 });
    expect(await of(Array.from({ length: 100 }, () => 'ClaimNotReady'))).to.deep.equal({
      told: 'ClaimNotReady',
      pauses: 59,
    });
  });
});
