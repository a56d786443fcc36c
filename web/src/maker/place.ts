/** An order that is placed once, also where no answer came and the button is pressed again. */
import { CurvebookError } from '../../../sdk/src/index.js';
import { bytesToHex } from '../../../sdk/src/hash.js';
import type { EntryResult, MakerClient, NewOrder } from '../../../sdk/src/maker.js';
import { saysNotStored } from './agent.js';

type Terms = Omit<NewOrder, 'cloid'>;

/** An order that may have been stored although no answer said so. */
interface Unsure {
  terms: string;
  cloid: string;
}

/** The order id of what is stored under a client order id, open or closed; null where nothing is. */
type Find = (cloid: string) => Promise<number | null>;

interface Placing {
  /** Resolves with what came of it, in a sentence. Throws the refusal. */
  place(client: Pick<MakerClient, 'order'>, terms: Terms, find: Find): Promise<string>;
}

/**
 * Places orders one after the other. One that may have been stored keeps its client order id for as long as the same is asked for: what the server has
 * under it is looked for first, since the id of a closed order can be used again, and a second open one is refused.
 */
export function createPlacing(): Placing {
  let unsure: Unsure | null = null;
  return {
    async place(client, order, find) {
      const terms = JSON.stringify([order.pair, order.side, order.price, order.size]);
      const again = unsure?.terms === terms ? unsure : null;
      if (again !== null) {
        const oid = await find(again.cloid);
        if (oid !== null) {
          unsure = null;
          return `order ${oid} was stored before, though no answer came: nothing was sent again`;
        }
      }
      const cloid = again?.cloid ?? newCloid();
      try {
        const oid = accepted(await client.order([{ ...order, cloid }]));
        unsure = null;
        return `order ${oid ?? ''} rests in the book`;
      } catch (error) {
        if (again !== null && error instanceof CurvebookError && error.code === 'duplicate_cloid') {
          unsure = null;
          return 'the order rests already: it was stored before, though no answer came';
        }
        // A refusal says nothing of what was sent before it.
        if (again === null) unsure = saysNotStored(error) ? null : { terms, cloid };
        throw error;
      }
    },
  };
}

export const newCloid = (): string => bytesToHex(crypto.getRandomValues(new Uint8Array(16)));

/** The order id of the only entry. Throws its refusal. */
export function accepted(results: readonly EntryResult[]): number | null {
  for (const { error } of results) if (error !== null) throw error;
  return results[0]?.oid ?? null;
}
