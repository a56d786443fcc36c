/** The maker page's checklist: each step is ticked by what is so, and by nothing else. */
import { expect } from 'chai';
import { CurvebookError } from '../../sdk/src/index.js';
import { stepsOf } from '../../web/src/maker/steps.js';
import { whenReady } from '../../web/src/maker/when-ready.js';

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
  stepsOf(given, true).flatMap(({ name, isDone }) => (isDone === true ? [name] : []));

describe('the checklist of a maker', () => {
  it('ticks nothing for a newcomer, and knows nothing before it was told', () => {
    expect(done(facts())).to.deep.equal([]);
    const unknown = facts(Object.fromEntries(Object.keys(facts()).map((name) => [name, { data: null }])));
    expect(stepsOf(unknown, true).map(({ isDone }) => isDone)).to.deep.equal([null, null, null, null, null, null]);
  });

  it('ticks each step by what is so', () => {
    const account = { data: { approval: 'approved', agents: [{}], scheduled_cancel_ms: 5 } };
    expect(done(facts({ account }))).to.deep.equal(['Approved', 'Agent', 'Scheduled cancel']);
    expect(done(facts({ allowances: { data: new Map([['0xaa', 1n]]) } }))).to.deep.equal(['Allowance']);
    // A deposit uses up the allowance that it needed.
    const withdrawals = { data: { events: [{ event: 'deposited' }] } };
    expect(done(facts({ withdrawals }))).to.deep.equal(['Allowance', 'Deposited']);
    const limits = (balance: string) => ({ data: { ledger: { balances: [{ token: 'WETH', balance }] } } });
    expect(done(facts({ limits: limits('0.00001') }))).to.deep.equal(['Credited']);
    expect(done(facts({ limits: limits('-3') }))).to.deep.equal([]);
  });

  it('does not call a suspended maker approved', () => {
    const [first] = stepsOf(facts({ account: { data: { approval: 'suspended', agents: [] } } }), true);
    expect(first).to.include({ name: 'Approved', isDone: false });
    expect(first?.text).to.contain('suspended');
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
