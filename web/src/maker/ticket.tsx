import { useEffect, useRef, useState } from 'react';
import { useSearch } from 'wouter';
import type { EntryResult, MakerClient, NewOrder } from '../../../sdk/src/maker.js';
import { bytesToHex } from '../../../sdk/src/hash.js';
import { coinOf, symbolOf, useShown } from '../market-context.js';
import type { Book, Market } from '../market-context.js';
import { shown } from '../numbers.js';
import { useStream } from '../platform.js';
import { Said, useActing } from './acting.js';

/** An order that is changed. It stays in its own market, whichever the page shows. */
export interface Edited {
  market: Market;
  oid: number;
  side: 'buy' | 'sell';
  price: string;
  size: string;
}

interface TicketProps {
  orders: MakerClient | null;
  /** The order that is changed; null for a new one. */
  edited: Edited | null;
  onEnd(): void;
  /** Why nothing new is traded now. */
  off: string | null;
}

/** Places an order, or changes one: price and size go out exactly as they are typed. */
export function Ticket({ orders, edited, onEnd, off }: TicketProps) {
  const { deployment, market: shownMarket } = useShown();
  const market = edited?.market ?? shownMarket;
  const base = symbolOf(deployment, market.base);
  const quote = symbolOf(deployment, market.quote);
  const wanted = new URLSearchParams(useSearch());
  const [side, setSide] = useState<'buy' | 'sell'>(wanted.get('side') === 'buy' ? 'buy' : 'sell');
  const [price, setPrice] = useState(wanted.get('price') ?? '');
  const [size, setSize] = useState('');
  const acting = useActing();
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
      setSize(edited.size);
    } else if (wasEdited.current) {
      // Price and size of an order of another market are none of a new one here.
      setPrice(best ?? '');
      setSize('');
    }
    wasEdited.current = edited !== null;
  }, [edited]);

  const send = async (client: MakerClient): Promise<string> => {
    const cloid = bytesToHex(crypto.getRandomValues(new Uint8Array(16)));
    const order: NewOrder = { pair: market.pair, side, price: price.trim(), size: size.trim(), cloid };
    const results = edited === null ? await client.order([order]) : await client.modify(edited.oid, order);
    const oid = accepted(results);
    onEnd();
    return edited === null ? `order ${oid ?? ''} rests in the book` : `order ${edited.oid} was changed`;
  };

  return (
    <form
      className="ticket"
      aria-label="Order"
      onSubmit={(event) => {
        event.preventDefault();
        if (orders !== null) acting.act(() => send(orders));
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

/** The order id of the only entry. Throws its refusal. */
function accepted(results: readonly EntryResult[]): number | null {
  for (const { error } of results) if (error !== null) throw error;
  return results[0]?.oid ?? null;
}
