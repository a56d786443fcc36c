/**
 * Reads the public API with the SDK, whose types come from the OpenAPI document: `node --import tsx examples/read-api.ts <url>`.
 * It prints the book's best prices and the newest fills with who was paid what.
 */
import { createReadClient } from '../sdk/src/index.js';

const [url = 'http://127.0.0.1:8080'] = process.argv.slice(2);
const client = createReadClient(url);

for (const { pair, tick_size, lot_size } of await client.pairs()) {
  const { levels, feed_live } = await client.book(pair);
  const best = ([ticks = 0, lots = 0]: readonly number[] = []) =>
    `${ticks} ticks of ${tick_size} x ${lots} lots of ${lot_size}`;
  console.log(`${pair}: bid ${best(levels.bids[0])}, ask ${best(levels.asks[0])}${feed_live ? '' : ', no feed'}`);

  for (const { fill_seq, direction, amount_in, token_in, amount_out, token_out } of await client.fills(pair, 3)) {
    const { status, legs, residual } = await client.decomposition(pair, fill_seq);
    const paid = legs.map((leg) => `${leg.maker} ${leg.base_amount} @ ${leg.price}`).join(', ');
    console.log(`  #${fill_seq} ${direction} ${amount_in} ${token_in} -> ${amount_out} ${token_out} (${status})`);
    console.log(`    ${paid}; residual ${residual}`);
  }
}
