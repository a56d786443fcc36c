import { keccakText } from '../../core/hash.js';
import { orderTypedData, type OrderDomain } from '../../core/swap/typed-data.js';
import type { Address } from '../../core/types.js';
import { appendQuotes, type SwapQuote, type SwapQuoteDraft } from '../../ledger/swaps/swap-log.js';
import type { Db } from '../../ledger/types.js';

export interface QuoteStore {
  /** Resolves with the whole quote once it is durable. */
  save(draft: SwapQuoteDraft): Promise<SwapQuote>;
}

/** Most quotes in one transaction. */
const MAX_GROUP = 256;

/**
 * Appends quotes, as many in one transaction as came in during the one before. `salt` tells this deployment's Permit2 nonces from those
 * of any other use of Permit2 by the same owner.
 */
export function createQuoteStore(db: Db, domain: OrderDomain, salt: string): QuoteStore {
  interface Waiting {
    draft: SwapQuoteDraft;
    resolve(quote: SwapQuote): void;
    reject(error: unknown): void;
  }
  const queue: Waiting[] = [];
  let running = false;

  const complete = (draft: SwapQuoteDraft, nonceIndex: number): SwapQuote => {
    const nonce = firstNonce(salt, draft.owner) + BigInt(nonceIndex);
    return { ...draft, nonce, typedData: JSON.stringify(orderTypedData({ ...draft, nonce }, domain)) };
  };

  async function append(group: readonly Waiting[]): Promise<void> {
    try {
      const quotes = await appendQuotes(
        db,
        group.map(({ draft }) => draft),
        complete,
      );
      group.forEach(({ resolve }, i) => resolve(quotes[i]!));
    } catch (error) {
      if (group.length === 1) group[0]!.reject(error);
      // One of them may have spoilt it for the others.
      else for (const one of group) await append([one]);
    }
  }

  async function drain(): Promise<void> {
    running = true;
    while (queue.length > 0) await append(queue.splice(0, MAX_GROUP));
    running = false;
  }

  return {
    save: (draft) =>
      new Promise<SwapQuote>((resolve, reject) => {
        queue.push({ draft, resolve, reject });
        if (!running) void drain();
      }),
  };
}

/**
 * Where the nonces of an owner begin. Permit2 keeps 256 of them in a word, and the first in each word costs more gas, so they are given
 * out one after the other.
 */
function firstNonce(salt: string, owner: Address): bigint {
  return (BigInt(keccakText(`${salt}:${owner}`)) >> 64n) << 64n;
}
