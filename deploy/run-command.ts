/** Runs the deployment commands. This module is loaded after the command line was read, since help does not need it. */
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ZeroAddress, getAddress, isAddress, type Signer } from 'ethers';
import { toSafeInt } from '../core/amounts.js';
import { proposalOf, type Action } from './actions.js';
import { readBuild } from './build.js';
import { acceptCommand, configureCommand, setSeqCommand, statusCommand, transferCommand } from './commands.js';
import { readConfig, type DeployConfig } from './config.js';
import { createContext, currentRecord, type Context } from './context.js';
import { PROXY_NAMES, ownershipOf, type ProxyName } from './contracts.js';
import { KEY_VARIABLE, RPC_VARIABLE, readEnvironment, type DeployEnvironment } from './environment.js';
import { DeployError } from './errors.js';
import { deployCommand, deployDryRun } from './install.js';
import { accountOfKey, explorerKey, keySigner, onlooker } from './keys.js';
import { lockFiles, lookedAt } from './owner/lock.js';
import { waitingOffers } from './owner/offers.js';
import type { DeployLine } from './options.js';
import { reasonOf } from './reasons.js';
import { deploymentFiles, writeJson, type DeploymentRecord } from './record.js';
import { rollbackCommand } from './upgrade/rollback.js';
import { connect } from './transactions.js';
import { addressesOf, upgradeCommand } from './upgrade/upgrade.js';
import { EXPLORERS, verifyCommand, type Explorer } from './checks/verify.js';

interface Surroundings {
  print: (line: string) => void;
  env: Readonly<Record<string, string | undefined>> | undefined;
}

const TERMINAL: Surroundings = { print: (line) => void process.stdout.write(`${line}\n`), env: undefined };

/** Runs one command. Throws DeployError. */
export async function runCommand(line: DeployLine, { print, env }: Surroundings = TERMINAL): Promise<void> {
  const environment = readEnvironment(line.options.env, env);
  const rpcUrl = line.options.rpc ?? environment.rpcUrl;
  if (rpcUrl === null) throw new DeployError('BAD_ARGUMENT', `name the chain with --rpc, ${RPC_VARIABLE} or --env`);
  const provider = connect(rpcUrl);
  try {
    const chainId = await provider.getNetwork().then(
      (network) => network.chainId,
      (error: Error) => {
        throw new DeployError('BAD_ARGUMENT', `no chain answers at the endpoint: ${reasonOf(error)}`);
      },
    );
    const folder = line.options.deployments ?? environment.deployments ?? 'deployments';
    const files = deploymentFiles(folder, toSafeInt(chainId));
    const recorded = files.read();
    const signer = needsKey(line)
      ? await keySigner(provider, environment.privateKey)
      : onlooker(provider, viewpoint(line, environment, recorded));
    await assertFrom(line, signer);
    const options = { provider, signer, build: readBuild(), folder, commit: sourceCommit(), log: print };
    const context = await createContext(options);
    if (!writes(line)) return await runOn({ ...context, files: lookedAt(files) }, line, rpcUrl);
    // Without a record only `deploy` has anything to write.
    const unlock = line.command === 'deploy' || recorded !== null ? lockFiles(files) : null;
    try {
      await runOn(context, line, rpcUrl);
    } finally {
      unlock?.();
    }
  } finally {
    provider.destroy();
  }
}

/** Whether a command changes the files of the deployment by more than what it learns from the chain. */
function writes({ command, mode }: Pick<DeployLine, 'command' | 'mode'>): boolean {
  return command !== 'status' && command !== 'verify' && mode !== 'dry-run';
}

/**
 * The account from whose view a command runs that needs no key. Addresses and code hashes depend on the account that deploys, so a dry run of a
 * deployment must know it. Throws `BAD_ARGUMENT` if it is not named.
 */
function viewpoint(
  { command, options }: DeployLine,
  { privateKey }: DeployEnvironment,
  recorded: DeploymentRecord | null,
): string {
  if (options.from !== undefined) return addressOf(options.from, '--from');
  if (command !== 'deploy' && command !== 'upgrade') return recorded?.deployer ?? ZeroAddress;
  if (privateKey !== null) return accountOfKey(privateKey);
  throw new DeployError(
    'BAD_ARGUMENT',
    `name the account that will deploy with --from, or its key with ${KEY_VARIABLE}: addresses and code hashes follow from it`,
  );
}

/** Throws `BAD_ARGUMENT` when a key is at hand and --from names another account than the key's. */
async function assertFrom(line: DeployLine, signer: Signer): Promise<void> {
  const { from } = line.options;
  if (from === undefined || !needsKey(line)) return;
  const account = await signer.getAddress();
  if (addressOf(from, '--from') !== account) {
    throw new DeployError('BAD_ARGUMENT', `--from ${from} is not the account of the key, which is ${account}`);
  }
}

/** Whether a command sends transactions, and so needs a key. The proposal of an upgrade does: it deploys the implementation that it proposes. */
function needsKey({ command, mode }: Pick<DeployLine, 'command' | 'mode'>): boolean {
  return writes({ command, mode }) && (mode === 'send' || command === 'upgrade');
}

