/** What stands at the address of a router. */
import type { Address } from '../core/types.js';
import { routerKindOf, type RouterKind } from '../core/swap/router-kind.js';
import { agreedOn, areSeveral, codeAt, onOne, type EthReader } from './eth.js';

/** How long one endpoint's word does for what the router is, before all are asked again. */
const DISAGREED_MS = 5_000;

/** The address of a router is that of something else. */
export class RouterError extends Error {
  override readonly name = 'RouterError';

  constructor(router: Address, kinds: readonly RouterKind[]) {
    const whose = kinds.includes('UniswapV4Router') ? "the platform's" : "Uniswap's";
    super(`${router} is ${kinds.length > 1 ? 'neither' : 'not'} ${whose} ${kinds.join(' nor its ')}`);
  }
}

/**
 * A function that says which of `kinds` the router is, or null while the chain has no code there. It throws RouterError for anything else, and whatever reading
 * throws.
 */
export function createRouterCheck<Kind extends RouterKind>(
  eth: EthReader,
  router: Address,
  kinds: readonly Kind[],
  monotonicMs: () => number,
): () => Promise<Kind | null> {
  type Word = Kind | 'nothing' | 'something else';

  /** A contract's code does not change, so that it is agreed on once; an address without code may get some. */
  let known: Kind | null = null;
  /** What one endpoint says while no two say the same; it is not asked anew for each quote. */
  let said: { kind: Promise<Word>; untilMs: number } | null = null;

  const isKind = (word: Word | null): word is Kind => kinds.some((kind) => kind === word);

  async function read(one: EthReader): Promise<Word> {
    const code = await codeAt(one, router);
    return code === '0x' ? 'nothing' : (routerKindOf(code, kinds) ?? 'something else');
  }

  async function ask(): Promise<Word> {
    const agreed = await agreedOn(eth, read, (kind) => `${router} is ${kind}`);
    if (isKind(agreed)) known = agreed;
    // One endpoint's word does for the moment: a call of another router reverts in the simulation.
    return agreed ?? onOne(eth, read);
  }

  return async () => {
    if (known !== null) return known;
    if (said === null || said.untilMs <= monotonicMs()) {
      const asked = { kind: ask(), untilMs: Infinity };
      said = asked;
      const keep = (ms: number) => () => (asked.untilMs = monotonicMs() + ms);
      asked.kind.then(keep(areSeveral(eth) ? DISAGREED_MS : 0), keep(0));
    }
    const word = await said.kind;
    if (isKind(word)) return word;
    if (word === 'nothing') return null;
    throw new RouterError(router, kinds);
  };
}
