/** The maker page: its checklist is ticked by what is so and by nothing else, and what is signed is what was looked at. */
import { expect } from 'chai';
import { CurvebookError } from '../../sdk/src/index.js';
import { approveKept, mayAgentSign } from '../../web/src/maker/agent.js';
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
  async function ticket(edited: object | null): Promise<{ text: string; sent: unknown[] }> {
    const sent: unknown[] = [];
    const orders = {
      order: async ([order]: { pair: string }[]) => (sent.push(order?.pair), [{ oid: 1, error: null }]),
      modify: async (oid: number, order: { pair: string }) => (sent.push(oid, order.pair), [{ oid, error: null }]),
    };
    const { text, all } = await drawn(
      ...(['maker/ticket.tsx', 'Ticket', { orders, edited, onEnd: () => undefined, off: null }, shown] as const),
    );
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
    expect(sent).to.deep.equal([7, 'cbBTC-DAI']);
  });
});

describe('executing a claim whose countdown is over', () => {
  const refusal = (code: string): CurvebookError => new CurvebookError(code, 'the contract refuses it');
  const of = async (codes: string[]): Promise<{ told: string; pauses: number }> => {
    let pauses = 0;
    const execute = (): Promise<string> => {
      const code = codes.shift();
      return code === undefined ? Promise.resolve('done') : Promise.reject(refusal(code));
    };
    const pause = (): Promise<unknown> => Promise.resolve(pauses++);
    const told = await whenReady(execute, pause).catch((error: unknown) => (error as CurvebookError).code);
    return { told, pauses };
  };

  it('waits for the block whose time is late enough', async () => {
    expect(await of(['ClaimNotReady', 'ClaimNotReady'])).to.deep.equal({ told: 'done', pauses: 2 });
  });

  it('does not try again what was refused for another reason, nor without an end', async () => {
    expect(await of(['ClaimNotReady', 'NoClaim', 'ClaimNotReady'])).to.deep.equal({ told: 'NoClaim', pauses: 1 });
    expect(await of(Array.from({ length: 100 }, () => 'ClaimNotReady'))).to.deep.equal({
      told: 'ClaimNotReady',
      pauses: 59,
    });
  });
});
