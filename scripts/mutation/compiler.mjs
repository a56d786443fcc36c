/** Compiles single contracts with one source exchanged. */
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { projectRoot } from '../console.mjs';

const solc = createRequire(import.meta.url)('solc');

/** The fast way first; what has too many variables for it goes the way of production. */
const WAYS = [{ viaIR: false, optimizer: { enabled: true, runs: 200 } }, {}];

/**
 * Works on the inputs of the last build of contracts/.
 * @returns {{ treeOf: (file: string) => any, compile: (contract: string, file: string, source: string) =>
 *   { equal: boolean, contract: { bytecode: string, deployedBytecode: string } } | undefined }}
 *   `compile` returns nothing for a source that is not valid, and `equal` when the code is that of the original
 */
export function createCompiler() {
  const input = inputOfContracts();
  /** How a contract compiles, and to what, as it is. */
  const known = new Map();

  function codeOf(contract, sources, way) {
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
      const way = WAYS.find((one) => codeOf(contract, input.sources, one) !== undefined);
      known.set(contract, { way, code: codeOf(contract, input.sources, way) });
    }
    return known.get(contract);
  }

  return {
    treeOf(file) {
      const settings = { ...input.settings, outputSelection: { [`project/${file}`]: { '': ['ast'] } } };
      return JSON.parse(solc.compile(JSON.stringify({ ...input, settings }))).sources[`project/${file}`].ast;
    },
    compile(contract, file, source) {
      const { way, code } = original(contract);
      const next = codeOf(contract, { ...input.sources, [`project/${file}`]: { content: source } }, way);
      return next && { equal: next.bytecode === code.bytecode, contract: next };
    },
  };
}

function inputOfContracts() {
  const folder = join(projectRoot, 'artifacts', 'build-info');
  const inputs = readdirSync(folder)
    .filter((name) => !name.endsWith('.output.json'))
    .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')).input)
    .filter(({ settings, sources }) => settings.viaIR && sources['project/contracts/CurveBook.sol'] !== undefined);
  if (inputs.length !== 1)
    throw new Error('run `npm run compile` on clean artifacts/ first: which build is the last is not clear');
  return inputs[0];
}
