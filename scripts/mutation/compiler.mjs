/** Compiles single contracts with the text of one source replaced. */
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { projectRoot } from '../console.mjs';

const solc = createRequire(import.meta.url)('solc');

/** Compiler settings to try: the fast ones first; a contract with too many variables for those is compiled with the settings of production. */
const WAYS = [{ viaIR: false, optimizer: { enabled: true, runs: 200 } }, {}];

/**
 * Works on the inputs of the builds that the artifacts of contracts/ are from.
 * @returns {{ treeOf: (file: string) => any, compile: (contract: string, file: string, source: string) =>
 *   { equal: boolean, contract: { bytecode: string, deployedBytecode: string } } | undefined }}
 *   `compile` returns nothing for a source that is not valid, and `equal` when the code is that of the original
 */
export function createCompiler() {
  /** For each unchanged contract: the settings that compile it, and its code. */
  const known = new Map();

  function codeOf(contract, changes, way) {
    const input = inputOf(contract);
    const sources = { ...input.sources, ...changes };
    const name = contract.replace(/.*\/(.*)\.sol/, '$1');
    const selected = { [`project/${contract}`]: { [name]: ['evm.bytecode.object', 'evm.deployedBytecode.object'] } };
    const output = JSON.parse(
      solc.compile(
        JSON.stringify({ ...input, sources, settings: { ...input.settings, ...way, outputSelection: selected } }),
      ),
    );
    if ((output.errors ?? []).some(({ severity }) => severity === 'error')) return undefined;
    const { evm } = output.contracts[`project/${contract}`][name];
    return { bytecode: `0x${evm.bytecode.object}`, deployedBytecode: `0x${evm.deployedBytecode.object}` };
  }

  function original(contract) {
    if (!known.has(contract)) {
      const way = WAYS.find((one) => codeOf(contract, {}, one) !== undefined);
      known.set(contract, { way, code: codeOf(contract, {}, way) });
    }
    return known.get(contract);
  }

  return {
    treeOf(file) {
      const input = inputOf(file);
      const settings = { ...input.settings, outputSelection: { [`project/${file}`]: { '': ['ast'] } } };
      return JSON.parse(solc.compile(JSON.stringify({ ...input, settings }))).sources[`project/${file}`].ast;
    },
    compile(contract, file, source) {
      const { way, code } = original(contract);
      const next = codeOf(contract, { [`project/${file}`]: { content: source } }, way);
      return next && { equal: next.bytecode === code.bytecode, contract: next };
    },
  };
}

/** The input of the build that compiled a source, by way of one of its artifacts. */
function inputOf(file) {
  const artifacts = join(projectRoot, 'artifacts');
  const [name] = readdirSync(join(artifacts, file)).filter((one) => one.endsWith('.json'));
  const { buildInfoId } = JSON.parse(readFileSync(join(artifacts, file, name), 'utf8'));
  return JSON.parse(readFileSync(join(artifacts, 'build-info', `${buildInfoId}.json`), 'utf8')).input;
}
