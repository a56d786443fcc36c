import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { amountsOf, coinOf, newestFills, useShown } from '../market-context.js';
import type { Book, CurveState, Fill } from '../market-context.js';
import { inColumn, shortHex, shown } from '../numbers.js';
import { useRead, useStream } from '../platform.js';
import { Reconciled } from '../reconciled.js';
import { Reversed } from '../reversed.js';
import { SandboxControls } from '../sandbox-controls.js';
import { Age, Countdown } from '../states.js';

/** The way of an order: book, curve, swap, legs, ledger, each with its newest value; below it the fills. */
export function OverviewPage() {
  const { market, deployment, status, base } = useShown();
  const book = useStream({ type: 'l2Book', coin: coinOf(market) }, (_state: Book | null, data) => data);
  const curve = useStream({ type: 'curves', pair: market.pair }, (_state: CurveState | null, data) => data);
  const fills = useStream({ type: 'fills', pair: market.pair }, newestFills);
  const newest = fills.data?.[0] ?? null;
  const legs = useRead(newest === null ? null : `${market.pair}#${newest.fill_seq}`, (read) =>
    read.decomposition(market.pair, newest?.fill_seq ?? 0),
  );
  const seq = curve.data?.curve_seq ?? null;
  const posted = useRead(seq === null ? null : `${market.pair}/${seq}`, (read) => read.curve(market.pair, seq ?? 0));
  const cut = posted.data?.prepared?.cut ?? null;
  const [bids = [], asks = []] = book.data?.levels ?? [];
  return (
    <>
      <h1>What happens in {market.pair}</h1>
      <ol className="way">
        <Step name="Orders" what={book.data && `${bids.reduce(orders, 0) + asks.reduce(orders, 0)} rest in the book`}>
          Makers sign limit orders, for free.
        </Step>
        <Step name="Book" what={bids[0] && asks[0] && `${shown(bids[0].px)} / ${shown(asks[0].px)}`}>
          All of them, merged by price.
        </Step>
        <Step
          name="Cut"
          what={
            cut && (
              <>
                row {cut.order_seq} of the order log, <Age sinceMs={cut.time_ms} /> ago
              </>
            )
          }
        >
          The book at one moment, from which the curve is made.
        </Step>
        <Step
          name="Curve"
          what={
            curve.data !== null &&
            curve.data.curve_seq !== null && (
              <>
                #{curve.data.curve_seq}, {curve.data.state}
                {curve.data.state === 'live' && curve.data.deadline_sec !== null && (
                  <>
                    , ends in <Countdown untilSec={curve.data.deadline_sec} />
                  </>
                )}
              </>
            )
          }
        >
          The book as a few straight pieces, posted on-chain.
        </Step>
        <Step
          name="Swap"
          what={
            newest && (
              <>
                {newest.direction} {shown(amountsOf(newest).base, 4)} {base}, <Age sinceMs={newest.timestamp_ms} /> ago
              </>
            )
          }
        >
          Takers trade against the curve in one transaction.
        </Step>
        <Step
          name="Legs"
          what={
            legs.data &&
            `${many(legs.data.legs.length, 'leg')} of ${many(new Set(legs.data.legs.map(({ maker }) => maker)).size, 'maker')}`
          }
        >
          Each maker is paid the price that it quoted.
        </Step>
        <Step
          name="Ledger"
          what={
            status.data && (
              <>
                generation {status.data.ledger.generation}, block {status.data.ledger.block_number ?? '–'}
              </>
            )
          }
        >
          Every unit of the vault has an owner.
        </Step>
      </ol>
      {deployment.sandbox && <SandboxControls />}
      <h2>Fills</h2>
      <Reversed />
      <FillTable fills={fills.data} />
    </>
  );
}

function orders(total: number, level: { n: number }): number {
  return total + level.n;
}

function Step({ name, what, children }: { name: string; what: ReactNode; children: ReactNode }) {
  return (
    <li>
      <h2>{name}</h2>
      <p className="value">{what || <span className="skeleton">–</span>}</p>
      <p className="why">{children}</p>
    </li>
  );
}

/** Fills, newest first, each with a check that its legs and the residual add up to what the taker paid or got. */
export function FillTable({ fills }: { fills: readonly Fill[] | null }) {
  const { market, base, quote } = useShown();
  if (fills === null) return <p role="status">Loading fills …</p>;
  if (fills.length === 0) return <p role="status">No fill yet: nobody has swapped in this market.</p>;
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Fills">
      <table>
        <thead>
          <tr>
            <th scope="col">Fill</th>
            <th scope="col">Side</th>
            <th scope="col" className="number">
              {base}
            </th>
            <th scope="col" className="number">
              {quote}
            </th>
            <th scope="col">Taker</th>
            <th scope="col">Age</th>
            <th scope="col">Adds up</th>
          </tr>
        </thead>
        <tbody>
          {fills.slice(0, 12).map((fill) => (
            <tr key={fill.fill_seq}>
              <td>
                <Link href={`/fills/${encodeURIComponent(market.pair)}/${fill.fill_seq}`}>#{fill.fill_seq}</Link>
              </td>
              <td className={fill.direction}>{fill.direction}</td>
              <td className="number" title={amountsOf(fill).base}>
                {inColumn(amountsOf(fill).base)}
              </td>
              <td className="number" title={amountsOf(fill).quote}>
                {inColumn(amountsOf(fill).quote)}
              </td>
              <td>
                <code title={fill.taker}>{shortHex(fill.taker)}</code>
              </td>
              <td>
                <Age sinceMs={fill.timestamp_ms} />
              </td>
              <td>
                <Reconciled fill={fill} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const many = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;
