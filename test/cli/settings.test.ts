/** What stops a start: every setting by itself, and settings that don't go together. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadConfig, type Config } from '../../cli/config.js';
import { ConfigError } from '../../cli/errors.js';
import { readSandboxConfig } from '../../cli/sandbox/config.js';
import { unusedNames } from '../../cli/roles/unused-names.js';
import { createBlockClock } from '../../keepers/poster/clock.js';
import { WETH_USDC } from '../support/markets.js';

const ORDER = 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141';
const KEY = (digit: string): string => `0x${digit.repeat(64)}`;
const ADDRESS = `0x${'ab'.repeat(20)}`;

describe('settings', () => {
  let folder: string;
  let usual: Record<string, string>;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'curvebook-settings-'));
    const contracts = {
      custodian: ADDRESS,
      curveBook: ADDRESS,
      entrypoint: ADDRESS,
      orderSettler: ADDRESS,
      permit2: ADDRESS,
    };
    const manifest = { chainId: 1, deploymentId: '0123456789abcdef', deploymentBlock: 1, contracts };
    writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest));
    usual = {
      MANIFEST: join(folder, 'manifest.json'),
      RPC_URL: 'http://127.0.0.1:1',
      OPERATOR_ADDRESS: ADDRESS,
      POSTER_PRIVATE_KEY: KEY('1'),
      SETTLER_PRIVATE_KEY: KEY('2'),
      EXECUTOR_PRIVATE_KEY: KEY('3'),
    };
  });
  after(() => rmSync(folder, { recursive: true }));

  const load = (changes: Record<string, string> = {}): Config => loadConfig({}, { ...usual, ...changes });

  function problemsOf(changes: Record<string, string>): readonly string[] {
    try {
      load(changes);
      return [];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return error.problems;
    }
  }

  it('name the setting that is wrong', () => {
    expect(problemsOf({})).to.deep.equal([]);
    const wrong: [name: string, ...values: string[]][] = [
      ['POSTER_PRIVATE_KEY', KEY('0'), KEY('f'), `0x${ORDER}`, '0x12'],
      ['SETTLER_PRIVATE_KEY', KEY('0')],
      ['EXECUTOR_PRIVATE_KEY', KEY('f')],
      [
        'RPC_URL',
        'ftp://example.org',
        'localhost:8545',
        'ws://example.org',
        'http://a,ftp://b',
        'http://a,http://a',
        'http://a,http://A:80/',
      ],
      ['ROLES', 'watcher,watcher', 'gatway', ','],
      ['OPERATOR_ADDRESS', '0x976EA74026E726554dB657fA54763abd0C3a0aA9', '0x12'],
      ['PUBLIC_URL', 'ftp://example.org', 'javascript:alert(1)'],
      ['PUBLIC_RPC_URL', 'ws://example.org', 'javascript:alert(1)'],
      ['EXPLORER_URL', 'example.org', 'javascript:alert(1)'],
      ['PORT', '0x10', '1e3', '80.0', '+80', '-1', '65536', 'http'],
      ['METRICS_PORT', '0x10', '70000'],
      ['MAX_KNOTS', '8', '7.0'],
      ['CURVE_TTL_SEC', '1', '61', '٣'],
      ['OPERATOR_FLOORS', 'USDC=1,USDC=2'],
      ['REFERENCE_PRICES', 'WETH-USDC=1,WETH-USDC=2', 'WETH-USDC=0', 'WETH-USDC=0.0'],
    ];
    for (const [name, ...values] of wrong) {
      for (const value of values) {
        const problems = problemsOf({ [name]: value });
        expect(problems.length, `${name}=${value}`).to.be.above(0);
        for (const problem of problems) expect(problem, value).to.match(new RegExp(`^${name}\\b`));
      }
    }
    expect(problemsOf({ POSTER_PRIVATE_KEY: `0x${ORDER.slice(0, -1)}0` })).to.deep.equal([]);
    expect(problemsOf({ PORT: '-1', RPC_URL: 'ftp://a', MAX_KNOTS: '1' })).to.have.length(3);
  });

  it('that are blank count as absent, and never as zero', () => {
    const blank = load({ PORT: ' ', CURVE_TTL_SEC: '\t', METRICS_PORT: ' ', FEE_CEILING_GWEI: ' ', LOG_LEVEL: ' ' });
    expect([blank.PORT, blank.CURVE_TTL_SEC, blank.METRICS_PORT, blank.LOG_LEVEL]).to.deep.equal([
      8080,
      12,
      undefined,
      'info',
    ]);
    expect(load({ PORT: ' 81 ' }).PORT).to.equal(81);
    const sandbox = readSandboxConfig([], { PORT: ' ', RPC_PORT: '', BLOCK_TIME_MS: ' ' });
    expect(sandbox).to.include({ port: 8080, rpcPort: 8545, blockTimeMs: 2_000 });
    expect(() => readSandboxConfig([], { PORT: '0x10' })).to.throw(/PORT/);
    expect(() => readSandboxConfig([], { PORT: '8545' })).to.throw(/RPC_PORT: must not be PORT/);
    expect(readSandboxConfig([], { PORT: '0', RPC_PORT: '0' })).to.include({ port: 0, rpcPort: 0 });
  });

  it('are judged together, for the roles that use them', () => {
    const wrong: [changes: Record<string, string>, problem: RegExp, other: string][] = [
      [
        { FEE_CEILING_GWEI: '0' },
        /^FEE_CEILING_GWEI: 0 pays for no transaction, and the poster, settler, executor must/,
        'watcher',
      ],
      [{ FEE_CEILING_GWEI: '0.0009' }, /^FEE_CEILING_GWEI: 0.0009 pays/, 'gateway'],
      [
        { POST_BUDGET_GWEI_PER_HOUR: '2999999' },
        /^POST_BUDGET_GWEI_PER_HOUR: 2999999 does not pay.*FEE_CEILING_GWEI \(3000000\)/,
        'settler',
      ],
      [{ CUT_BEFORE_BLOCK_MS: '12000' }, /^CUT_BEFORE_BLOCK_MS: must be less than CURVE_TTL_SEC/, ''],
      [{ TOUCH_BEFORE_SEC: '12' }, /^TOUCH_BEFORE_SEC: must be less than CURVE_TTL_SEC/, ''],
      [{ POLL_INTERVAL_MS: '5000' }, /^POLL_INTERVAL_MS: must be less than 5000/, 'gateway'],
      [{ SWAP_ORDER_TTL_SEC: '30', SWAP_QUOTE_TTL_SEC: '31' }, /^SWAP_ORDER_TTL_SEC: must not be less/, ''],
      [{ CLAIM_INTERVAL_SEC: '3601' }, /^SMALL_CLAIM_INTERVAL_SEC: must not be less than CLAIM_INTERVAL_SEC/, ''],
      [{ CURVE_ERROR_MILLI_BPS: '5001' }, /^MAX_CURVE_ERROR_MILLI_BPS: must not be less than CURVE_ERROR/, ''],
      [{ METRICS_PORT: '8080' }, /^METRICS_PORT: must not be PORT/, 'watcher'],
    ];
    for (const [changes, problem, other] of wrong) {
      const problems = problemsOf(changes);
      expect(problems, JSON.stringify(changes)).to.have.length(1);
      expect(problems[0]).to.match(problem);
      if (other !== '') expect(problemsOf({ ...changes, ROLES: other }), other).to.deep.equal([]);
    }
    const all = Object.assign({}, ...wrong.filter((_, i) => i !== 1 && i !== 2).map(([changes]) => changes)) as Record<
      string,
      string
    >;
    expect(problemsOf(all)).to.have.length(8);
    expect(problemsOf({ PORT: '0', METRICS_PORT: '0' }), 'two free ports').to.deep.equal([]);
    expect(problemsOf({ POST_BUDGET_GWEI_PER_HOUR: '2999999', FEE_CEILING_GWEI: '49' })).to.deep.equal([]);
    expect(problemsOf({ POST_BUDGET_GWEI_PER_HOUR: '0' }), 'no limit').to.deep.equal([]);
  });

  it('of edges say what is missing, and what does not go together', () => {
    const edge = {
      ROLES: 'edge',
      DATABASE_URL: 'postgres://127.0.0.1/none',
      NATS_URL: 'nats://127.0.0.1:4222',
      EDGE_SECRET: 'x'.repeat(32),
    };
    expect(problemsOf(edge)).to.deep.equal([]);
    expect(problemsOf({ NATS_PASSWORD: 'of init', EDGE_SECRET: 'x'.repeat(32) }), 'without NATS').to.deep.equal([]);
    const wrong: [changes: Record<string, string>, problem: RegExp][] = [
      [{ ROLES: 'edge,gateway' }, /^ROLES: edge stands alone/],
      [{ NATS_URL: '' }, /^NATS_URL: required/],
      [{ NATS_URL: 'http://127.0.0.1' }, /^NATS_URL/],
      [{ NATS_URL: 'nats://somebody:something@127.0.0.1:4222' }, /^NATS_URL: names a user/],
      [{ EDGE_SECRET: '' }, /^EDGE_SECRET: required/],
      [{ EDGE_SECRET: 'short' }, /^EDGE_SECRET: must have at least 32/],
      [{ DATABASE_URL: 'sqlite:none' }, /^DATABASE_URL: names SQLite/],
      [{ NATS_CREDENTIALS: usual['MANIFEST']!, NATS_PASSWORD: 'x' }, /^NATS_CREDENTIALS: in place/],
      [{ NATS_CREDENTIALS: join(folder, 'none') }, /^NATS_CREDENTIALS: can't read/],
      [{ NATS_CA: usual['MANIFEST']! }, /^NATS_URL: must name tls/],
      [{ NATS_URL: 'tls://127.0.0.1:4222', NATS_CERT: usual['MANIFEST']! }, /^NATS_CERT: only with NATS_KEY/],
      [{ METRICS_PORT: '8080' }, /^METRICS_PORT: must not be PORT/],
    ];
    for (const [changes, problem] of wrong) {
      const problems = problemsOf({ ...edge, ...changes });
      expect(problems, JSON.stringify(changes)).to.have.length(1);
      expect(problems[0]).to.match(problem);
    }
  });

  it('that name what is not listed are told', () => {
    const names = {
      OPERATOR_FLOORS: 'USDC=1,USDD=2',
      REFERENCE_PRICES: 'WETH-USDC=1,WETH-USDD=2',
      MIN_ORDER_VALUES: 'USDC=1,USDD=2',
    };
    const lines = unusedNames([WETH_USDC], load(names));
    expect(lines.map((line) => line.split(', ')[0])).to.deep.equal([
      'OPERATOR_FLOORS names USDD',
      'REFERENCE_PRICES names WETH-USDD',
      'MIN_ORDER_VALUES names USDD',
    ]);
  });

  it('can be held against the pace of the chain once that is known', () => {
    const clock = createBlockClock();
    for (let block = 1; block <= 15; block++) clock.observe(block, block * 2_000);
    expect(clock.intervalMs()).to.equal(null);
    clock.observe(16, 32_000);
    expect(clock.intervalMs()).to.equal(2_000);
  });
});
