import { useEffect, useRef, useState } from 'react';
import { useSearch } from 'wouter';
import type { MakerClient } from '../../../sdk/src/maker.js';
import type { OrderState } from '../../../sdk/src/stream.js';
import { coinOf, symbolOf, useShown } from '../market-context.js';
import type { Book, Market } from '../market-context.js';
import { shown } from '../numbers.js';
import { usePlatform, useStream } from '../platform.js';
import { Said, useActing } from './acting.js';
import { isOutdated, standingOf } from './edit.js';
import type { Edited } from './edit.js';
import { accepted, createPlacing, newCloid } from './place.js';

interface TicketProps {
  /** Whose orders these are. */
  address: string;
  orders: MakerClient | null;
  /** The open orders, as far as they are known. */
  live: OrderState | null;
  /** The order that is changed; null for a new one. */
  edited: Edited | null;
  onEnd(): void;
  /** Why nothing new is traded now. */
  off: string | null;
}

/** Places an order, or changes one: price and size go out exactly as they are typed. */
export function Ticket({ address, orders, live, edited, onEnd, off }: TicketProps) {
  const { read } = usePlatform();
  const { deployment, market: shownMarket } = useShown();
  const market = edited?.market ?? shownMarket;
  const base = symbolOf(deployment, market.base);
  const quote = symbolOf(deployment, market.quote);
  const wanted = new URLSearchParams(useSearch());
  const [side, setSide] = useState<'buy' | 'sell'>(wanted.get('side') === 'buy' ? 'buy' : 'sell');
  const [price, setPrice] = useState(wanted.get('price') ?? '');
  /** Null until a size is typed: that of a change follows what is left of the order. */
  const [typedSize, setSize] = useState<string | null>(null);
  /** What was left of the edited order when somebody last pressed; null before. */
  const [seenLeft, setSeenLeft] = useState<string | null>(null);
  /** The order whose change ended because it is no longer open. */
  const [endedOid, setEndedOid] = useState<number | null>(null);
  const [placing] = useState(createPlacing);
  const acting = useActing();
  const { left, isGone } = edited === null ? { left: '', isGone: false } : standingOf(edited, live);
  const size = typedSize ?? left;
  const isLess = edited !== null && isOutdated(typedSize, left, seenLeft ?? edited.size);
  const goneOid = isGone && !acting.busy ? (edited?.oid ?? null) : endedOid;
  const best = useBest(market, side);
  // Joins the best price of its side once, and does not follow it: what is signed is what one has read.
  useEffect(() => {
    if (best !== null) setPrice((typed) => (typed === '' ? best : typed));
  }, [best === null, side]);
  const wasEdited = useRef(false);
  useEffect(() => {
    if (edited !== null) {
      setSide(edited.side);
      setPrice(edited.price);
      setSize(null);
      setSeenLeft(null);
      setEndedOid(null);
    } else if (wasEdited.current) {
      // Price and size of an order of another market are none of a new one here.
      setPrice(best ?? '');
      setSize(null);
    }
    wasEdited.current = edited !== null;
  }, [edited]);

  // A change that is under way takes the order out of the list itself.
  useEffect(() => {
    if (edited === null || !isGone || acting.busy) return;
    setEndedOid(edited.oid);
    onEnd();
  }, [edited, isGone, acting.busy]);

  async function stored(cloid: string): Promise<number | null> {
    const query = { type: 'orderStatus', user: address, oid: cloid };
    const { order } = await read.info<{ order?: { order: { oid: number } } }>(query);
    return order?.order.oid ?? null;
  }

  async function send(client: MakerClient): Promise<string> {
    const terms = { pair: market.pair, side, price: price.trim(), size: size.trim() };
    if (edited === null) return placing.place(client, terms, stored);
    accepted(await client.modify(edited.oid, { ...terms, cloid: newCloid() }));
    onEnd();
    return `order ${edited.oid} was changed`;
  }

  function submit(): void {
    if (orders === null || isGone) return;
    setEndedOid(null);
    if (isLess) setSeenLeft(left);
    else acting.act(() => send(orders));
  }

  return (
    <form
      className="ticket"
      aria-label="Order"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <h2>{edited === null ? `Quote in ${market.pair}` : `Change order ${edited.oid} in ${market.pair}`}</h2>
      <div className="row" role="group" aria-label="Side">
        {(['buy', 'sell'] as const).map((one) => (
          <button
            type="button"
            key={one}
            aria-pressed={one === side}
            disabled={edited !== null && one !== side}
            onClick={() => {
              if (one === side) return;
              setSide(one);
              setPrice('');
            }}
          >
            {one === 'buy' ? `Buy ${base}` : `Sell ${base}`}
          </button>
        ))}
      </div>
      <div className="pairfields">
        <label className="field">
          Price in {quote}, in steps of {shown(market.tick_size)}
          <input
            value={price}
            onChange={({ target }) => setPrice(target.value)}
            inputMode="decimal"
            autoComplete="off"
            required
          />
        </label>
        <label className="field">
          Size in {base}, in steps of {shown(market.lot_size)}
          <input
            value={size}
            onChange={({ target }) => setSize(target.value)}
            inputMode="decimal"
            autoComplete="off"
            required
          />
        </label>
      </div>
      {edited !== null && left !== edited.size && (
        <p role="alert" className={isLess ? 'bad' : ''}>
          {shown(left)} of {shown(edited.size)} {base} are left of the order since it was opened here.
          {isLess && ` Press once to go on with ${size.trim()} all the same, and once more to sign it.`}
        </p>
      )}
      {goneOid !== null && (
        <p role="alert" className="bad">
          Order {goneOid} is no longer open: it was filled, cancelled or replaced. Its change has ended.
        </p>
      )}
      <div className="row">
        <button type="submit" className="main" disabled={orders === null || acting.busy || off !== null}>
          {edited === null ? 'Sign and place' : 'Sign and change'}
        </button>
        {edited !== null && (
          <button type="button" onClick={onEnd}>
            Leave it as it is
          </button>
        )}
      </div>
      {off !== null && (
        <p role="status" className="bad">
          {off} Cancels and withdrawals go on.
        </p>
      )}
      {orders === null && <p role="status">Make an agent first: your wallet does not sign orders itself.</p>}
      <Said acting={acting} />
    </form>
  );
}

/** The best price of a side of the book; null while nobody quotes there. */
function useBest(market: Market, side: 'buy' | 'sell'): string | null {
  const book = useStream({ type: 'l2Book', coin: coinOf(market) }, (_state: Book | null, data) => data);
  const [bids = [], asks = []] = book.data?.levels ?? [];
  return (side === 'buy' ? bids : asks)[0]?.px ?? null;
}
