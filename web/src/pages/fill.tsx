import { FillPicture } from '../charts/fill-picture.js';
import { fillGeometry } from '../charts/fill-geometry.js';
import { amountsOf, newestFills, useShown } from '../market-context.js';
import type { Decomposition, Fill } from '../market-context.js';
import { inColumn, onGrid, shortHex, shown } from '../numbers.js';
import { inWords } from '../proof.js';
import { useRead, useStream } from '../platform.js';
import { sumsOf } from '../sums.js';

/** One fill: the amount and price of each maker's leg, and that they add up. Within another page its heading is one of a part. */
export function FillPage({ fillSeq, isPart = false }: { fillSeq: string; isPart?: boolean }) {
  const { market, base, quote } = useShown();
  const seq = /^[1-9]\d{0,14}$/.test(fillSeq) ? fillSeq : null;
  const decomposition = useRead(
    seq === null ? null : `${market.pair}#${seq}`,
    (read) =>
      read.get('/v0/fills/{fill_seq}/decomposition', { path: { fill_seq: seq ?? '' }, query: { pair: market.pair } }),
    2_000,
  );
  const fills = useStream({ type: 'fills', pair: market.pair }, newestFills);
  const streamed = fills.data?.find(({ fill_seq }) => `${fill_seq}` === seq) ?? null;
  // The stream has the newest ones alone.
  const older = useRead(
    seq === null || fills.data === null || streamed !== null ? null : `fill/${market.pair}/${seq}`,
    (read) => read.get('/v0/fills', { query: { pair: market.pair, before: `${BigInt(seq ?? 0) + 1n}`, limit: 1 } }),
  );
  const fill = streamed ?? older.data?.find(({ fill_seq }) => `${fill_seq}` === seq) ?? null;
  const curveSeq = decomposition.data?.curve_seq ?? null;
  const curve = useRead(
    curveSeq === null ? null : `${market.pair}/${curveSeq}`,
    (read) => read.curve(market.pair, curveSeq ?? 0),
    5_000,
  );
  const found = decomposition.data;
  if (seq === null) return <p role="alert">A fill has a number, such as 1.</p>;
  if (found === null) {
    return decomposition.error === null ? <p role="status">Loading …</p> : <p role="alert">{decomposition.error}</p>;
  }
  const Heading = isPart ? 'h2' : 'h1';
  const geometry = fillGeometry(found, curve.data, market);
  return (
    <>
      <Heading>
        Fill #{seq} of {market.pair}
      </Heading>
      {found.status === 'pending' && <p role="status">The books behind this fill are being read: its legs follow.</p>}
      {fill !== null && (
        <p>
          The taker {fill.direction === 'buy' ? 'bought' : 'sold'} {shown(amountsOf(fill).base)} {base} for{' '}
          {shown(amountsOf(fill).quote)} {quote}, on curve #{fill.curve_seq}.
        </p>
      )}
      {geometry !== null && (
        <figure>
          <FillPicture geometry={geometry} base={base} quote={quote} />
          <figcaption className="caption">
            Columns: who was paid, each at its own price. Line: the curve, through which the taker{' '}
            {found.direction === 'sell' ? 'was paid' : 'paid'}.
            {geometry.gaps.length > 0 &&
              ' Striped, between the two: what is left for the operator; solid: what it adds.'}
            {geometry.book.length > 0 && ' Thin steps: the book that the curve was cut from.'}
            {geometry.book.length === 0 &&
              ((curve.data?.snapshot ?? null) === null
                ? ' The book is shown once this curve is dead.'
                : ' The steps of the book are left out: fills of older curves took from it first.')}
            {(curve.data?.prepared ?? null) === null &&
              ' The curve of this fill is not shown: it is not kept, or not there yet.'}
          </figcaption>
        </figure>
      )}
      {fill !== null && found.status === 'final' && <Proof fill={fill} decomposition={found} />}
      <Legs decomposition={found} />
    </>
  );
}

/** The sum, computed here from the legs. */
function Proof({ fill, decomposition }: { fill: Fill; decomposition: Decomposition }) {
  const { quote } = useShown();
  const sums = sumsOf(fill, decomposition, quote);
  return <p className={`proof ${sums.adds ? 'good' : 'bad'}`}>{inWords(sums, fill.direction, quote)}</p>;
}

function Legs({ decomposition }: { decomposition: Decomposition }) {
  const { base, quote, market } = useShown();
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Legs">
      <table>
        <caption>Legs</caption>
        <thead>
          <tr>
            <th scope="col">#</th>
            <th scope="col">Maker</th>
            <th scope="col" className="number">
              Its price
            </th>
            <th scope="col" className="number">
              {base}
            </th>
            <th scope="col" className="number">
              {quote}
            </th>
          </tr>
        </thead>
        <tbody>
          {decomposition.legs.map((leg, i) => (
            <tr key={i}>
              <td>{i + 1}</td>
              <td>
                <code title={leg.maker}>{shortHex(leg.maker)}</code>
              </td>
              <td className="number">{onGrid(leg.price, market.tick_size)}</td>
              <td className="number" title={leg.base_amount}>
                {inColumn(leg.base_amount)}
              </td>
              <td className="number" title={leg.quote_amount}>
                {inColumn(leg.quote_amount)}
              </td>
            </tr>
          ))}
          <tr>
            <td></td>
            <td className="wide" colSpan={3}>
              {/^-/.test(decomposition.operator_gain) ? 'from' : 'left for'} the operator: rounding and the curve's
              distance from the book
            </td>
            <td className="number" title={decomposition.residual}>
              {inColumn(decomposition.residual)}
            </td>
          </tr>
        </tbody>
      </table>
    </div>
  );
}
