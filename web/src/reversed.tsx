import { shown } from './numbers.js';
import { useShown } from './market-context.js';
import { useNowMs } from './platform.js';
import { Age } from './states.js';

/** A reversal is told of for so long. */
const TOLD_MS = 30 * 60_000;

/** Fills of this market that the chain took back lately: struck, and still to be seen. */
export function Reversed() {
  const { market, base, quote, status } = useShown();
  const nowMs = useNowMs();
  const reversal = status.data?.last_reversal ?? null;
  if (reversal === null || nowMs - reversal.time_ms > TOLD_MS) return null;
  const fills = reversal.fills.filter(({ pair }) => pair === market.pair);
  return (
    <section aria-label="Taken back">
      <p className="bad">
        ⟲ The chain took back the blocks {reversal.from_block} to {reversal.to_block},{' '}
        <Age sinceMs={reversal.time_ms} /> ago, and the ledger followed.{' '}
        {fills.length === 0
          ? 'No fill of this market was among them.'
          : 'These fills are not any more, and their numbers may be used again:'}
      </p>
      {fills.length > 0 && (
        <ul>
          {fills.map((fill) => (
            <li key={fill.fill_seq}>
              <s>
                #{fill.fill_seq} {fill.direction} {shown(fill.base_amount)} {base} for {shown(fill.quote_amount)}{' '}
                {quote}
              </s>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
