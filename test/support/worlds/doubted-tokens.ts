/** Two makers with three tokens, of which a test makes some lie. */
import { expect } from 'chai';
import type { Address, Hex } from '../../../core/types.js';
import { lieOn, more, word, type ASKED, type Lie } from '../nodes/lying-tokens.js';
import { startTokenWorld, type TokenWorld, type TokenWorldOptions } from './token-world.js';
import type { OpenTestDb } from '../db.js';

export const WETH = 10n ** 18n;
export const USDC = 10n ** 6n;
export const WETH_USDC = 0;
export const WETH_DAI = 1;

interface Case {
  asked: keyof typeof ASKED;
  lie: Lie;
  code: string;
  /** How an endpoint words a revert. */
  reverts?: string;
}

export const text = (symbol: string): Hex =>
  `0x${'20'.padStart(64, '0')}${symbol.length.toString(16).padStart(64, '0')}${Buffer.from(symbol).toString('hex').padEnd(64, '0')}`;

export const CASES: [string, Case][] = [
  ['its balance reverts', { asked: 'balanceOf', lie: () => null, code: 'no_answer' }],
  [
    'its balance reverts, and endpoints have their own words for that',
    { asked: 'balanceOf', lie: () => null, code: 'no_answer', reverts: 'VM execution error.' },
  ],
  ['it has no code any more', { asked: 'balanceOf', lie: () => '0x', code: 'no_answer' }],
  ['its balance is too short', { asked: 'balanceOf', lie: () => '0x01', code: 'bad_answer' }],
  ['its balance is too long', { asked: 'balanceOf', lie: () => `0x${'00'.repeat(40)}`, code: 'bad_answer' }],
  ['its balance is all ones', { asked: 'balanceOf', lie: () => `0x${'ff'.repeat(32)}`, code: 'bad_answer' }],
  ['its balance falls without a transfer', { asked: 'balanceOf', lie: more(-1n), code: 'balance_decreased' }],
  ['it is paused, or has the vault on a list', { asked: 'transfer', lie: () => null, code: 'transfers_fail' }],
  ['it transfers nothing, and says so', { asked: 'transfer', lie: () => word(0n), code: 'transfers_fail' }],
  ['it changes its decimals', { asked: 'decimals', lie: () => word(6n), code: 'decimals_changed' }],
  ['it has no decimals any more', { asked: 'decimals', lie: () => null, code: 'decimals_changed' }],
  ['it changes its symbol', { asked: 'symbol', lie: () => text('USDC'), code: 'symbol_changed' }],
  ['its symbol reverts', { asked: 'symbol', lie: () => null, code: 'symbol_changed', reverts: 'exception 11' }],
];

/** Within a `describe`: what a test starts is stopped after it. */
export function doubtedTokens(open: OpenTestDb) {
  let world: TokenWorld;
  let maker: Address;
  let other: Address;

  /** Two makers with all three tokens, a book in each market, and live curves. */
  async function start(options: TokenWorldOptions = {}): Promise<void> {
    world = await startTokenWorld(await open(), { endpoints: 2, ...options });
    [maker, other] = [world.chain.address('maker1'), world.chain.address('maker2')];
    await world.step();
    for (const role of ['maker1', 'maker2']) {
      await world.custody(role, 'deposit', world.token('WETH'), 100n * WETH);
      await world.custody(role, 'deposit', world.token('USDC'), 1_000_000n * USDC);
      await world.custody(role, 'deposit', world.token('DAI'), 1_000_000n * WETH);
    }
    await world.step();
    await quote(WETH_USDC, 300_000n);
    await quote(WETH_DAI, 300_000n);
    expect(await posted()).to.have.members(['WETH-USDC', 'WETH-DAI']);
  }
  afterEach(() => world.stack.stop());

  const quote = (market: number, priceTicks: bigint) =>
    world.stack.order(maker, [{ side: 'ask', priceTicks, sizeLots: 10_000n, market }]);
  /** A round of the poster, mined and scanned. */
  async function posted(): Promise<string[]> {
    const round = await world.stack.poster.round();
    await world.step();
    return (round?.publications ?? []).map(({ pair }) => pair);
  }
  const liesEverywhere = (token: string, { asked, lie }: Pick<Case, 'asked' | 'lie'>): void =>
    world.lies.forEach((lies) => lieOn(lies, world.token(token), asked, lie));
  const truth = (): void => world.lies.forEach((lies) => lies.clear());
  const codes = async (symbol: string): Promise<string[]> => world.findingsOf(symbol);

  return {
    get world() {
      return world;
    },
    set world(value) {
      world = value;
    },
    get other() {
      return other;
    },
    start,
    quote,
    posted,
    liesEverywhere,
    truth,
    codes,
  };
}
