/** Reads what `npm run compile` made of the contracts: code, immutables, storage layouts. */
import { readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Interface, dataSlice, zeroPadValue, type InterfaceAbi } from 'ethers';
import type { StorageLayout, ValidationDataCurrent } from '@openzeppelin/upgrades-core';
import { DeployError } from './errors.js';
import { upgradesCore } from './upgrade/upgrades-core.js';
import { normalizeLayout } from './upgrade/layout.js';

interface Immutable {
  name: string;
  /** Byte offsets in the runtime code at which its value is written, each time 32 bytes long. */
  offsets: number[];
}

interface BuiltContract {
  name: string;
  /** `contracts/….sol` */
  source: string;
  abi: InterfaceAbi;
  interface: Interface;
  bytecode: string;
  /** Runtime code, with zeros where immutables go. */
  runtime: string;
  immutables: Immutable[];
}

interface Compilation {
  /** Identifies the input. */
  id: string;
  /** Standard JSON, as the compiler got it. */
  input: Record<string, unknown>;
  /** For instance `v0.8.37+commit.f401782d` */
  compilerVersion: string;
  /** `<source in the input>:<contract>` */
  qualifiedName: string;
}

export interface Build {
  /** Throws `NOT_BUILT` when there is none of this name. */
  contract(name: string): BuiltContract;
  /** Names of all contracts, interfaces and libraries. */
  names(): string[];
  /** With the members of every ERC-7201 namespace; positions in the sources left out. */
  layout(name: string): StorageLayout;
  /** How the contract was compiled. */
  compilation(name: string): Compilation;
  /** Throws `UNSAFE_UPGRADE` when the contract can't be an implementation behind a UUPS proxy. */
  assertUpgradeSafe(name: string): void;
}

interface Artifact {
  contractName: string;
  sourceName: string;
  abi: InterfaceAbi;
  bytecode: string;
  deployedBytecode: string;
  immutableReferences?: Record<string, { start: number; length: number }[]>;
  buildInfoId: string;
  inputSourceName: string;
}

interface BuildInfo {
  solcLongVersion: string;
  input: Record<string, unknown>;
}

/**
 * Immutables that hold the implementation's own address: `__self` of UUPSUpgradeable, which compares it to see whether it was called through a proxy,
 * and `SELF` of the custodian.
 */
const SELF = ['__self', 'SELF'];

const ROOT = fileURLToPath(new URL('..', import.meta.url));

interface BuildPlace {
  artifacts: string;
  cache: string;
  /** Where the sources are, within the project. */
  sources: string;
}

const PROJECT: BuildPlace = { artifacts: join(ROOT, 'artifacts'), cache: join(ROOT, 'cache'), sources: 'contracts' };

