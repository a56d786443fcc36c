/**
 * The code blocks of the documentation, run as they stand there against `npm start`, and the programs of examples/. A block that can't
 * run here says why in a comment before its fence.
 */
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { Wallet } from 'ethers';
import { recordedBook } from '../../bench/curve/books.js';
import { readDeployLine } from '../../deploy/options.js';
import type { SandboxManifest } from '../../deploy/manifest.js';
import { blocksOf, commandsOf, lineShape, parseShown, shapeDifferences, type Block } from '../support/console/docs.js';
import { openReader, type Reader, type Running } from '../support/api/reader.js';
import { until } from '../support/stack.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');

/** In the order in which they are run: the first starts what the others talk to. */
const GUIDES = ['makers', 'takers', 'orders', 'swap', 'operators', 'runbook', 'curve', 'sdk'];
const FILES = ['README.md', ...GUIDES.map((name) => `docs/${name}.md`)];
/** Its samples are contracts and calls of them, which a test of its own runs. */
const CONTRACTS = { file: 'docs/contracts.md', test: 'test/chain/contract-samples.test.ts' };
/** No other reason keeps a block from being run. */
const REASONS = [
  'CI runs it',
  'asks for a password',
  'needs Docker; test/e2e/compose.test.ts runs its processes',
  'test/chain/deploy/deploy-cli.test.ts runs it',
  'test/chain/upgrade.test.ts runs its steps',
  'test/e2e/backup.test.ts runs both',
  'test/server/docs/old-posts.test.ts runs it with stubs, test/e2e/database/partitions.test.ts the commands of curvebook',
  'test/e2e/edge/edge.test.ts starts some, with a server of NATS',
  'test/e2e/database/containers-doctor.test.ts runs it with the environment of each container',
  'test/e2e/database/failover.test.ts follows it',
  'test/e2e/newcomer.test.ts runs it',
  'test/e2e/database/reader.test.ts starts one on a replica',
  'test/ledger/db/replication.test.ts runs its settings',
  'test/sdk/trust.test.ts and test/keepers/executor/limit-orders.test.ts do the same',
  'test/server/docs/systemd.test.ts checks the units',
  'test/server/swap/swap-cancel.test.ts signs what it describes',
];
const SERVE = 'node scripts/curvebook.mjs serve ';
const BOTS = 'two makers, two takers and one gasless taker are trading; Ctrl-C stops everything';
const BLOCK_TIME_MS = 500;
/** Bounds how long the platform may be not ready on a machine that has too much to do. */
const BUSY_MS = 120_000;

interface Example extends Block {
  file: string;
  name: string;
}

const examples: Example[] = FILES.flatMap((file) =>
  blocksOf(textOf(file)).map((block) => ({
    ...block,
    file,
    name: `${file}:${block.line} ${block.code.split('\n', 1)[0]!.slice(0, 60)}`,
  })),
);

