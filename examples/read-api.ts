/**
 * Reads the public API with a client whose types come from the OpenAPI document: `node --import tsx examples/read-api.ts <url>`.
 * It prints the book's best prices and the newest fills with who was paid what.
 */
import createClient from 'openapi-fetch';
import type { paths } from './api.js';

const [baseUrl = 'http://127.0.0.1:8080'] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl });

/** The answer's body, or an error with the code that the server gave. */
function bodyOf<T>({ data, error }: { data?: T; error?: { error: { code: string; message: string } } }): T {
  if (data === undefined) throw new Error(error === undefined ? 'no answer' : JSON.stringify(error.error));
  return data;
}

for (const { pair, tick_size, lot_size } of bodyOf(await client.GET('/v0/pairs'))) {
  const { levels, feed_live } = bodyOf(await client.GET('/v0/book/{pair}', { params: { path: { pair } } }));
  const best = ([ticks = 0, lots = 0]: readonly number[] = []) =>
    `${ticks} ticks of ${tick_size} x ${lots} lots of ${lot_size}`;
  console.log(`${pair}: bid ${best(levels.bids[0])}, ask ${best(levels.asks[0])}${feed_live ? '' : ', no feed'}`);

  const fills = bodyOf(await client.GET('/v0/fills', { params: { query: { pair } } }));
  for (const { fill_seq, direction, amount_in, token_in, amount_out, token_out } of fills.slice(-3)) {
    const path = { fill_seq: `${fill_seq}` };
    const { status, legs, residual } = bodyOf(
      await client.GET('/v0/fills/{fill_seq}/decomposition', { params: { path, query: { pair } } }),
    );
    const paid = legs.map((leg) => `${leg.maker} ${leg.base_amount} @ ${leg.price}`).join(', ');
    console.log(`  #${fill_seq} ${direction} ${amount_in} ${token_in} -> ${amount_out} ${token_out} (${status})`);
    console.log(`    ${paid}; residual ${residual}`);
  }
}
