import { useEffect, useState } from 'react';
import type { ReactNode } from 'react';
import type { Answer } from '../../../sdk/src/index.js';
import { CurvebookError } from '../../../sdk/src/index.js';
import type { TakerClient } from '../../../sdk/src/taker.js';
import { formatUnits } from '../../../core/amounts.js';
import { Said, useActing } from '../maker/acting.js';
import { useShown } from '../market-context.js';
import { LIST_PLACES, shown } from '../numbers.js';
import { useRead } from '../platform.js';
import { Age, Countdown } from '../states.js';
import { TransactionLink } from './receipt.js';
import { takenOf } from './terms.js';

type Order = Answer<'/api/v1/orders'>['orders'][number];

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

/** Gasless orders and swaps of an address: one's own, which `taker` cancels, or anybody's, since both are public. */
export function History({ address, taker }: { address: string | null; taker: TakerClient | null }) {
  const [typed, setTyped] = useState(address ?? '');
  useEffect(() => setTyped(address ?? ''), [address]);
  const owner = ADDRESS.test(typed.trim()) ? typed.trim().toLowerCase() : null;
  return (
    <section aria-label="History">
      <h2>History</h2>
      <label className="field">
        Address
        <input
          value={typed}
          onChange={({ target }) => setTyped(target.value)}
          spellCheck={false}
          autoComplete="off"
          placeholder="0x…"
        />
      </label>
      {owner === null ? (
        <p role="status">{typed.trim() === '' ? 'Whose? Enter an address.' : '0x and 40 hex digits.'}</p>
      ) : (
        <>
          <GaslessOrders owner={owner} taker={owner === address?.toLowerCase() ? taker : null} />
          <Swaps owner={owner} />
        </>
      )}
    </section>
  );
}

function GaslessOrders({ owner, taker }: { owner: string; taker: TakerClient | null }) {
  const { deployment } = useShown();
  const acting = useActing();
  const [cursors, setCursors] = useState<readonly string[]>([]);
  useEffect(() => setCursors([]), [owner]);
  const cursor = cursors[cursors.length - 1];
  const { orderSettler } = deployment.contracts;
  const page = useRead(
    orderSettler === undefined ? null : `orders/${owner}/${cursor ?? ''}`,
    (read) =>
      read.get('/api/v1/orders', { query: { owner, limit: '10', ...(cursor === undefined ? {} : { cursor }) } }),
    3_000,
  );
  if (orderSettler === undefined) return null;
  if (page.data === null) return <p role="status">{page.error ?? 'Loading orders …'}</p>;
  const { orders, next } = page.data;
  if (orders.length === 0) return <p role="status">No gasless order of this address.</p>;
  return (
    <>
      <div className="scroll" tabIndex={0} role="region" aria-label="Gasless orders">
        <table>
          <caption>Gasless orders</caption>
          <thead>
            <tr>
              <th scope="col">State</th>
              <th scope="col" className="number">
                Sold
              </th>
              <th scope="col" className="number">
                Got
              </th>
              <th scope="col">Good for</th>
              <th scope="col">Transaction</th>
              <th scope="col">What stands in the way</th>
              {taker !== null && <th scope="col">Act</th>}
            </tr>
          </thead>
          <tbody>
            {orders.map((order) => (
              <OrderRow key={order.orderId} order={order}>
                {taker !== null && (
                  <td>
                    {order.status === 'pending' && (
                      <button
                        type="button"
                        disabled={acting.busy}
                        aria-label={`Cancel order ${order.orderId}`}
                        onClick={() =>
                          acting.act(async () => {
                            await taker.cancelGasless(order.orderId);
                            return 'cancelled: it will not be sent';
                          })
                        }
                      >
                        Cancel
                      </button>
                    )}
                  </td>
                )}
              </OrderRow>
            ))}
          </tbody>
        </table>
      </div>
      <Said acting={acting} />
      <div className="row">
        {cursors.length > 0 && (
          <button type="button" onClick={() => setCursors(cursors.slice(0, -1))}>
            Newer
          </button>
        )}
        {next !== null && (
          <button type="button" onClick={() => setCursors([...cursors, next])}>
            Older
          </button>
        )}
      </div>
    </>
  );
}

function OrderRow({ order, children }: { order: Order; children: ReactNode }) {
  const { deployment } = useShown();
  const amount = (units: string, address: string): string => {
    const token = deployment.tokens.find((one) => one.address === address.toLowerCase());
    return token === undefined
      ? units
      : `${shown(formatUnits(BigInt(units), token.decimals), LIST_PLACES)} ${token.symbol}`;
  };
  const isFilled = order.status === 'filled';
  const { code, message } = order.reason ?? { code: null, message: null };
  const remedy = code === null ? null : new CurvebookError(code, '').remedy;
  return (
    <tr>
      <td className={isFilled ? 'good' : order.status === 'pending' ? '' : 'bad'}>
        {order.status === 'pending' && code === 'LIMIT_NOT_REACHED' ? 'waits' : order.status}
      </td>
      <td className="number">{amount(isFilled ? order.executedSellAmount : order.sellAmount, order.sellToken)}</td>
      <td className="number">
        {isFilled
          ? amount(order.executedBuyAmount, order.buyToken)
          : order.orderClass === 'limit'
            ? `≥ ${amount(order.minBuyAmount, order.buyToken)}`
            : '–'}
        {order.partner !== undefined && (
          <small title={order.partner}>
            {' '}
            {typeof order.partnerFeeAmount === 'string'
              ? `and ${amount(order.partnerFeeAmount, order.buyToken)} to a partner`
              : `and ${order.partnerBps ?? 0} bps of it to a partner`}
          </small>
        )}
      </td>
      <td>{order.status === 'pending' ? <Countdown untilSec={order.validTo} /> : '–'}</td>
      <td>{order.txHash === null ? '–' : <TransactionLink hash={order.txHash} />}</td>
      <td className="wide">
        {code === null ? '–' : `${message ?? ''} (${code})${remedy === null ? '' : `: ${remedy}`}`}
      </td>
      {children}
    </tr>
  );
}

function Swaps({ owner }: { owner: string }) {
  const page = useRead(
    `takers/${owner}`,
    (read) => read.get('/v0/takers/{address}/swaps', { path: { address: owner }, query: { limit: 20 } }),
    3_000,
  );
  if (page.data === null) return <p role="status">{page.error ?? 'Loading swaps …'}</p>;
  if (page.data.swaps.length === 0) return <p role="status">No swap of this address on the chain.</p>;
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Swaps">
      <table>
        <caption>
          The newest swaps on the chain (<a href={`/v0/takers/${owner}/swaps?format=csv`}>all as CSV</a>)
        </caption>
        <thead>
          <tr>
            <th scope="col">How</th>
            <th scope="col" className="number">
              Gave
            </th>
            <th scope="col" className="number">
              Got
            </th>
            <th scope="col">Age</th>
            <th scope="col">Transaction</th>
          </tr>
        </thead>
        <tbody>
          {takenOf(page.data.swaps).map(({ whole: swap }, i) => (
            <tr key={i}>
              <td>{swap.kind === 'signed' ? 'gasless' : 'direct'}</td>
              <td className="number" title={swap.amount_in}>
                {shown(swap.amount_in, LIST_PLACES)} {swap.token_in}
              </td>
              <td className="number" title={swap.amount_out}>
                {shown(swap.amount_out, LIST_PLACES)} {swap.token_out}
              </td>
              <td>
                <Age sinceMs={swap.timestamp_ms} />
              </td>
              <td>
                <TransactionLink hash={swap.tx_hash} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
