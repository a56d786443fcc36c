/** What an owner has before a deployment: a chain with two tokens, a key, a configuration, and a folder for the files. */
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Signer } from 'ethers';
import { readBuild } from '../../../deploy/build.js';
import type { Build } from '../../../deploy/build.js';
import { parseConfig } from '../../../deploy/config.js';
import type { DeployConfig } from '../../../deploy/config.js';
import { createContext } from '../../../deploy/context.js';
import type { Context } from '../../../deploy/context.js';
import { DeployError } from '../../../deploy/errors.js';
import type { DeploymentRecord } from '../../../deploy/record.js';
import { MintableToken__factory } from '../../../typechain-types/factories/mocks/MintableToken__factory.js';
import type { MintableToken } from '../../../typechain-types/index.js';
import { startTestChain } from '../chain.js';
import type { TestChain } from '../chain.js';

export interface OwnerWorld {
  chain: TestChain;
  folder: string;
  base: MintableToken;
  quote: MintableToken;
  /** The configuration that `settings` of the file, with the changes given, make. */
  config(changes?: Record<string, unknown>): DeployConfig;
  /** What a command works with; the first account signs by default. */
  context(options?: { signer?: Signer; build?: Build }): Promise<Context>;
  /** Lines that commands printed since the last call. */
  printed(): string[];
  record(): DeploymentRecord;
  /** A file of the deployment, as text. */
  file(name: string): string;
  /** All files as they were when `saveFiles` was called. */
  restoreFiles(saved: ReadonlyMap<string, string>): void;
  saveFiles(): Map<string, string>;
  close(): Promise<void>;
}

/** Accounts by index: 0 deployer and owner, 1 curve poster, 2 claim poster, 3 executor, 4 maker, 5 taker, 6 stranger. */
export async function startOwnerWorld(): Promise<OwnerWorld> {
  const chain = await startTestChain();
  const folder = mkdtempSync(join(tmpdir(), 'curvebook-owner-'));
  const addresses = await Promise.all(chain.signers.slice(0, 7).map((signer) => signer.getAddress()));
  const issuer = chain.signers[9]!;
  const token = async (symbol: string, decimals: number): Promise<MintableToken> => {
    const deployed = await new MintableToken__factory(issuer).deploy(symbol, symbol, decimals);
    return deployed.waitForDeployment();
  };
  const [base, quote] = [await token('WETH', 18), await token('USDC', 6)];
  const settings = {
    chainId: 8453,
    owner: addresses[0],
    withdrawDelaySec: 600,
    tokens: [
      { symbol: 'WETH', address: await base.getAddress(), decimals: 18 },
      { symbol: 'USDC', address: await quote.getAddress(), decimals: 6 },
    ],
    markets: [{ pair: 'WETH-USDC', tickSize: '0.01', lotSize: '0.0001', maxTtlSec: 60 }],
    curvePosters: [addresses[1]],
    claimPosters: [addresses[2]],
    executors: [addresses[3]],
    takerFees: [{ taker: addresses[5], ratePpm: 250 }],
  };
  let lines: string[] = [];
  const file = (name: string): string => readFileSync(join(folder, name), 'utf8');
  return {
    chain,
    folder,
    base,
    quote,
    config: (changes = {}) => parseConfig({ ...settings, ...changes }),
    context: ({ signer = chain.signers[0]!, build = readBuild() } = {}) =>
      createContext({
        provider: chain.provider,
        signer,
        build,
        folder,
        commit: 'test',
        log: (line) => void lines.push(line),
      }),
    printed: () => {
      const seen = lines;
      lines = [];
      return seen;
    },
    record: () => JSON.parse(file('8453.json')) as DeploymentRecord,
    file,
    saveFiles: () => new Map(readdirSync(folder).map((name) => [name, file(name)])),
    restoreFiles: (saved) => {
      for (const name of readdirSync(folder)) rmSync(join(folder, name));
      for (const [name, text] of saved) writeFileSync(join(folder, name), text);
    },
    close: async () => {
      rmSync(folder, { recursive: true, force: true });
      await chain.close();
    },
  };
}

/** The code and message with which a command stops; an empty code when it does not. */
export async function refusal(command: Promise<unknown>): Promise<{ code: string; message: string }> {
  return command.then(
    () => ({ code: '', message: '' }),
    (error: unknown) => {
      if (!(error instanceof DeployError)) throw error;
      return { code: error.code, message: error.message };
    },
  );
}
