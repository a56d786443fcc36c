import { Figures } from '../figures.js';
import { useShown } from '../market-context.js';
import type { Status } from '../market-context.js';
import { shown } from '../numbers.js';
import { Commands } from '../operator/commands.js';
import { ChainRoles, Solvency } from '../operator/on-chain.js';
import { ProposalCheck } from '../operator/proposal-check.js';
import { Stops } from '../operator/stops.js';
import { Tiles } from '../operator/tiles.js';
import { useRead } from '../platform.js';
import { Age, Countdown } from '../states.js';

/** What an operator watches, and what owners compare: read-only, with the commands to copy. */
export function OperatorPage() {
  const { status } = useShown();
  if (status.data === null)
    return (
      <>
        <h1>Operator</h1>
        <p role="status">{status.error ?? 'Loading the state of the platform …'}</p>
      </>
    );
  return (
    <>
      <h1>Operator</h1>
      <p className="caption">Nothing is done here: what is shown is public, and acts are commands.</p>
      <Tiles status={status.data} />
      <Curves status={status.data} />
      <Queues status={status.data} />
      <Stops status={status.data} />
      <Solvency />
      <Profit />
      <ChainRoles status={status.data} />
      <ProposalCheck />
      <Commands />
    </>
  );
}

function Curves({ status }: { status: Status }) {
  return (
    <section aria-label="Curves">
      <h2>Curves</h2>
      <div className="scroll" tabIndex={0} role="region" aria-label="Freshness of the curves">
        <table>
          <thead>
            <tr>
              <th scope="col">Market</th>
              <th scope="col">State</th>
              <th scope="col">Curve</th>
              <th scope="col">Ends in</th>
              <th scope="col">Posted in block</th>
              <th scope="col">Newest prepared</th>
              <th scope="col">Fills</th>
            </tr>
          </thead>
          <tbody>
            {status.curves.map((curve) => (
              <tr key={curve.pair}>
                <td>{curve.pair}</td>
                <td className={curve.state === 'live' ? 'good' : 'bad'}>{curve.state}</td>
                <td>{curve.curve_seq === null ? '–' : `#${curve.curve_seq}`}</td>
                <td>{curve.deadline_sec === null ? '–' : <Countdown untilSec={curve.deadline_sec} />}</td>
                <td>{curve.block_number ?? '–'}</td>
                <td>#{curve.prepared_seq}</td>
                <td>{curve.fill_seq}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Queues({ status }: { status: Status }) {
  const { ledger, watcher, transactions, checkpoint } = status;
  const unmined = transactions.reduce((all, one) => all + one.unmined, 0);
  const oldest = transactions
    .flatMap(({ oldest_sent_ms }) => (oldest_sent_ms === null ? [] : [oldest_sent_ms]))
    .reduce((least: number | null, ms) => (least === null || ms < least ? ms : least), null);
  const facts: readonly (readonly [string, React.ReactNode])[] = [
    ['Blocks behind', watcher.lag_blocks ?? '–'],
    ['Transactions not mined', unmined],
    ['Oldest of them', oldest === null ? '–' : <Age sinceMs={oldest} />],
    ['Fills without a maker yet', ledger.suspense.fills],
    ['Settlements in doubt', ledger.suspense.settlements],
    ['Signed orders in doubt', ledger.suspense.executions],
    ['Checkpoint', checkpoint === null ? 'none yet' : <Age sinceMs={checkpoint.timestamp_ms} />],
  ];
  return (
    <section aria-label="Queues">
      <h2>Queues</h2>
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** What the platform earned and what its transactions cost, per market. */
function Profit() {
  const summary = useRead('operator/summary', (read) => read.get('/v0/operator/summary'), 10_000);
  const plain = (value: string | null): string => (value === null ? 'no price yet' : shown(value, 6));
  return (
    <section aria-label="Profit">
      <h2>Profit</h2>
      <Figures
        label="Profit by market"
        caption="The last 30 days, in the quote token of each market; profit is after gas"
        rows={{ ...summary, data: summary.data?.pairs ?? null }}
        empty="No market is listed yet."
        columns={[
          ['Market', ({ pair }) => pair],
          ['Fills', ({ total }) => total.fills],
          ['Volume', ({ total }) => shown(total.volume)],
          ['Residual', ({ total }) => shown(total.residual)],
          ['Gas', ({ total }) => plain(total.gas_quote)],
          ['Profit', ({ total }) => plain(total.profit)],
        ]}
      />
    </section>
  );
}
