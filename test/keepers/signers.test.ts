/** One signer per keeper: what the configuration says when two of them would share a key. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadConfig, type Config } from '../../cli/config.js';
import { ConfigError } from '../../cli/errors.js';

const address = (digit: string): string => `0x${digit.repeat(40)}`;
const key = (digit: string): string => `0x${digit.repeat(64)}`;
const KEYS = ['POSTER_PRIVATE_KEY', 'SETTLER_PRIVATE_KEY', 'EXECUTOR_PRIVATE_KEY'] as const;

describe('signers of keepers', () => {
  let folder: string;
  let manifest: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'curvebook-signers-'));
    manifest = join(folder, 'manifest.json');
    const names = ['custodian', 'curveBook', 'entrypoint', 'permit2', 'orderSettler'];
    writeFileSync(
      manifest,
      JSON.stringify({
        chainId: 8453,
        deploymentId: '0123456789abcdef',
        rpcUrl: 'http://127.0.0.1:1',
        deploymentBlock: 1,
        contracts: Object.fromEntries(names.map((name, i) => [name, address(`${i + 1}`)])),
      }),
    );
  });

  after(() => rmSync(folder, { recursive: true }));

  const load = (keys: Partial<Record<(typeof KEYS)[number], string>>): Config =>
    loadConfig({ MANIFEST: manifest, OPERATOR_ADDRESS: address('9'), ...keys }, {});

  function problemsOf(keys: Partial<Record<(typeof KEYS)[number], string>>): readonly string[] {
    try {
      load(keys);
    } catch (error) {
      if (error instanceof ConfigError) return error.problems;
      throw error;
    }
    return [];
  }

  it('are taken when each has its own', () => {
    const config = load({
      POSTER_PRIVATE_KEY: key('a'),
      SETTLER_PRIVATE_KEY: key('b'),
      EXECUTOR_PRIVATE_KEY: key('c'),
    });
    expect(config.keys).to.deep.equal({ poster: key('a'), settler: key('b'), executor: key('c') });
  });

  it('are refused when any two are the same, however they are written', () => {
    for (const [one, other] of [
      [0, 1],
      [0, 2],
      [1, 2],
    ] as const) {
      const own = { POSTER_PRIVATE_KEY: key('1'), SETTLER_PRIVATE_KEY: key('2'), EXECUTOR_PRIVATE_KEY: key('3') };
      const [problem, ...others] = problemsOf({ ...own, [KEYS[one]]: key('a'), [KEYS[other]]: key('A') });
      expect(others).to.deep.equal([]);
      expect(problem).to.match(new RegExp(`^${KEYS[other]}: must not be the key of the`));
    }
  });

  it('are required for the roles that send', () => {
    const problems = problemsOf({});
    for (const name of KEYS)
      expect(
        problems.some((problem) => problem.startsWith(name)),
        name,
      ).to.equal(true);
  });
});
