import type { Fill } from './market-context.js';
import { useShown } from './market-context.js';
import { sum, text } from './numbers.js';
import { useRead } from './platform.js';
import { sumsOf } from './sums.js';

/** ✓ where a fill adds up, ✗ with both sides where it does not. */
export function Reconciled({ fill }: { fill: Fill }) {
  const { quote } = useShown();
  const decomposition = useRead(`${fill.pair}#${fill.fill_seq}#${fill.block_hash}`, (read) =>
    read.decomposition(fill.pair, fill.fill_seq),
  );
  if (decomposition.error !== null) return <span title={decomposition.error}>?</span>;
  if (decomposition.data === null || decomposition.data.status !== 'final') return <span>…</span>;
  const sums = sumsOf(fill, decomposition.data, quote);
  return sums.adds ? (
    <span className="good">✓ yes</span>
  ) : (
    <span className="bad">
      ✗ {text(sum([sums.legs, sums.residual]))} is not {text(sums.total)}
    </span>
  );
}
