import { Link } from 'wouter';
import { useShown } from '../market-context.js';
import { shortHex, shown } from '../numbers.js';
import { inWords } from '../proof.js';
import { useRead } from '../platform.js';
import { sumsOf } from '../sums.js';
import { takenOf } from './terms.js';
import type { Taken } from './terms.js';

/** What a swap brought, and the makers behind it, once the ledger has its block. */
export function Receipt({ taker, txHash }: { taker: string; txHash: string }) {
  const swaps = useRead(
    `swaps/${taker}/${txHash}`,
    async (read) => {
      const page = await read.get('/v0/takers/{address}/swaps', { path: { address: taker }, query: { limit: 20 } });
      return page.swaps.filter(({ tx_hash }) => tx_hash === txHash);
    },
    1_000,
  );
  const rows = takenOf(swaps.data ?? []);
  return (
    <section aria-label="Receipt" className="receipt">
      <h2>Receipt</h2>
      <p>
        Transaction <TransactionLink hash={txHash} />
      </p>
      {rows.length === 0 ? (
        <p role="status">On the chain; the ledger is reading its block …</p>
      ) : (
        rows.map((taken, i) => <Line key={i} taken={taken} />)
      )}
    </section>
  );
}

function Line({ taken: { whole, fills } }: { taken: Taken }) {
  const { kind, amount_in, token_in, amount_out, token_out, fee, fee_token } = whole;
  return (
    <>
      <p className="proof">
        Gave {shown(amount_in)} {token_in}, got {shown(amount_out)} {token_out}.
        {fee !== '0' && ` ${shown(fee)} ${fee_token} of it was the fee${kind === 'signed' ? ' for gas' : ''}.`}
      </p>
      {fills.map(({ pair, seq }) => (
        <MakersBehind key={`${pair}/${seq}`} pair={pair} seq={seq} />
      ))}
      {fills.length === 0 && <p>No maker was behind this one: it went over pools alone.</p>}
      {fills.length > 0 && kind === 'signed' && (
        <p className="caption">What is not among these legs went over pools.</p>
      )}
    </>
  );
}

/** Who was paid what for a fill, and whether that adds up to what the taker paid or got: computed here. */
function MakersBehind({ pair, seq }: { pair: string; seq: number }) {
  const { deployment } = useShown();
  const both = useRead(
    `behind/${pair}/${seq}`,
    async (read) => {
      const decomposition = await read.decomposition(pair, seq);
      const [fill] = await read.get('/v0/fills', { query: { pair, before: `${seq + 1}`, limit: 1 } });
      return { decomposition, fill: fill?.fill_seq === seq ? fill : null };
    },
    2_000,
  );
  if (both.data === null) return <p role="status">{both.error ?? 'Loading the makers behind it …'}</p>;
  const { decomposition, fill } = both.data;
  if (decomposition.status !== 'final' || fill === null)
    return <p role="status">The books behind it are being read: its makers follow.</p>;
  const market = deployment.markets.find((one) => one.pair === pair);
  const quote = deployment.tokens.find(({ address }) => address === market?.quote)?.symbol ?? '';
  const base = deployment.tokens.find(({ address }) => address === market?.base)?.symbol ?? '';
  const sums = sumsOf(fill, decomposition, quote);
  return (
    <>
      <div className="scroll" tabIndex={0} role="region" aria-label="Makers behind it">
        <table>
          <caption>
            Makers behind it, fill{' '}
            <Link href={`/fills/${encodeURIComponent(pair)}/${seq}`}>
              #{seq} of {pair}
            </Link>
          </caption>
          <thead>
            <tr>
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
                <td>
                  <code title={leg.maker}>{shortHex(leg.maker)}</code>
                </td>
                <td className="number">{shown(leg.price)}</td>
                <td className="number">{shown(leg.base_amount)}</td>
                <td className="number">{shown(leg.quote_amount)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p className={sums.adds ? 'good' : 'bad'}>{inWords(sums, fill.direction, quote)}</p>
    </>
  );
}

/** A transaction by its hash, with the explorer where the operator names one. */
export function TransactionLink({ hash }: { hash: string }) {
  const { deployment } = useShown();
  const { explorer_url: explorer } = deployment;
  const name = <code title={hash}>{shortHex(hash)}</code>;
  if (explorer === null || !/^https?:\/\//.test(explorer)) return name;
  return (
    <a href={`${explorer.replace(/\/+$/, '')}/tx/${hash}`} rel="noreferrer" target="_blank">
      {name}
    </a>
  );
}
