import type { EntryResult, MakerClient } from '../../../sdk/src/maker.js';
import type { OrderState } from '../../../sdk/src/stream.js';
import { explained } from '../explained.js';
import { coinOf, useShown } from '../market-context.js';
import { shown } from '../numbers.js';
import { useNowMs } from '../platform.js';
import { Age } from '../states.js';
import { Said, useActing } from './acting.js';
import type { Edited } from './edit.js';
import type { Account } from './steps.js';

interface OrdersProps {
  /** Null before they are known. */
  state: OrderState | null;
  client: MakerClient | null;
  onEdit(order: Edited): void;
}

/** Open orders in all markets: change or cancel one, or cancel all. Cancels are never off. */
export function Orders({ state, client, onEdit }: OrdersProps) {
  const { deployment } = useShown();
  const acting = useActing();
  if (state === null || (!state.isComplete && state.open.size === 0)) return <p role="status">Loading orders …</p>;
  const markets = new Map(deployment.markets.map((market) => [coinOf(market), market]));
  const rows = [...state.open.values()].sort((a, b) => b.timestamp - a.timestamp);
  const targets = rows.map(({ coin, oid }) => ({ pair: markets.get(coin)?.pair ?? coin, oid }));
  const cancel = async (orders: typeof targets): Promise<string> => {
    if (client === null) throw new Error('make an agent first');
    return cancelled(await client.cancel(orders));
  };
  return (
    <section aria-label="Open orders">
      <div className="row">
        <h2>Open orders</h2>
        {rows.length > 0 && (
          <button type="button" disabled={acting.busy} onClick={() => acting.act(() => cancel(targets))}>
            Cancel all {rows.length}
          </button>
        )}
      </div>
      <Said acting={acting} />
      {rows.length === 0 ? (
        <p role="status">No open order: what is quoted above shows up here.</p>
      ) : (
        <div className={state.isComplete ? 'scroll' : 'scroll old'} tabIndex={0} role="region" aria-label="Orders">
          <table>
            <thead>
              <tr>
                <th scope="col">Order</th>
                <th scope="col">Market</th>
                <th scope="col">Side</th>
                <th scope="col" className="number">
                  Price
                </th>
                <th scope="col" className="number">
                  Left
                </th>
                <th scope="col">Age</th>
                <th scope="col">
                  <span className="unseen">Acts</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => {
                const market = markets.get(row.coin);
                const pair = market?.pair ?? row.coin;
                const side = row.side === 'B' ? 'buy' : 'sell';
                return (
                  <tr key={row.oid}>
                    <td>{row.oid}</td>
                    <td>{pair}</td>
                    <td className={side}>{side}</td>
                    <td className="number">{shown(row.limitPx)}</td>
                    <td className="number">{shown(row.sz)}</td>
                    <td>
                      <Age sinceMs={row.timestamp} />
                    </td>
                    <td>
                      <span className="acts">
                        {market !== undefined && (
                          <button
                            type="button"
                            onClick={() => onEdit({ market, oid: row.oid, side, price: row.limitPx, size: row.sz })}
                            aria-label={`Change order ${row.oid}`}
                          >
                            Change
                          </button>
                        )}
                        <button
                          type="button"
                          disabled={acting.busy}
                          onClick={() => acting.act(() => cancel([{ pair, oid: row.oid }]))}
                          aria-label={`Cancel order ${row.oid}`}
                        >
                          Cancel
                        </button>
                      </span>
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function cancelled(results: readonly EntryResult[]): string {
  const refused = results.flatMap(({ error }) => (error === null ? [] : [explained(error)]));
  if (refused.length === 0) return results.length === 1 ? 'cancelled' : `${results.length} orders cancelled`;
  return `${results.length - refused.length} cancelled, ${refused.length} not: ${refused[0]}`;
}

const SPANS_SEC = [30, 300, 3_600] as const;

/** Closes all orders at a time, unless it is moved on. */
export function ScheduledCancel({ account, client }: { account: Account | null; client: MakerClient | null }) {
  const nowMs = useNowMs();
  const acting = useActing();
  const at = account?.scheduled_cancel_ms ?? null;
  const leftSec = at === null ? null : Math.max(0, Math.ceil((at - nowMs) / 1_000));
  const schedule = (spanSec: number | null) =>
    acting.act(async () => {
      if (client === null) throw new Error('make an agent first');
      await client.scheduleCancel(spanSec === null ? null : Date.now() + spanSec * 1_000);
      return spanSec === null ? 'nothing closes by itself any more' : `all orders close in ${spanSec} s`;
    });
  return (
    <section aria-label="Scheduled cancel">
      <h2>Scheduled cancel</h2>
      <p>
        {leftSec === null ? 'Orders stay until they are cancelled or filled.' : `All orders close in ${leftSec} s.`}
      </p>
      <div className="row">
        {SPANS_SEC.map((spanSec) => (
          <button
            type="button"
            key={spanSec}
            disabled={acting.busy || client === null}
            onClick={() => schedule(spanSec)}
          >
            In {spanSec < 60 ? `${spanSec} s` : `${spanSec / 60} min`}
          </button>
        ))}
        {at !== null && (
          <button type="button" disabled={acting.busy || client === null} onClick={() => schedule(null)}>
            Clear
          </button>
        )}
        {account !== null && <span className="caption">{account.scheduled_cancels_today} went off today</span>}
      </div>
      <Said acting={acting} />
    </section>
  );
}
