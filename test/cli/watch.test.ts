/** What a watched command shows: pictures on a terminal, lines elsewhere, and an end when nobody looks any more. */
import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { watch, type Look } from '../../cli/commands/watch.js';

const AT_MS = Date.UTC(2026, 0, 31, 12);

interface Terminal extends PassThrough {
  isTTY?: boolean;
  rows?: number;
}

/** Looks as a script, one after the other; the watch ends with the last. */
async function watched(
  looks: readonly (Look | Error)[],
  {
    isTTY = false,
    rows,
    isJson = false,
    env = {},
  }: { isTTY?: boolean; rows?: number; isJson?: boolean; env?: Record<string, string> },
): Promise<string> {
  const output: Terminal = Object.assign(new PassThrough(), { isTTY, ...(rows === undefined ? {} : { rows }) });
  let printed = '';
  output.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  const interrupt = new AbortController();
  let taken = 0;
  await watch({
    output,
    env,
    intervalMs: 1,
    signal: interrupt.signal,
    nowMs: () => AT_MS,
    json: isJson ? JSON.stringify : null,
    isAlarming: (line) => line.startsWith('not ready'),
    look() {
      const next = looks[taken++];
      if (next === undefined) {
        interrupt.abort();
        return Promise.reject(new Error('over'));
      }
      return next instanceof Error ? Promise.reject(next) : Promise.resolve(next);
    },
  });
  return printed;
}

const look = (...text: string[]): Look => ({ value: { text }, text });

describe('a watched command', () => {
  it('prints one look after the other where there is no terminal', async () => {
    const printed = await watched([look('ready'), look('not ready: halted')], {});
    const title = '2026-01-31T12:00:00.000Z, every 0.001 s; Ctrl-C ends';
    expect(printed).to.equal(`${title}\nready\n\n${title}\nnot ready: halted\n\n`);
  });

  it('goes on after a look that fails, and shows why', async () => {
    const printed = await watched([new Error('no database'), look('ready')], { isJson: true });
    expect(
      printed
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).to.deep.equal([{ ok: false, message: 'no database' }, { text: ['ready'] }]);
  });

  it('redraws on a terminal from its top, with bad news in red, unless colours are not wanted', async () => {
    const coloured = await watched([look('not ready: x')], { isTTY: true });
    expect(coloured.startsWith('\u001b[H')).to.equal(true);
    expect(coloured).to.contain('\u001b[31mnot ready: x\u001b[0m\u001b[K\n');
    expect(coloured.endsWith('\u001b[J')).to.equal(true);
    const plain = await watched([look('not ready: x')], { isTTY: true, env: { NO_COLOR: '1' } });
    expect(plain).to.contain('\nnot ready: x\u001b[K\n');
  });

  it('never draws more lines than the terminal has, and says how many are left out', async () => {
    const printed = await watched([look(...'abcdefghij')], { isTTY: true, rows: 6 });
    const lines = printed.split('\n').slice(0, -1);
    expect(lines).to.have.length(5);
    expect(lines.at(-1)).to.match(/^… 7 more lines/);
  });

  it('ends when nobody reads any more', async () => {
    const output = new PassThrough();
    output.on('error', () => undefined);
    const ended = watch({
      output,
      env: {},
      intervalMs: 60_000,
      signal: new AbortController().signal,
      nowMs: () => AT_MS,
      json: null,
      isAlarming: () => false,
      look: () => Promise.resolve(look('ready')),
    });
    setImmediate(() => output.destroy());
    await ended;
  });

  it('waits for a reader that is slower than the looks', async () => {
    const output = new PassThrough({ highWaterMark: 1 });
    const interrupt = new AbortController();
    let looks = 0;
    const ended = watch({
      output,
      env: {},
      intervalMs: 1,
      signal: interrupt.signal,
      nowMs: () => AT_MS,
      json: null,
      isAlarming: () => false,
      look: () => Promise.resolve(look(`look ${++looks}`, 'x'.repeat(1_000))),
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(looks).to.be.at.most(2);
    interrupt.abort();
    await ended;
  });
});