describe('what the documentation shows', function () {
  this.timeout(400_000);
  let reader: Reader;
  let sandbox: Running;
  let manifest: SandboxManifest;
  /** What the block before printed. */
  let lastOutput: () => readonly string[] = () => [];
  let server: { code: string; running: Running } | null = null;

  before(() => {
    reader = openReader({ PORT: '0', RPC_PORT: '0', BLOCK_TIME_MS: String(BLOCK_TIME_MS) });
  });
  after(async () => {
    await reader?.close();
    const left = examples.filter(({ notRun }) => notRun !== null);
    console.log(`    not run: ${left.map(({ name, notRun }) => `\n      ${name} (${notRun})`).join('')}`);
  });

  const port = (): string => new URL(manifest.serverUrl).port;
  const account = (role: string) => manifest.accounts.find((one) => one.role === role)!;

  /** Shell text with the ports of this run, and with addresses where the text leaves them to the reader. */
  function filled(code: string, address: string): string {
    const text = code.replaceAll('8080', port()).replaceAll('0x…', address);
    expect(text, 'something is left for the reader to fill in').not.to.contain('…');
    return text;
  }

  /** The text of a run as the documentation would show it: default ports and paths. */
  const asShown = (line: string): string => line.replaceAll(`${reader.folder}/`, '');

  function compare(shown: readonly string[], printed: readonly string[]): void {
    if (/^[[{]["{\]}]/.test(shown[0] ?? '')) {
      const real = printed.join('\n');
      const differences = shapeDifferences(parseShown(shown.join('\n')), JSON.parse(real));
      if (differences.length > 0) throw new Error(`${differences.join('\n')}\nin ${real}`);
    } else expect(shown.map(lineShape)).to.deep.equal(printed.map(asShown).map(lineShape));
  }

  async function startSandbox(code: string): Promise<void> {
    sandbox = reader.start(code, { SANDBOX_DIR: join(reader.folder, '.curvebook') });
    await sandbox.line((line) => line.includes(BOTS));
    manifest = JSON.parse(readFileSync(join(reader.folder, '.curvebook', 'sandbox.json'), 'utf8')) as SandboxManifest;
    await sandbox.line((line) => line.endsWith('(reconciles)'));
  }

  /** Everything up to the bots is what is shown, line by line; what comes after is printed somewhere, in the shape that is shown. */
  function compareSandbox(shown: readonly string[]): void {
    const printed = sandbox.lines().filter((line) => line.startsWith('[') || /^( {2}|In another)/.test(line));
    const shape = (line: string): string => lineShape(asShown(line));
    const upToBots = (lines: readonly string[]) => lines.slice(0, lines.findIndex((line) => line.includes(BOTS)) + 1);
    expect(upToBots(shown).map(lineShape)).to.deep.equal(upToBots(printed).map(shape));
    const rest = shown.slice(upToBots(shown).length);
    expect(rest.join('\n')).to.match(/^In another terminal:[^]*\] fill /);
    const real = new Set(printed.map(shape));
    for (const line of rest) expect(real).to.include(lineShape(line));
  }

  /** Kills the server; the sandbox then says how to start one, which is what is run. */
  async function serveAgain(code: string): Promise<void> {
    if (server?.code === code) return;
    const before = sandbox.lines().length;
    expect(reader.signal('SIGKILL', 'cli/main.js serve'), 'one server').to.equal(1);
    const advice = await sandbox.line((line) => line.includes(SERVE), before);
    expect(asShown(advice)).to.contain(code.trim().replace('8080', port()));
    const running = reader.start(filled(code, ''));
    await running.line((line) => line.startsWith('serving watcher, gateway, poster, settler, executor at '));
    await untilReady();
    server = { code, running };
  }

  async function runShell(code: string): Promise<void> {
    const deploys = code.includes('npm run deploy');
    const address = deploys ? account('maker3').address : Wallet.createRandom().address;
    const key = { DEPLOY_RPC_URL: manifest.rpcUrl, DEPLOY_PRIVATE_KEY: account('maker3').privateKey };
    const { output } = await reader.run(filled(code, address), deploys ? key : {});
    lastOutput = () => output.trimEnd().split('\n');
  }

  async function runConsole(code: string): Promise<void> {
    for (const { command, output } of commandsOf(code)) {
      await onceReady(
        () => runShell(command),
        () => lastOutput().some((line) => line.includes('"NOT_READY"')),
      );
      compare(output, lastOutput());
    }
  }

  async function runScript(code: string): Promise<void> {
    writeFileSync(join(reader.folder, 'sample.mjs'), code);
    await onceReady(() => runShell('node sample.mjs'));
  }

  async function untilReady(): Promise<void> {
    const limits = `${manifest.serverUrl}/v0/makers/${account('maker1').address}/limits`;
    await until('the ledger to be ready', async () => {
      const answer = await fetch(limits);
      return answer.ok && ((await answer.json()) as { ledger: { ready: boolean } }).ledger.ready;
    });
  }

  /** Again when the platform was not ready, as may be on a machine that has too much to do. */
  async function onceReady(run: () => Promise<void>, wasRefused: () => boolean = () => false): Promise<void> {
    for (const deadlineMs = Date.now() + BUSY_MS; ; await untilReady()) {
      const failure: unknown = await run().then(
        () => null,
        (error: unknown) => error,
      );
      const isBusy = failure === null ? wasRefused() : (failure as Error).message.includes('The ledger is not ready');
      if (isBusy && Date.now() < deadlineMs) continue;
      if (failure !== null) throw failure as Error;
      return;
    }
  }

  /** The configuration of a deployment, with this chain's accounts where the text describes one. */
  function writeConfig(code: string): void {
    const described: [RegExp, string][] = [
      [/0x… the multisig/, account('owner').address],
      [/0x… key of the (\w+)/, ''],
      [/0x…/, manifest.tokens.find(({ symbol }) => symbol === 'USDC')!.address],
    ];
    const config = code.replace(/"(0x…[^"]*)"/g, (_, text: string) => {
      const [pattern, address] = described.find(([one]) => one.test(text))!;
      return JSON.stringify(address === '' ? account(pattern.exec(text)![1]!).address : address);
    });
    // The sandbox's tokens but for WETH are not where the real chain has those of their names, and it has no more than it lists.
    const { tokens, ...rest } = JSON.parse(config) as { tokens: { symbol: string }[] };
    const here = manifest.tokens.filter((one) => tokens.some(({ symbol }) => symbol === one.symbol));
    const text = JSON.stringify({ ...rest, tokens: here });
    writeFileSync(join(reader.folder, 'deployments', '8453.config.json'), text);
  }

  /** What `npm run bench:curve -- --book` reads. */
  function readBook(code: string): void {
    const path = join(reader.folder, 'book.json');
    writeFileSync(path, code);
    expect(recordedBook(path, 10).map(({ levels }) => levels.length)).to.deep.equal([1, 1]);
  }

  async function runExample({ file, language, code }: Example): Promise<void> {
    const lines = code.trimEnd().split('\n');
    if (language === 'sh' && code === 'npm start\n') {
      await startSandbox(code);
      lastOutput = sandbox.lines;
    } else if (language === 'sh' && code.startsWith(SERVE)) await serveAgain(code);
    else if (language === 'sh') await runShell(code);
    else if (language === 'console') await runConsole(code);
    else if (language === 'js') await runScript(code);
    else if (language === '' && lastOutput === sandbox.lines) compareSandbox(lines);
    else if (language === '') compare(lines, lastOutput());
    else if (language === 'json' && file === 'docs/operators.md') writeConfig(code);
    else if (language === 'json' && file === 'docs/curve.md') readBook(code);
    else throw new Error(`nothing runs a block in ${language}; run it here, or say why not in <!-- not run: … -->`);
  }

  for (const [index, example] of examples.entries()) {
    // The blocks that follow need no market that moves.
    if (index > 0 && examples[index - 1]!.file === 'README.md' && example.file !== 'README.md') {
      it('makers, takers and the gasless taker of examples/ trade until they are told to stop', tradeAndStop);
    }
    it(example.name, async () => {
      if (example.notRun === null) return runExample(example);
      expect(REASONS).to.include(example.notRun);
      const test = /^test\/\S+/.exec(example.notRun)?.[0];
      if (test !== undefined) expect(existsSync(join(root, test)), test).to.equal(true);
    });
  }

  async function tradeAndStop(): Promise<void> {
    const logOf = (role: string): string => readFileSync(join(reader.folder, '.curvebook', `${role}.log`), 'utf8');
    const said = (role: string, what: RegExp) => until(`${role} to trade`, async () => what.test(logOf(role)));
    const traded: [string, RegExp][] = [
      ['taker1', /(bought|sold) [\d.]+ WETH for [\d.]+ USDC \(WETH-USDC, fill \d+\)/],
      ['taker2', /(bought|sold) [\d.]+ WETH for [\d.]+ USDC \(WETH-USDC, fill \d+\)/],
      ['taker3', /gave [\d.]+ \w+, got [\d.]+ \w+ \(0x[0-9a-f]{64}\)/],
    ];
    for (const [role, what] of traded) await said(role, what);
    const programs = ['maker', 'maker', 'taker', 'taker', 'gasless-taker'];
    const before = sandbox.lines().length;
    expect(reader.signal('SIGINT', 'examples/'), 'bots').to.equal(programs.length);
    for (const role of ['maker1', 'maker2', 'taker1', 'taker2', 'taker3']) {
      await sandbox.line((line) => line.includes(`${role} has stopped (exit code 0)`), before);
    }
    for (const role of ['maker1', 'maker2'])
      expect(logOf(role)).to.match(/quoting WETH-USDC\n[^]*stopped, \d+ orders cancelled/);
  }

  it('every command line of a deployment is one that the program takes', () => {
    const lines = [...textOf('docs/operators.md').matchAll(/npm run deploy -- ([a-z][^#`\n]*)/g)].map(([, line]) =>
      line!.trim(),
    );
    expect(lines.length).to.be.greaterThan(10);
    for (const line of lines) expect(readDeployLine(line.split(/\s+/)), line).not.to.equal(null);
  });

  it('every block of every guide is looked at', () => {
    const guides = [...readdirSync(root), ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`)];
    const withBlocks = guides.filter((file) => file.endsWith('.md') && blocksOf(textOf(file)).length > 0);
    expect(withBlocks.filter((file) => !FILES.includes(file))).to.deep.equal([CONTRACTS.file]);
    const test = textOf(CONTRACTS.test);
    for (const { language } of blocksOf(textOf(CONTRACTS.file))) expect(test).to.contain(`sample('${language}')`);
  });

  it('every program of examples/ is run, and everything else there is used by one', () => {
    const files = readdirSync(join(root, 'examples'));
    const shown = examples.filter(({ notRun }) => notRun === null).map(({ code }) => code);
    const tests = textOf('test/e2e/swap-examples.test.ts');
    const sandboxBots = textOf('cli/sandbox.ts');
    const runs = (name: string): boolean =>
      sandboxBots.includes(`['${name}', `) ||
      tests.includes(`startChild('examples/${name}.ts'`) ||
      shown.some((code) => code.includes(`node --import tsx examples/${name}.ts`));
    const names = files.map((file) => file.replace(/(\.d)?\.ts$/, ''));
    const isUsed = (name: string): boolean =>
      files.some((file) => textOf(`examples/${file}`).includes(` from './${name}.js'`));
    expect(names.filter((name) => !runs(name) && !isUsed(name))).to.deep.equal([]);
    expect(names.filter(runs)).to.have.members([
      'maker',
      'taker',
      'gasless-taker',
      'gasless-viem',
      'partner-swap',
      'read-api',
      'check-fills',
    ]);
  });

  it('and what it does not show is found', async () => {
    const block = { file: 'docs/makers.md', name: '', line: 1, language: 'python', code: 'print()\n', notRun: null };
    expect(await runExample(block).catch(String)).to.contain('nothing runs a block in python');
    const failing = { ...block, language: 'sh', code: 'false\ntrue\n' };
    expect(await runExample(failing).catch(String)).to.contain('ended with 1');
    const gone = { ...block, language: 'console', code: '$ curl -s localhost:8080/health\n{"status":"ok","gone":1}\n' };
    expect(await runExample(gone).catch(String)).to.contain('$ is shown with gone status, but has');
    for (const text of ['```sh\nnpm start\n', '<!-- not run: CI runs it -->\n\n```sh\n```\n', '<!--not run: x-->\n']) {
      expect(() => blocksOf(text), text).to.throw();
    }
    expect(shapeDifferences([{ a: 1 }], [])).to.have.length(1);
    expect(shapeDifferences({ a: { b: '1' } }, { a: { b: 1 } })).to.deep.equal([
      '$.a.b is shown as a string, but is a number',
    ]);
  });

  it('every program that is started stops at Ctrl-C', async () => {
    expect(await server?.running.stop(), 'server').to.equal(0);
    expect(await sandbox.stop(), 'sandbox').to.equal(0);
  });
});
