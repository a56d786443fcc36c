/** `npm start` as a newcomer runs it: every market trades, nothing of a running sandbox is lost, and what goes wrong is said in a line. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { SANDBOX_MARKETS } from '../../deploy/sandbox/sandbox.js';
import type { SandboxManifest } from '../../deploy/manifest.js';
import { openReader, type Reader, type Running } from '../support/api/reader.js';
import { fcOptions } from '../support/fc.js';
import { until } from '../support/stack.js';

const BANNER = 'In another terminal:';
/** The most markets stand for all in what takes time, but for `npm run test:deep`. */
const isWhole = (count: number): boolean => fcOptions(1).numRuns > 1 || count === SANDBOX_MARKETS.length;
/** The fewest and the most are started, and in a deep run every number of them. One market is also what the guides start. */
const COUNTS = SANDBOX_MARKETS.map((_, i) => i + 1).filter((count) => count === 1 || isWhole(count));

/** A chain outlives a console that was killed, and nothing in its command line names the folder. */
function endChain(rpcUrl: string): void {
  const processes = execFileSync('ps', ['-A', '-o', 'pid=', '-o', 'args='], { encoding: 'utf8', maxBuffer: 1e8 });
  const words = ['deploy/chain.js', `--port ${new URL(rpcUrl).port} `];
  const found = processes.split('\n').filter((line) => words.every((word) => line.includes(word)));
  for (const line of found) process.kill(parseInt(line, 10), 'SIGKILL');
}

function reconciles(started: () => { sandbox: Running; manifest: SandboxManifest }, count: number): void {
  it('has a fill that reconciles in every market', async () => {
    const { sandbox, manifest } = started();
    const pairs = SANDBOX_MARKETS.slice(0, count).map(({ pair }) => pair);
    expect(manifest.markets.map(({ pair }) => pair)).to.deep.equal(pairs);
    for (const pair of pairs) {
      await sandbox.line((line) => line.includes(`] fill ${pair} #`) && line.endsWith('(reconciles)'));
    }
    expect(sandbox.lines().filter((line) => line.includes('DOES NOT RECONCILE'))).to.deep.equal([]);
  });
}

for (const count of COUNTS) {
  describe(`npm start -- --markets ${count}`, function () {
    this.timeout(400_000);
    let reader: Reader;
    let sandbox: Running;
    let manifest: SandboxManifest;
    let start: string;
    const pathOf = (name: string): string => join(reader.folder, '.curvebook', name);

    before(async () => {
      reader = openReader({ PORT: '0', RPC_PORT: '0', BLOCK_TIME_MS: '500' });
      start = `SANDBOX_DIR=${reader.folder}/.curvebook npm start --`;
      sandbox = reader.start(`${start} --markets ${count}`);
      await sandbox.line((line) => line === BANNER);
      manifest = JSON.parse(readFileSync(pathOf('sandbox.json'), 'utf8')) as SandboxManifest;
    });
    after(() => reader?.close());

    it('ends its start with commands that work', async () => {
      const tail = (): readonly string[] => sandbox.lines().slice(sandbox.lines().indexOf(BANNER));
      await until('the last command', async () => tail().some((line) => line.includes('curvebook.mjs status')));
      const [first, ...rest] = tail().flatMap(
        (line) => /^ {2}(?:try| {3}) {7}((?:curl|node) .*)$/.exec(line)?.[1] ?? [],
      );
      expect(rest).to.have.length(2);
      for (const url of [manifest.serverUrl, manifest.rpcUrl]) expect(tail().join('\n')).to.include(url);
      expect((await fetch(`${manifest.serverUrl}/docs`)).status).to.equal(200);
      expect(JSON.parse((await reader.run(first!)).output)).to.include({ pair: 'WETH-USDC' });
      expect(JSON.parse((await reader.run(rest[0]!)).output)).to.be.an('array');
      expect((await reader.run(rest[1]!)).output).to.match(/WETH-USDC: fill \d+, curve \d+ landed/);
    });

    if (!isWhole(count)) return void reconciles(() => ({ sandbox, manifest }), count);

    it('is not disturbed by a second start in its folder, which says where it is', async () => {
      const refused = await reader.run(`${start} --markets 1`).catch(String);
      expect(refused).to.include(`server ${manifest.serverUrl}, chain ${manifest.rpcUrl}, process `);
      expect(refused).to.match(/a sandbox .* runs in .*\.curvebook already; stop it .*SANDBOX_DIR/);
      expect(refused).not.to.include('    at ');
      expect(JSON.parse(readFileSync(pathOf('sandbox.json'), 'utf8'))).to.deep.equal(manifest);
      expect((await fetch(`${manifest.serverUrl}/health`)).status).to.equal(200);
    });

    reconciles(() => ({ sandbox, manifest }), count);

    it('keeps its database while a server that was started by hand uses it', async () => {
      const { pid } = JSON.parse(readFileSync(pathOf('sandbox-running.json'), 'utf8')) as { pid: number };
      process.kill(pid, 'SIGKILL');
      reader.signal('SIGKILL', 'cli/main.js serve');
      const port = new URL(manifest.serverUrl).port;
      const options = `--manifest ${pathOf('sandbox.json')} --database sqlite:${pathOf('curvebook.sqlite')} --port ${port}`;
      const server = reader.start(`node scripts/curvebook.mjs serve ${options}`);
      await server.line((line) => line.startsWith('serving '));
      const refused = await reader.run(`${start} --markets 1`).catch(String);
      expect(refused).to.include(`a server of an earlier sandbox (server ${manifest.serverUrl}`);
      expect(await server.stop()).to.equal(0);
      endChain(manifest.rpcUrl);
      const again = reader.start(`${start} --no-demo`);
      await again.line((line) => line === BANNER);
      expect(await again.stop()).to.equal(0);
    });
  });
}
