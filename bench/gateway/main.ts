/**
 * `npm run bench:gateway`: compares the order gateway with bare loops that do the least work for the same result, all in one run; the figures are
 * medians of interleaved rounds. `--json` prints them as JSON. Fails when a goal is missed, on any answer but an acceptance, on an acknowledged
 * action without its stored row, and when another library than the native one recovers signatures.
 */
import { signatureBackend } from '../../core/wire/recover.js';
import { measureBook } from './book.js';
import { measureCommit } from './commit.js';
import { measureFanout } from './fanout.js';
import { measureFlood } from './flood.js';
import { measureHttp } from './http.js';
import { holds } from './measure.js';
import type { Row } from './measure.js';
import { measureQueries } from './queries.js';
import { measureVerify } from './verify.js';
import { measureWorkers } from './workers.js';

if (signatureBackend !== 'native') throw new Error('the native signature library does not load here');
const { rows: verified, baselines } = await measureVerify();
const rows: Row[] = [
  ...verified,
  ...(await measureBook(baselines)),
  ...(await measureCommit()),
  ...(await measureFanout()),
  ...(await measureWorkers()),
  ...(await measureHttp(baselines)),
  ...(await measureFlood()),
  ...(await measureQueries()),
];

const boundText = ({ bound }: Row): string =>
  bound === null ? '' : 'atLeast' in bound ? `>= ${bound.atLeast}` : `<= ${bound.atMost}`;

if (process.argv.includes('--json')) {
  process.stdout.write(
    `${JSON.stringify({ backend: signatureBackend, rows: rows.map((row) => ({ ...row, holds: holds(row) })) })}\n`,
  );
} else {
  process.stdout.write(`signatures: ${signatureBackend}\n`);
  for (const row of rows) {
    const value = `${row.value.toPrecision(3)} ${row.unit}`;
    const verdict = row.bound === null ? '' : holds(row) ? 'holds' : 'MISSED';
    process.stdout.write(
      `${row.goal.padEnd(4)} ${row.what.padEnd(52)} ${value.padStart(10)}  ${boundText(row).padEnd(8)} ${verdict}\n`,
    );
  }
}
process.exitCode = rows.every(holds) ? 0 : 1;
