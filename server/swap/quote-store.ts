import { keccakText } from '../../core/hash.js';
import { orderTypedData, type OrderDomain, type OrderTypedData } from '../../core/swap/typed-data.js';
import type { Address } from '../../core/types.js';
import { appendQuotes, type SwapQuote, type SwapQuoteDraft } from '../../ledger/swaps/swap-quotes.js';
import type { Db } from '../../ledger/types.js';

export interface QuoteStore {
  /** Resolves with the whole quote once it is durable. */
  save(draft: SwapQuoteDraft): Promise<SwapQuote>;
}

/** Most quotes in one transaction. */
const MAX_GROUP = 256;

/**
 * Appends quotes; those that arrive during a transaction share the next one. `salt` separates this deployment's Permit2 nonces from other
 * uses of Permit2 by the same owner.
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
      // One quote may have made the whole group fail.
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

/** What the owner of a quote signs, from the text that `createQuoteStore` stored. */
export const typedDataOf = ({ typedData }: SwapQuote): OrderTypedData => JSON.parse(typedData) as OrderTypedData;

/** First nonce of an owner. Permit2 keeps 256 nonces in a word, and the first use of a word costs more gas, so nonces are consecutive. */
function firstNonce(salt: string, owner: Address): bigint {
  return (BigInt(keccakText(`${salt}:${owner}`)) >> 64n) << 64n;
}
