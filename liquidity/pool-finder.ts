/** Where the pools of a pair are. What is found is kept for good, so that it must not be one endpoint's word. */
import { AbiCoder, ZeroAddress } from 'ethers';
import type { Address } from '../core/types.js';
import { agreedAmong, areSeveral, callsAt, votesOf, type EthReader, type Head } from './eth.js';

/** How long until a missing pool, or one on which endpoints differ, is looked up again. */
const LOOK_AGAIN_MS = 10_000;

/** How a factory knows its pools. */
export interface PoolRule {
  factory: Address;
  /** Of each pool that a pair may have. */
  feesPpm: readonly bigint[];
  /** The factory's call that answers the pool's address, zero for none. */
  question(tokens: readonly [Address, Address], feePpm: bigint): string;
  /** The address that the venue's own factory gives a pool: whoever names another one for it lies, or the factory is somebody else's. */
  addressOf(tokens: readonly [Address, Address], feePpm: bigint): Address;
}

interface PoolFinder {
  /** The pools of a pair that exist, by fee tier. */
  poolsOf(sellToken: Address, buyToken: Address, head: Head): Promise<[feePpm: bigint, pool: Address][]>;
  /** A pool that can't be read may be none. */
  forget(pool: Address): void;
}

/**
 * Asks all endpoints for pools that are not known: one that a majority does not name is none, nor is one of which only one endpoint tells, unless
 * its address is the one that the venue's own factory gives, and the factory is known to be like that by a pool that a majority names. What one endpoint
 * alone knows is asked for again soon, so that none hides a pool for long where others are a majority.
 */
export function createPoolFinder(
  eth: EthReader,
  { factory, feesPpm, question, addressOf }: PoolRule,
  monotonicMs: () => number = () => performance.now(),
): PoolFinder {
  /** By pair and fee. One that did not exist may be created, so only what was found is kept. */
  const pools = new Map<string, Address>();
  /** When to look again, by pair and fee. */
  const dueMs = new Map<string, number>();
  const looking = new Map<string, Promise<void>>();
  /** The factory makes pools by the venue's own code. */
  let isOriginal = false;

  const keyOf = (sellToken: Address, buyToken: Address, fee: bigint): string => `${sellToken}:${buyToken}:${fee}`;

  async function ask(one: EthReader, tokens: readonly [Address, Address], fees: readonly bigint[], head: Head) {
    const calls = fees.map((fee) => ({ to: factory, data: question(tokens, fee) }));
    return (await callsAt(one, head, calls)).map((answer) => {
      const [pool] = AbiCoder.defaultAbiCoder().decode(['address'], answer) as unknown as [string];
      return pool.toLowerCase() as Address;
    });
  }

  async function look(tokens: readonly [Address, Address], fees: readonly bigint[], head: Head): Promise<void> {
    const isAlone = !areSeveral(eth);
    const votes = await votesOf(eth, (one) => ask(one, tokens, fees, head));
    const found = fees.map((fee, i) => {
      const own = addressOf(tokens, fee);
      const said = votes.map(({ answer, convict }) => ({ answer: answer[i]!, convict }));
      if (isAlone) return { fee, pool: said[0]!.answer };
      const agreed = agreedAmong(
        said,
        (pool) => `${pool} is the pool of ${tokens.join(' and ')} with a fee of ${fee}`,
        // Where it would be, if it is: whoever knows of none may be right.
        (pool, all) => isOriginal && pool === own && !all.includes(ZeroAddress as Address),
      );
      if (agreed?.isMajority && agreed.answer === own) isOriginal = true;
      return { fee, pool: agreed?.answer ?? null };
    });
    for (const { fee, pool } of found) {
      const key = keyOf(...tokens, fee);
      if (pool !== null && pool !== ZeroAddress) pools.set(key, pool);
      if (!isAlone) dueMs.set(key, monotonicMs() + LOOK_AGAIN_MS);
    }
  }

  /** One look at a time at a pair, whoever else wants it. */
  function lookOnce(tokens: readonly [Address, Address], fees: readonly bigint[], head: Head): Promise<void> {
    const pair = tokens.join(':');
    const found = looking.get(pair);
    if (found !== undefined) return found;
    const started = look(tokens, fees, head).finally(() => looking.delete(pair));
    looking.set(pair, started);
    return started;
  }

  return {
    async poolsOf(sellToken, buyToken, head) {
      const due = feesPpm.filter((fee) => {
        const key = keyOf(sellToken, buyToken, fee);
        return !pools.has(key) && (dueMs.get(key) ?? -Infinity) <= monotonicMs();
      });
      if (due.length > 0) await lookOnce([sellToken, buyToken], due, head);
      return feesPpm.flatMap((fee) => {
        const pool = pools.get(keyOf(sellToken, buyToken, fee));
        return pool === undefined ? [] : [[fee, pool] as [bigint, Address]];
      });
    },
    forget(pool) {
      for (const [key, known] of pools) {
        if (known !== pool) continue;
        pools.delete(key);
        dueMs.delete(key);
      }
    },
  };
}
