import { Link } from 'wouter';
import { Figures } from '../figures.js';
import { useShown } from '../market-context.js';
import { LIST_PLACES, shown } from '../numbers.js';
import { useRead } from '../platform.js';
import { Age } from '../states.js';

const EVERY_MS = 4_000;

/** The account's fills, newest first, each with the picture of its legs. */
export function MakerFills({ address }: { address: string }) {
  const { deployment } = useShown();
  const page = useRead(
    `makers/${address}/fills`,
    (read) => read.get('/v0/makers/{maker}/fills', { path: { maker: address }, query: { limit: 20 } }),
    EVERY_MS,
  );
  const quoteOf = (pair: string): string => {
    const market = deployment.markets.find((one) => one.pair === pair);
    return deployment.tokens.find((token) => token.address === market?.quote)?.symbol ?? '';
  };
  return (
    <section aria-label="Fills">
      <h2>Fills</h2>
      {page.data === null ? (
        <p role="status">{page.error ?? 'Loading fills …'}</p>
      ) : page.data.fills.length === 0 ? (
        <p role="status">No fill yet: an order of this account is filled when a swap reaches its price.</p>
      ) : (
        <>
          <div className="scroll" tabIndex={0} role="region" aria-label="Fills of my orders">
            <table>
              <caption>
                The newest 20; all as{' '}
                <a href={`/v0/makers/${address}/fills?format=csv`} download>
                  CSV
                </a>{' '}
                or{' '}
                <a href={`/v0/makers/${address}/fills?format=ndjson`} download>
                  NDJSON
                </a>
              </caption>
              <thead>
                <tr>
                  <th scope="col">Fill, with its legs</th>
                  <th scope="col">Order</th>
                  <th scope="col">I</th>
                  <th scope="col" className="number">
                    My price
                  </th>
                  <th scope="col" className="number">
                    Base
                  </th>
                  <th scope="col" className="number">
                    Quote
                  </th>
                  <th scope="col" className="number">
                    Realised
                  </th>
                  <th scope="col">Age</th>
                </tr>
              </thead>
              <tbody>
                {page.data.fills.map((fill) => (
                  <tr key={`${fill.pair}/${fill.tid}`}>
                    <td>
                      <Link href={`/fills/${encodeURIComponent(fill.pair)}/${fill.fill_seq}`}>
                        #{fill.fill_seq} of {fill.pair}
                      </Link>
                    </td>
                    <td>{fill.oid}</td>
                    <td className={fill.side === 'bid' ? 'buy' : 'sell'}>{fill.side === 'bid' ? 'bought' : 'sold'}</td>
                    <td className="number">{shown(fill.price)}</td>
                    <td className="number" title={fill.base_amount}>
                      {shown(fill.base_amount, LIST_PLACES)}
                    </td>
                    <td className="number" title={fill.quote_amount}>
                      {shown(fill.quote_amount, LIST_PLACES)}
                    </td>
                    <td className="number">
                      {shown(fill.realised_pnl)} {quoteOf(fill.pair)}
                    </td>
                    <td>
                      <Age sinceMs={fill.timestamp_ms} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </section>
  );
}

/** Profit, positions and markouts per market, as the ledger has them. */
export function Performance({ address }: { address: string }) {
  const performance = useRead(
    `makers/${address}/performance`,
    (read) => read.get('/v0/makers/{maker}/performance', { path: { maker: address } }),
    2 * EVERY_MS,
  );
  return (
    <section aria-label="Profit and positions">
      <h2>Profit and positions</h2>
      <Figures
        label="Profit by market"
        rows={{ ...performance, data: performance.data?.pairs ?? null }}
        empty="Nothing traded yet."
        columns={[
          ['Market', ({ pair }) => pair],
          ['Position', ({ position }) => shown(position.base, LIST_PLACES)],
          [
            'Average price',
            ({ position }) => (position.average_price === null ? '–' : shown(position.average_price, LIST_PLACES)),
          ],
          ['Realised', ({ position }) => shown(position.realised_pnl)],
          ['Unrealised', ({ position }) => (position.unrealised_pnl === null ? '–' : shown(position.unrealised_pnl))],
          ['Volume', ({ volume }) => shown(volume)],
          ['Share of fills', ({ fill_share: share }) => (share === null ? '–' : shown(share, 4))],
          [
            'Markouts, bps after 1, 10, 60 s',
            ({ markouts }) => markouts.map(({ bps }) => (bps === null ? '–' : shown(bps, 2))).join(', '),
          ],
        ]}
      />
      <p className="caption">
        In the quote token of each market; volume, share and markouts of the last 30 days. A position counts from the
        first fill here: what was deposited is none.
      </p>
    </section>
  );
}
