import { useNowMs } from '../platform.js';
import { STAGES } from './run.js';
import type { Run } from './run.js';
import { percentLeft } from './terms.js';
import { formatUnits } from '../../../core/amounts.js';
import { shown } from '../numbers.js';

/** Where a swap stands: its steps, and how long its quote or its signature is still good. */
export function Progress({ run, onForget }: { run: Run; onForget(): void }) {
  const nowMs = useNowMs();
  const stages = STAGES[run.mode];
  const at = stages.findIndex(([stage]) => stage === run.stage);
  const untilMs =
    run.quote === null ? null : run.stage === 'signing' ? run.quote.expiresMs : run.quote.validToSec * 1_000;
  return (
    <section aria-label="Progress" className="progress">
      {run.stage === 'failed' ? (
        <p role="alert" className="bad">
          {run.error}{' '}
          <button type="button" onClick={onForget}>
            Close
          </button>
        </p>
      ) : (
        <ol>
          {stages.map(([stage, name], i) => (
            <li key={stage} className={i < at || run.stage === 'done' ? 'good' : ''} aria-current={i === at}>
              {i < at || run.stage === 'done' ? '✓' : i === at ? '…' : '·'} {name}
            </li>
          ))}
        </ol>
      )}
      {run.quote !== null && run.stage !== 'failed' && (
        <p className="caption">
          Signed for at least {shown(formatUnits(run.quote.minBuyUnits, run.buy.decimals))} {run.buy.symbol}.
          {run.quote.signsApproval &&
            ' Allowed to Permit2 by a signature of its own, which your wallet asks for first.'}
        </p>
      )}
      {untilMs !== null && (run.stage === 'signing' || run.stage === 'waiting') && (
        <Ring
          percent={percentLeft(nowMs, run.sinceMs, untilMs)}
          seconds={Math.max(0, Math.ceil((untilMs - nowMs) / 1_000))}
        />
      )}
    </section>
  );
}

/** A ring that closes as time runs out, with the seconds in its middle. */
function Ring({ percent, seconds }: { percent: number; seconds: number }) {
  return (
    <svg className="ring" viewBox="0 0 40 40" role="img" aria-label={`Expires in ${seconds} s`}>
      <circle cx="20" cy="20" r="16" className="track" />
      <circle
        cx="20"
        cy="20"
        r="16"
        pathLength="100"
        strokeDasharray={`${percent} 100`}
        transform="rotate(-90 20 20)"
        className="left"
      />
      <text x="20" y="24" textAnchor="middle">
        {seconds}
      </text>
    </svg>
  );
}
