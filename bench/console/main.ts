/**
 * `npm run bench:console`: the console in Chromium on a sandbox of its own: bytes of script of the first load, time until the page is interactive on a
 * processor slowed down four times, frames of the book from a stream of 200 updates a second, and memory over `--minutes` of that stream. `--json` prints
 * the rows as JSON. Fails when a goal is missed, and where there is no Chromium.
 */
import { parseArgs } from 'node:util';
import { toSafeInt } from '../../core/amounts.js';
import { hasBrowser, openConsole } from '../../test/support/console/console-browser.js';
import { holds, median, type Row } from '../gateway/measure.js';
import { framesOf, heapBytes, interactiveMs, scriptBytes, watch } from './measure.js';
import { startFastStream } from './stream.js';

const { values } = parseArgs({
  options: { json: { type: 'boolean', default: false }, minutes: { type: 'string', default: '5' } },
});
const MINUTES = /^[1-9]\d{0,2}$/.test(values.minutes) ? toSafeInt(BigInt(values.minutes)) : 0;
if (MINUTES === 0) throw new Error('--minutes takes a whole number from 1 to 999');

const UPDATES_PER_SEC = 200;
const FRAMES_SEC = 20;
const SAMPLE_MS = 5_000;
/** Caches of the page and compiled code fill up first. */
const WARM_UP_MS = 30_000;
const TOLD_EVERY_MIN = 5;
const MEGABYTE = 1_000_000;

async function measureAll(): Promise<Row[]> {
  const opened = await openConsole();
  const { page, url } = opened;
  try {
    const cdp = await page.context().newCDPSession(page);
    await watch(page);
    const rows: Row[] = [];
    const add = (goal: string, what: string, [value, unit]: [number, string], bound: Row['bound'] = null): void =>
      void rows.push({ goal, what, value, unit, bound });

    add('C1', 'script of the first load, gzipped', [(await scriptBytes(page, url)) / 1_000, 'kB'], { atMost: 200 });
    const interactive = await interactiveMs({ page, cdp }, url, { slowdown: 4, loads: 5 });
    add('C2', 'until interactive, processor / 4, median of 5', [interactive.median, 'ms'], { atMost: 1_000 });
    add('C2', 'the slowest of them', [interactive.worst, 'ms']);

    const stream = await startFastStream(url, UPDATES_PER_SEC);
    try {
      await page.goto(`${stream.url}/market`);
      await page.locator('.chart canvas').waitFor();
      await page.locator('.book table').first().getByRole('row').nth(2).waitFor();
      await page.waitForTimeout(3_000);
      stream.sent();
      const frames = await framesOf(page, FRAMES_SEC);
      // Fewer updates would be no test of the page.
      add('C3', 'updates of the book sent', [stream.sent() / FRAMES_SEC, '/s'], { atLeast: 0.95 * UPDATES_PER_SEC });
      // 20 a second, less a frame at either end of the time.
      add('C3', 'frames of the book drawn', [frames.perSec, '/s'], { atLeast: 20 - 2 / FRAMES_SEC });
      add('C3', 'tasks above 50 ms', [frames.longTasks, ''], { atMost: 0 });
      add('C3', 'the longest of them', [frames.longestMs, 'ms']);

      await page.waitForTimeout(WARM_UP_MS);
      const samples: number[] = [];
      const beganMs = Date.now();
      add('C4', 'heap at the start', [(await heapBytes(cdp)) / MEGABYTE, 'MB']);
      for (let toldMin = TOLD_EVERY_MIN; Date.now() < beganMs + MINUTES * 60_000;) {
        await page.waitForTimeout(SAMPLE_MS);
        // What is measured with is no part of what is measured.
        await page.evaluate('longTasks.length = 0');
        const bytes = await heapBytes(cdp);
        samples.push(bytes);
        if (Date.now() < beganMs + toldMin * 60_000) continue;
        add('C4', `heap after ${toldMin} min`, [bytes / MEGABYTE, 'MB']);
        toldMin += TOLD_EVERY_MIN;
      }
      const third = Math.ceil(samples.length / 3);
      const first = median(samples.slice(0, third));
      const last = median(samples.slice(-third));
      add('C4', 'heap, median of the first third', [first / MEGABYTE, 'MB']);
      add('C4', `growth to the last third of ${MINUTES} min`, [(last - first) / MEGABYTE, 'MB'], { atMost: 1 });
    } finally {
      await stream.close();
    }
    return rows;
  } finally {
    await opened.close();
  }
}

if (!hasBrowser()) process.exitCode = 1;
else {
  const rows = await measureAll();
  if (values.json) process.stdout.write(`${JSON.stringify(rows.map((row) => ({ ...row, holds: holds(row) })))}\n`);
  else
    for (const row of rows) {
      const bound =
        row.bound === null ? '' : 'atLeast' in row.bound ? `>= ${row.bound.atLeast}` : `<= ${row.bound.atMost}`;
      const verdict = row.bound === null ? '' : holds(row) ? 'holds' : 'MISSED';
      const value = `${row.value.toFixed(1)} ${row.unit}`;
      process.stdout.write(`${row.goal} ${row.what.padEnd(48)} ${value.padStart(12)}  ${bound.padEnd(8)} ${verdict}\n`);
    }
  process.exitCode = rows.every(holds) ? 0 : 1;
}
