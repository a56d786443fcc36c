/** The order gateway without signatures and storage: its own planner over a book in memory. */
import { createAgents } from '../../core/book/agents.js';
import type { Book } from '../../core/book.js';
import { createBook } from '../../core/book/create-book.js';
import type { MinOrderUnits } from '../../core/min-order.js';
import type { Address, Market, OpenOrder, OrderFill, OrderLogRow } from '../../core/types.js';
import type { AdmittedAction } from '../../server/orders/actions/registry.js';
import { createInventory, isShort } from '../../server/orders/inventory.js';
import { createPlanner, type Entry } from '../../server/orders/plan.js';
import type { OperatorView } from '../../server/orders/signers.js';
import type { GatewayState } from '../../server/orders/state.js';
import type { BalanceRow } from '../../ledger/types.js';

export interface WorldGateway {
  readonly book: Book;
  lastOrderSeq(): number;
  /** Every order that was ever opened, as it was accepted. */
  accepted: ReadonlyMap<number, Omit<OpenOrder, 'filledUnits' | 'tif' | 'placedMs'>>;
  /** Judges an action as if it were signed now. */
  submit(maker: Address, action: AdmittedAction): void;
  /** Applies what a scan found, and closes what may not stand any longer. */
  follow(fills: readonly OrderFill[], balances: readonly BalanceRow[]): void;
}

interface WorldGatewayDeps {
  markets: readonly Market[];
  minOrderUnits: MinOrderUnits;
  operator: () => OperatorView;
  nowMs: () => number;
  count: (what: string) => void;
  /** Each row of the order log. */
  onRow: (row: OrderLogRow) => void;
}

/** A gateway in which nothing waits: each action is durable at once. */
export function createWorldGateway({
  markets,
  minOrderUnits,
  operator,
  nowMs,
  count,
  onRow,
}: WorldGatewayDeps): WorldGateway {
  const book = createBook(markets);
  const agents = createAgents();
  const inventory = createInventory();
  const accepted = new Map<number, Omit<OpenOrder, 'filledUnits' | 'tif' | 'placedMs'>>();
  let nonce = 0;
  // The planner knows no more of the state than this.
  const state = {
    markets,
    inventory,
    noncesAfterMs: 0,
    planned: () => ({ book, agents }),
    lastRowMs: () => 0,
  } as unknown as GatewayState;
  const plan = createPlanner({
    state,
    minOrderUnits,
    operator,
    quarantined: () => new Set(),
    readiness: () => ({ ready: true, reason: null }),
    clock: nowMs,
  });

  function note(rows: readonly OrderLogRow[]): void {
    for (const row of rows) {
      const { maker, kind, effects } = row;
      onRow(row);
      for (const effect of effects) {
        if (effect.type === 'open') {
          const { type: _type, tif: _tif, ...order } = effect;
          accepted.set(effect.oid, { ...order, maker });
        }
        if (effect.type === 'trigger') count('scheduled cancel came due');
        if (effect.type === 'reduce' || (effect.type === 'close' && effect.reason === 'inventory'))
          count('inventory short');
      }
      if (kind === 'close') count('gateway closed orders');
    }
  }

  function submit(maker: Address, action: AdmittedAction): void {
    nonce += 1;
    const request = {
      action,
      nonce: nowMs() + nonce,
      signature: { r: '0x0', s: '0x0', v: 27 },
      vaultAddress: null,
      expiresAfter: null,
    };
    const { rows, answer } = plan({ type: 'signed', request, action, signer: maker } as Entry);
    note(rows);
    if (answer.status === 'err') return count('action refused');
    for (const status of answer.response.data?.statuses ?? []) {
      count(typeof status === 'object' && 'error' in status ? 'entry refused' : 'entry accepted');
    }
  }

  return {
    book,
    lastOrderSeq: book.lastOrderSeq,
    accepted,
    submit,
    follow(fills, balances) {
      book.applyFills(fills);
      inventory.update(balances);
      note(plan({ type: 'trigger' }).rows);
      const { suspended } = operator();
      for (const maker of book.makersWithOrders()) {
        if (suspended.has(maker) || isShort(book, maker, inventory.available))
          note(plan({ type: 'close', maker }).rows);
      }
    },
  };
}
