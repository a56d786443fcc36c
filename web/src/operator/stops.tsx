import type { Schemas } from '../../../sdk/src/index.js';
import type { Status } from '../market-context.js';
import { LIST_PLACES, shortHex, shown } from '../numbers.js';
import { useRead } from '../platform.js';
import { Age } from '../states.js';

type Reversal = Schemas['Reversal'];

/** What stands in the way now, what stood there before and who ended it, and what the chain took back from whom. */
export function Stops({ status: { halt, tokens } }: { status: Status }) {
  // Asked again at once when a halt begins or ends.
  const past = useRead(`operator/halts/${halt?.code ?? ''}`, (read) => read.get('/v0/operator/halts'), 10_000);
  const { halts = [], reversals = [] } = past.data ?? {};
  return (
    <section aria-label="Halts and reversals">
      <h2>Halts and reversals</h2>
      <p className={halt === null ? 'good' : 'bad'}>
        {halt === null ? '● nothing is halted' : `■ ${halt.message} (${halt.code})`}
      </p>
      {tokens.map((token) => (
        <p key={token.address} className="bad">
          {token.token} is {token.state === 'quarantined' ? 'in quarantine' : 'in doubt'}: {token.message} ({token.code}
          ); it holds up {token.pairs.join(', ')}.
        </p>
      ))}
      {past.data === null && <p role="status">{past.error ?? 'Loading …'}</p>}
      {past.data !== null && halts.length === 0 && <p>Nothing was ever halted.</p>}
      {halts.length > 0 && (
        <div className="scroll" tabIndex={0} role="region" aria-label="Halts so far">
          <table>
            <caption>Halts so far: clients were told by the status stream, and by the code of what was refused</caption>
            <thead>
              <tr>
                <th scope="col">Began</th>
                <th scope="col">Code</th>
                <th scope="col">Why</th>
                <th scope="col">Ended</th>
              </tr>
            </thead>
            <tbody>
              {halts.map((one, i) => (
                <tr key={i}>
                  <td>
                    <Age sinceMs={one.time_ms} /> ago
                  </td>
                  <td>
                    <code>{one.code}</code>
                  </td>
                  <td className="wide">{one.message}</td>
                  <td>
                    {one.ended_ms === null ? (
                      <span className="bad">it stands</span>
                    ) : (
                      <>
                        <Age sinceMs={one.ended_ms} /> ago, by a {one.ended_by}
                      </>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {past.data !== null && reversals.length === 0 && <p>The chain has taken nothing back.</p>}
      {reversals.map((reversal) => (
        <TakenBack key={reversal.generation} reversal={reversal} />
      ))}
    </section>
  );
}

function TakenBack({ reversal }: { reversal: Reversal }) {
  return (
    <>
      <p>
        <Age sinceMs={reversal.time_ms} /> ago the blocks {reversal.from_block} to {reversal.to_block} were taken back,{' '}
        {reversal.depth} deep, with {reversal.fill_count} fills and {reversal.event_count} events of custody.
      </p>
      {reversal.fills.length > 0 && (
        <div
          className="scroll"
          tabIndex={0}
          role="region"
          aria-label={`Fills that were taken back in generation ${reversal.generation}`}
        >
          <table>
            <caption>Fills that were taken back, and who was told</caption>
            <tbody>
              {reversal.fills.map((fill) => (
                <tr key={`${fill.pair}/${fill.fill_seq}`}>
                  <td>
                    <s>
                      #{fill.fill_seq} of {fill.pair}
                    </s>
                  </td>
                  <td className="number">{shown(fill.base_amount, LIST_PLACES)}</td>
                  <td className="number">{shown(fill.quote_amount, LIST_PLACES)}</td>
                  <td>
                    {fill.notifications.map(({ maker, oid }) => `${shortHex(maker)} (order ${oid})`).join(', ') ||
                      'nobody'}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