async function runOn(context: Context, line: DeployLine, rpcUrl: string): Promise<void> {
  const { command, mode, options } = line;
  switch (command) {
    case 'deploy':
      if (mode === 'propose') throw new DeployError('BAD_ARGUMENT', 'anybody may deploy: there is nothing to propose');
      if (mode === 'dry-run') await deployDryRun(context, configOf(context, line));
      else await deployCommand(context, configOf(context, line));
      return;
    case 'configure':
      return propose(context, line, await configureCommand(context, configOf(context, line), mode));
    case 'upgrade': {
      const calls = Object.fromEntries(options.call.map(callOf));
      const sources = Object.fromEntries(options.source.map((text) => pairOf(text, '--source')));
      return propose(context, line, await upgradeCommand(context, { mode, only: proxiesOf(line), calls, sources }));
    }
    case 'rollback':
      if (options.only === undefined) throw new DeployError('BAD_ARGUMENT', 'say which with --only');
      return propose(context, line, await rollbackCommand(context, proxiesOf(line), mode));
    case 'transfer-ownership': {
      const to = options.to ?? configOf(context, line).owner;
      return propose(context, line, await transferCommand(context, addressOf(to, '--to'), mode));
    }
    case 'accept-ownership': {
      const next = await acceptingAccount(context, line);
      return propose(context, line, await acceptCommand(context, next, mode), next);
    }
    case 'set-seq': {
      const { market: pair = '', seq = '' } = options;
      if (!/^\d{1,10}$/.test(seq))
        throw new DeployError('BAD_ARGUMENT', `--seq: ${seq || '(none given)'} is no number`);
      return propose(context, line, await setSeqCommand(context, { pair, seq: BigInt(seq) }, mode));
    }
    case 'status':
      await statusCommand(context);
      return;
    case 'verify':
      return verify(context, line, rpcUrl);
  }
}

async function verify(context: Context, { options }: DeployLine, rpcUrl: string): Promise<void> {
  const only = options.only?.split(',');
  const targets = await verifyCommand(context, only);
  if (options.explorer === undefined) return;
  const explorer = EXPLORERS.find((one) => one === options.explorer);
  if (explorer === undefined) throw new DeployError('BAD_ARGUMENT', `--explorer is one of ${EXPLORERS.join(', ')}`);
  const apiKey = await keyOf(explorer);
  const { chainId, build, log } = context;
  const { submitSources } = await import('./checks/verify-online.js');
  await submitSources(build, targets, { rpcUrl, chainId, explorer, apiUrl: options['api-url'], apiKey, log });
}

async function keyOf(explorer: Explorer): Promise<string> {
  return explorer === 'etherscan' ? explorerKey() : '';
}

/** For --propose: writes the calls into a file for the owner's multisig instead of sending them. */
async function propose(context: Context, line: DeployLine, actions: readonly Action[], sender?: string): Promise<void> {
  const { mode, command, options } = line;
  const first = actions[0];
  if (mode !== 'propose' || options.propose === undefined || first === undefined) return;
  const owner = sender ?? (await ownershipOf(context.provider, first.to)).owner;
  const { chainId } = context;
  const proposal = proposalOf(`Curvebook: ${command}`, actions, { chainId, owner, createdAtMs: Date.now() });
  writeJson(options.propose, proposal);
  context.log(`${actions.length} calls for ${owner} are in ${options.propose}`);
}

/** The account that is to accept: that of the key, else the one that was named. */
async function acceptingAccount(context: Context, { mode, options }: DeployLine): Promise<string> {
  if (mode === 'send') return context.signer.getAddress();
  if (options.from !== undefined) return addressOf(options.from, '--from');
  // After an acceptance that was cut off, some contracts are not offered any more.
  const [waiting] = await waitingOffers(context.provider, addressesOf(await currentRecord(context)));
  if (waiting === undefined) throw new DeployError('NOT_OWNER', 'the ownership was offered to nobody');
  return waiting.pendingOwner;
}

/** Throws `WRONG_CHAIN` before anything of another chain's configuration is used. */
function configOf({ chainId, files }: Context, { options }: DeployLine): DeployConfig {
  const path = options.config ?? join(dirname(files.path), `${chainId}.config.json`);
  const config = readConfig(path);
  if (config.chainId === chainId) return config;
  throw new DeployError('WRONG_CHAIN', `${path} is for chain ${config.chainId}, this is ${chainId}`);
}

function proxiesOf({ options }: DeployLine): ProxyName[] {
  if (options.only === undefined) return PROXY_NAMES;
  return options.only.split(',').map((text) => proxyName(text, '--only'));
}

function proxyName(text: string, option: string): ProxyName {
  const name = PROXY_NAMES.find((one) => one === text);
  if (name === undefined) {
    throw new DeployError('BAD_ARGUMENT', `${option}: ${text} is none of ${PROXY_NAMES.join(', ')}`);
  }
  return name;
}

/** `<proxy>=<value>` */
function pairOf(text: string, option: string): [ProxyName, string] {
  const at = text.indexOf('=');
  if (at < 1) throw new DeployError('BAD_ARGUMENT', `${option}: ${text} is not <proxy>=<value>`);
  return [proxyName(text.slice(0, at), option), text.slice(at + 1)];
}

/** `<proxy>=<call data>` */
function callOf(text: string): [ProxyName, string] {
  const [name, data] = pairOf(text, '--call');
  if (!/^0x([0-9a-f]{2})*$/i.test(data)) throw new DeployError('BAD_ARGUMENT', `--call: ${data} is no call data`);
  return [name, data];
}

function addressOf(text: string, option: string): string {
  if (!isAddress(text) || getAddress(text) === ZeroAddress) {
    throw new DeployError('BAD_ARGUMENT', `${option}: ${text} is no address`);
  }
  return getAddress(text);
}

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Git commit of the checkout, whatever the working directory is; marked if the contracts have uncommitted changes. */
function sourceCommit(): string {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' }).trim();
  try {
    const changed = git('status', '--porcelain', '--', 'contracts', 'hardhat.config.ts', 'package-lock.json') !== '';
    return `${git('rev-parse', 'HEAD')}${changed ? '-dirty' : ''}`;
  } catch {
    return 'unknown';
  }
}
