/**
 * The `verify` command: shows that what is on the chain was built from these sources. It writes the exact compiler input and constructor
 * arguments of everything that was deployed, as explorers want them, compiles that input afresh, runs each constructor again, and compares
 * the code. Needs no explorer; `verify-online.ts` submits the same to one.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { concat, keccak256 } from 'ethers';
import { codeOf, currentRecord, type Context } from '../context.js';
import { FIXED, FIXED_NAMES, PROXY_NAMES } from '../contracts.js';
import { DeployError } from '../errors.js';
import { V4_ROUTER } from '../uniswap-v4.js';
import { writeJson, type DeploymentRecord } from '../record.js';

export const EXPLORERS = ['etherscan', 'blockscout', 'sourcify'] as const;
export type Explorer = (typeof EXPLORERS)[number];

export interface VerificationTarget {
  /** `custodian`, `custodian implementation`, `lens`, … */
  name: string;
  address: string;
  /** Name of the contract's source. */
  contract: string;
  /** As explorers want it: `<source in the compiler input>:<contract>` */
  qualifiedName: string;
  /** For instance `v0.8.37+commit.f401782d` */
  compilerVersion: string;
  /** Name of the file with the standard JSON input. */
  inputFile: string;
  /** ABI-encoded, without 0x. */
  constructorArguments: string;
  /** keccak256 of the code on the chain. */
  codeHash: string;
}

/** All that was deployed: proxies, settler, periphery and implementations; or those named in `only`. */
function verificationTargets(
  { build, chainId }: Pick<Context, 'build' | 'chainId'>,
  record: DeploymentRecord,
  only?: readonly string[],
): VerificationTarget[] {
  const describe = (name: string, address: string, contract: string, args: string, codeHash: string) => {
    const { id, compilerVersion, qualifiedName } = build.compilation(contract);
    const constructorArguments = args.slice(2);
    const inputFile = `${chainId}.verify/${id}.json`;
    return { name, address, contract, qualifiedName, compilerVersion, inputFile, constructorArguments, codeHash };
  };
  const targets = [
    ...FIXED_NAMES.map((name) => {
      const [args, codeHash] = [record.constructorArgs[name] ?? '0x', record.codeHashes[name] ?? '0x'];
      return describe(name, record.contracts[name], FIXED[name], args, codeHash);
    }),
    ...v4Router(record).map(({ address, args, codeHash }) =>
      describe(V4_ROUTER.name, address, V4_ROUTER.source, args, codeHash),
    ),
    ...PROXY_NAMES.map((name) => {
      const { address, contract, constructorArgs, codeHash } = record.implementations[name];
      return describe(`${name} implementation`, address, contract, constructorArgs, codeHash);
    }),
  ];
  const unknown = only?.find((name) => !targets.some((target) => target.name === name));
  if (unknown !== undefined) {
    const names = targets.map(({ name }) => name).join(', ');
    throw new DeployError('BAD_ARGUMENT', `nothing is called ${unknown}; there are ${names}`);
  }
  return targets.filter(({ name }) => only === undefined || only.includes(name));
}

/** Empty for a deployment without one. */
function v4Router({ contracts, constructorArgs, codeHashes }: DeploymentRecord) {
  const { uniswapV4Router: address } = contracts;
  const [args, codeHash] = [constructorArgs[V4_ROUTER.name], codeHashes[V4_ROUTER.name]];
  return address === undefined || args === undefined || codeHash === undefined ? [] : [{ address, args, codeHash }];
}

/**
 * Writes the bundle beside the deployment's record, and checks it. Throws `UNVERIFIED`, with all differences, when a contract on the chain is
 * not what the bundle compiles to; the bundle is written in that case, too.
 */
export async function verifyCommand(context: Context, only?: readonly string[]): Promise<VerificationTarget[]> {
  const { build, files, log } = context;
  const record = await currentRecord(context);
  const targets = verificationTargets(context, record, only);
  const folder = dirname(files.path);
  const inputs = new Map(targets.map(({ inputFile, contract }) => [inputFile, build.compilation(contract).input]));
  for (const [file, input] of inputs) writeJson(join(folder, file), input);
  writeJson(join(folder, `${context.chainId}.verify`, 'contracts.json'), targets);

  const problems: string[] = [];
  for (const [file, input] of inputs) {
    const wanted = targets.filter(({ inputFile }) => inputFile === file);
    log(`compiling ${file} for ${new Set(wanted.map(({ contract }) => contract)).size} contracts`);
    const bytecodes = compileInput(input, new Set(wanted.map(({ qualifiedName }) => qualifiedName)));
    for (const { name, address, contract, qualifiedName, constructorArguments, codeHash } of wanted) {
      const initCode = concat([bytecodes.get(qualifiedName) ?? '0x', `0x${constructorArguments}`]);
      const actual = keccak256(await codeOf(context, contract, initCode, address));
      if (actual === codeHash) log(`${name} ${address} is ${qualifiedName}`);
      else problems.push(`${name} ${address} has code ${codeHash}, ${qualifiedName} compiles to ${actual}`);
    }
  }
  if (problems.length !== 0) throw new DeployError('UNVERIFIED', problems.join('\n'));
  return targets;
}

interface CompilerOutput {
  errors?: { severity: string; formattedMessage: string }[];
  contracts?: Record<string, Record<string, { evm: { bytecode: { object: string } } }>>;
}

/** Init code, without constructor arguments, by qualified name. The whole input is parsed, since the optimizer's choices depend on it. */
function compileInput(input: Record<string, unknown>, wanted: ReadonlySet<string>): Map<string, string> {
  const solc = createRequire(import.meta.url)('solc') as { compile(input: string): string };
  const split = (qualifiedName: string): [string, string] => {
    const at = qualifiedName.lastIndexOf(':');
    return [qualifiedName.slice(0, at), qualifiedName.slice(at + 1)];
  };
  const outputSelection: Record<string, Record<string, string[]>> = {};
  for (const [source, contract] of [...wanted].map(split)) {
    outputSelection[source] = { ...outputSelection[source], [contract]: ['evm.bytecode.object'] };
  }
  const settings = { ...(input['settings'] as Record<string, unknown>), outputSelection };
  const output = JSON.parse(solc.compile(JSON.stringify({ ...input, settings }))) as CompilerOutput;
  const failure = output.errors?.find(({ severity }) => severity === 'error');
  if (failure !== undefined) throw new DeployError('UNVERIFIED', failure.formattedMessage);
  const codes = new Map<string, string>();
  for (const qualifiedName of wanted) {
    const [source, contract] = split(qualifiedName);
    codes.set(qualifiedName, `0x${output.contracts?.[source]?.[contract]?.evm.bytecode.object ?? ''}`);
  }
  return codes;
}
