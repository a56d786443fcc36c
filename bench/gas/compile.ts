/** Compiles the benchmark's own contracts with the locked compiler and the optimizer settings of the contracts that they are compared with. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { InterfaceAbi } from 'ethers';

export interface Compiled {
  abi: InterfaceAbi;
  bytecode: string;
}

interface CompilerOutput {
  errors?: { severity: string; formattedMessage: string }[];
  contracts: Record<string, Record<string, { abi: InterfaceAbi; evm: { bytecode: { object: string } } }>>;
}

const NAMES = ['Floor', 'GasMeter', 'UnlockRouter'] as const;
export type BenchContract = (typeof NAMES)[number];

/** All contracts of bench/gas/contracts by name. Throws with the compiler's words when one does not compile. */
export function compileBenchContracts(): Record<BenchContract, Compiled> {
  const solc = createRequire(import.meta.url)('solc') as { compile(input: string): string };
  const source = (name: string) => readFileSync(new URL(`./contracts/${name}.sol`, import.meta.url), 'utf8');
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries(NAMES.map((name) => [`${name}.sol`, { content: source(name) }])),
    settings: {
      viaIR: true,
      evmVersion: 'prague',
      optimizer: { enabled: true, runs: 1_000_000 },
      metadata: { bytecodeHash: 'none' },
      outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
    },
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input))) as CompilerOutput;
  const failure = output.errors?.find((error) => error.severity === 'error');
  if (failure !== undefined) throw new Error(failure.formattedMessage);
  const compiled = NAMES.map((name) => {
    const contract = output.contracts[`${name}.sol`]?.[name];
    if (contract === undefined) throw new Error(`the compiler returned no ${name}`);
    return [name, { abi: contract.abi, bytecode: `0x${contract.evm.bytecode.object}` }] as const;
  });
  return Object.fromEntries(compiled) as Record<BenchContract, Compiled>;
}
