/** The command line of the deployment commands. */
import { parseArgs } from 'node:util';
import type { Mode } from './context.js';
import { DeployError } from './errors.js';

/** What each command understands beyond the common options, and what it does. */
export const COMMANDS = {
  deploy: { options: ['config', 'dry-run'], does: 'put the contracts on the chain, or what is missing of them' },
  configure: {
    options: ['config', 'dry-run', 'propose'],
    does: 'bring markets, posters, executors, targets, fees and delay in line with the configuration',
  },
  upgrade: {
    options: ['only', 'source', 'call', 'dry-run', 'propose'],
    does: 'replace the implementations that the sources build differently',
  },
  rollback: { options: ['only', 'dry-run', 'propose'], does: 'go back to what a proxy ran before' },
  'transfer-ownership': {
    options: ['to', 'config', 'dry-run', 'propose'],
    does: 'offer the contracts to another owner; step one',
  },
  'accept-ownership': { options: ['dry-run', 'propose'], does: 'accept the contracts; step two' },
  'set-seq': {
    options: ['market', 'seq', 'dry-run', 'propose'],
    does: "end a market's curve and give its sequence numbers above another one back",
  },
  status: { options: [], does: 'compare the chain with the record, and show who may do what' },
  verify: {
    options: ['only', 'explorer', 'api-url'],
    does: 'check the code against the sources, and write or submit what explorers need',
  },
} as const satisfies Record<string, { options: readonly Option[]; does: string }>;

type Command = keyof typeof COMMANDS;

const OPTIONS = {
  config: { type: 'string', value: 'FILE', does: 'configuration; default <deployments>/<chainId>.config.json' },
  only: { type: 'string', value: 'NAMES', does: 'some contracts, comma-separated; default all' },
  source: { type: 'string', value: 'PROXY=CONTRACT', multiple: true, does: 'source of another name' },
  call: { type: 'string', value: 'PROXY=0x…', multiple: true, does: 'call data run right after the upgrade' },
  to: { type: 'string', value: 'ADDRESS', does: "the next owner; default the configuration's" },
  market: { type: 'string', value: 'PAIR', does: 'a market of the record' },
  seq: { type: 'string', value: 'NUMBER', does: 'the number above which posts go on; not above the live one' },
  'dry-run': { type: 'boolean', value: '', does: 'show what would be done, send nothing; needs no key' },
  propose: { type: 'string', value: 'FILE', does: "write the owner's calls as a Safe transaction-builder file" },
  explorer: { type: 'string', value: 'NAME', does: 'submit to etherscan, blockscout or sourcify, too' },
  'api-url': { type: 'string', value: 'URL', does: 'API of an explorer of your own' },
  env: {
    type: 'string',
    value: 'FILE',
    does: 'settings of `curvebook init`, for the next two; no key is read from it',
  },
  rpc: { type: 'string', value: 'URL', does: 'JSON-RPC endpoint; default DEPLOY_RPC_URL' },
  deployments: {
    type: 'string',
    value: 'FOLDER',
    does: "where deployments' files are; default MANIFEST's, or deployments",
  },
  from: { type: 'string', value: 'ADDRESS', does: 'whose view to take where no key is needed' },
} as const;

type Option = keyof typeof OPTIONS;
const COMMON: readonly Option[] = ['env', 'rpc', 'deployments', 'from'];

export interface DeployLine {
  command: Command;
  mode: Mode;
  options: {
    [K in Exclude<Option, 'dry-run' | 'source' | 'call'>]?: string;
  } & { source: string[]; call: string[] };
}

/** The parsed command line; null when it asks for help. Throws `BAD_ARGUMENT`. */
export function readDeployLine(args: readonly string[]): DeployLine | null {
  const [name, ...rest] = args;
  if (name === undefined || name === '--help' || name === '-h' || rest.includes('--help')) return null;
  if (!Object.hasOwn(COMMANDS, name)) {
    throw new DeployError('BAD_ARGUMENT', `there is no command ${name}; try --help`);
  }
  const command = name as Command;
  const allowed: readonly Option[] = [...COMMANDS[command].options, ...COMMON];
  const { 'dry-run': dryRun, source, call, ...values } = parse(rest, allowed);
  if (dryRun === true && values.propose !== undefined) {
    throw new DeployError('BAD_ARGUMENT', '--dry-run and --propose exclude each other');
  }
  const mode = dryRun === true ? 'dry-run' : values.propose === undefined ? 'send' : 'propose';
  return { command, mode, options: { ...values, source: source ?? [], call: call ?? [] } };
}

type Values = { [K in Exclude<Option, 'dry-run' | 'source' | 'call'>]?: string } & {
  'dry-run'?: boolean;
  source?: string[];
  call?: string[];
};

function parse(args: readonly string[], allowed: readonly Option[]): Values {
  const options = Object.fromEntries(
    allowed.map((name) => [name, { type: OPTIONS[name].type, multiple: 'multiple' in OPTIONS[name] }]),
  );
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new DeployError('BAD_ARGUMENT', error instanceof Error ? error.message : String(error));
  }
}

const usage = (name: Option): string => `--${name}${OPTIONS[name].value === '' ? '' : ` ${OPTIONS[name].value}`}`;

export const HELP = [
  'npm run deploy -- <command> [options]',
  '',
  ...Object.entries(COMMANDS).flatMap(([name, { options, does }]) => [
    `  ${name.padEnd(20)}${does}`,
    ...(options.length === 0 ? [] : [`  ${''.padEnd(20)}${options.map((option) => `--${option}`).join(' ')}`]),
  ]),
  '',
  ...(Object.keys(OPTIONS) as Option[]).map((name) => `  ${usage(name).padEnd(24)}${OPTIONS[name].does}`),
  '',
  "Transactions are signed with DEPLOY_PRIVATE_KEY, from the environment or from Hardhat's encrypted keystore",
  '(npx hardhat keystore set DEPLOY_PRIVATE_KEY). Explorers want EXPLORER_API_KEY, from the same places.',
].join('\n');