/** Reads Hardhat's output, each file when it is first needed. */
export function readBuild({ artifacts, cache, sources }: BuildPlace = PROJECT): Build {
  const found = contractFiles(join(artifacts, sources));
  const files = new Map(found.map((file) => [basename(file, '.json'), file]));
  const astOf = memo((id: string) => readJson<unknown>(join(artifacts, 'build-info', `${id}.output.json`)));
  const inputOf = memo((id: string) => readJson<BuildInfo>(join(artifacts, 'build-info', `${id}.json`)));
  const validations = memo(() => readValidations(join(cache, 'validations.json')));
  const artifact = memo((name: string): Artifact => {
    const file = files.get(name);
    if (file === undefined) throw new DeployError('NOT_BUILT', `no contract ${name} is built; run npm run compile`);
    return readJson<Artifact>(file);
  });
  const validated = (name: string) => {
    const version = upgradesCore.getVersion(artifact(name).bytecode);
    try {
      upgradesCore.getContractNameAndRunValidation(validations(''), version);
    } catch {
      throw new DeployError('NOT_BUILT', `the build of ${name} was not validated; run npm run compile`);
    }
    return version;
  };
  return {
    contract: memo((name) => {
      const { contractName, sourceName, abi, bytecode, deployedBytecode, buildInfoId, ...rest } = artifact(name);
      const { immutableReferences = {} } = rest;
      const ids = Object.keys(immutableReferences);
      const names = ids.length === 0 ? new Map<string, string>() : variableNames(astOf(buildInfoId), new Set(ids));
      const immutables = ids.map((id) => ({
        name: names.get(id) ?? `#${id}`,
        offsets: (immutableReferences[id] ?? []).map(({ start }) => start),
      }));
      return {
        name: contractName,
        source: sourceName,
        abi,
        interface: new Interface(abi),
        bytecode,
        runtime: deployedBytecode,
        immutables,
      };
    }),
    compilation: (name) => {
      const { buildInfoId, inputSourceName } = artifact(name);
      const { solcLongVersion, input } = inputOf(buildInfoId);
      const qualifiedName = `${inputSourceName}:${name}`;
      return { id: buildInfoId, input, compilerVersion: `v${solcLongVersion}`, qualifiedName };
    },
    names: () => [...files.keys()].sort(),
    layout: (name) => normalizeLayout(upgradesCore.getStorageLayout(validations(''), validated(name))),
    assertUpgradeSafe: (name) => {
      const version = validated(name);
      try {
        upgradesCore.assertUpgradeSafe(validations(''), version, { kind: 'uups' });
      } catch (error) {
        throw new DeployError('UNSAFE_UPGRADE', error instanceof Error ? error.message : String(error));
      }
    },
  };
}

/** Runtime code as it is at `address`: copies of a contract differ in their own address only. */
export function codeAt(address: string, code: string, immutables: readonly Immutable[]): string {
  const word = zeroPadValue(address, 32).slice(2).toLowerCase();
  let text = code.slice(2);
  for (const { offsets } of immutables.filter(({ name }) => SELF.includes(name))) {
    for (const offset of offsets) text = `${text.slice(0, 2 * offset)}${word}${text.slice(2 * (offset + 32))}`;
  }
  return `0x${text}`;
}

/** The values of the immutables in runtime code, as 32 bytes each, without the contract's own address. */
export function immutableValues(code: string, immutables: readonly Immutable[]): Record<string, string> {
  const values: Record<string, string> = {};
  for (const { name, offsets } of immutables) {
    const offset = offsets[0];
    if (!SELF.includes(name) && offset !== undefined) values[name] = dataSlice(code, offset, offset + 32);
  }
  return values;
}

function contractFiles(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.json') && entry.parentPath.endsWith('.sol'))
      .map((entry) => join(entry.parentPath, entry.name));
  } catch {
    throw new DeployError('NOT_BUILT', `nothing is built in ${folder}; run npm run compile`);
  }
}

function readValidations(file: string): ValidationDataCurrent {
  const data = readJson<Parameters<typeof upgradesCore.isCurrentValidationData>[0]>(file);
  if (!upgradesCore.isCurrentValidationData(data)) {
    throw new DeployError('NOT_BUILT', `${file} is out of date; run npm run compile`);
  }
  return data;
}

function readJson<T>(file: string): T {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T;
  } catch {
    throw new DeployError('NOT_BUILT', `can't read ${file}; run npm run compile`);
  }
}

/** Names of the variables whose AST ids are wanted. */
function variableNames(ast: unknown, ids: ReadonlySet<string>): Map<string, string> {
  const names = new Map<string, string>();
  const visit = (node: unknown): void => {
    if (node === null || typeof node !== 'object') return;
    const { nodeType, id, name } = node as { nodeType?: string; id?: number; name?: string };
    if (nodeType === 'VariableDeclaration' && ids.has(String(id)) && name !== undefined) names.set(String(id), name);
    for (const child of Object.values(node)) visit(child);
  };
  visit(ast);
  return names;
}

function memo<T>(compute: (key: string) => T): (key?: string) => T {
  const known = new Map<string, T>();
  return (key = '') => {
    const cached = known.get(key);
    if (cached !== undefined) return cached;
    const value = compute(key);
    known.set(key, value);
    return value;
  };
}
