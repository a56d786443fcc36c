import type { Address } from '../../core/types.js';

/** A pending order and its owner. */
interface Listed {
  orderId: string;
  owner: Address;
}

/**
 * Which orders are looked at in a round. Orders that can't be executed now must not block others, however many there are, and an owner of
 * many orders must not block other owners.
 */
interface Turns {
  /** Begins a round. */
  begin(): void;
  /** At most `most` of the orders: new ones, then those that were not looked at for the longest time; some of each owner. */
  select(listed: readonly Listed[], most: number): string[];
  /** Notes that an order is looked at in this round. */
  note(orderId: string): void;
  /** Forgets orders that are not among these. */
  keep(ids: ReadonlySet<string>): void;
}

/** Orders of one owner per round. */
const ORDERS_PER_OWNER = 8;

export function createTurns(): Turns {
  /** Round in which an order was last looked at. */
  const looked = new Map<string, number>();
  let roundNo = 0;
  const lastLook = ({ orderId }: Listed): number => looked.get(orderId) ?? 0;

  return {
    begin() {
      roundNo += 1;
    },
    select(listed, most) {
      const taken = new Map<Address, number>();
      const turn: string[] = [];
      for (const { orderId, owner } of [...listed].sort((a, b) => lastLook(a) - lastLook(b))) {
        if (turn.length === most) break;
        const count = taken.get(owner) ?? 0;
        if (count === ORDERS_PER_OWNER) continue;
        taken.set(owner, count + 1);
        turn.push(orderId);
      }
      return turn;
    },
    note: (orderId) => void looked.set(orderId, roundNo),
    keep(ids) {
      for (const id of looked.keys()) if (!ids.has(id)) looked.delete(id);
    },
  };
}
