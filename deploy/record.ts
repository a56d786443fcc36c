/**
 * The files of a deployment, to be committed: `<chainId>.json` is the manifest that the server reads, with what else is known of the
 * deployment; `<chainId>.layouts.json` the storage layouts of its implementations, by address, which the next upgrade is judged by;
 * `<chainId>.pending.json` what an interrupted deployment needs to go on.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { StorageLayout } from '@openzeppelin/upgrades-core';
import { z } from 'zod';
import { venueContracts, type VenuePlace } from '../liquidity/venues.js';
import { DeployError } from './errors.js';

const implementationSchema = z.strictObject({
  /** Name of its source. */
  contract: z.string(),
  address: z.string(),
  /** keccak256 of its runtime code. */
  codeHash: z.string(),
  /** Block after which it was deployed. */
  block: z.number().int(),
  commit: z.string(),
  /** ABI-encoded. */
  constructorArgs: z.string(),
  /** As 32 bytes each, without its own address. */
  immutables: z.record(z.string(), z.string()),
});

/** With the call data that the owner was asked to run right after the upgrade. An older record does not say it. */
const proposedSchema = implementationSchema.extend({ call: z.string().optional() });

const recordSchema = z.strictObject({
  chainId: z.number().int().positive(),
  deploymentId: z.string(),
  contracts: z.strictObject({
    custodian: z.string(),
    curveBook: z.string(),
    entrypoint: z.string(),
    orderSettler: z.string(),
    lens: z.string(),
    adapter: z.string(),
    permit2: z.string(),
    /** Address of the chain's wrapped native token, as configured last. */
    wrappedNative: z.string().optional(),
    ...(Object.fromEntries(venueContracts().map(({ place }) => [place, z.string().optional()])) as Record<
      VenuePlace,
      z.ZodOptional<z.ZodString>
    >),
  }),
  deploymentBlock: z.number().int(),
  deploymentBlockHash: z.string(),
  deployer: z.string(),
  /** Git commit of the sources that the first deployment was built from. */
  commit: z.string(),
  tokens: z.array(z.strictObject({ symbol: z.string(), address: z.string(), decimals: z.number().int() })),
  markets: z.array(z.strictObject({ pair: z.string(), tickSize: z.string(), lotSize: z.string() })),
  /** What the swap API lists, as configured last: the tokens above, with their names. */
  tokenList: z
    .strictObject({
      name: z.string(),
      tokens: z.array(
        z.strictObject({
          chainId: z.number().int(),
          address: z.string(),
          symbol: z.string(),
          name: z.string(),
          decimals: z.number().int(),
          logoURI: z.string(),
        }),
      ),
    })
    .optional(),
  /** Who had which right when `configure` last looked: an endpoint that has no event of one of them does not have all events. */
  rights: z
    .strictObject({
      curvePosters: z.array(z.string()),
      claimPosters: z.array(z.string()),
      executors: z.array(z.string()),
      targets: z.array(z.string()),
      takers: z.array(z.string()),
    })
    .optional(),
  /** What the proxies run. */
  implementations: z.strictObject({
    custodian: implementationSchema,
    curveBook: implementationSchema,
    entrypoint: implementationSchema,
  }),
  /** Implementations that they ran before, oldest first. */
  previous: z
    .partialRecord(z.enum(['custodian', 'curveBook', 'entrypoint']), z.array(implementationSchema))
    .default({}),
  /** Hashes of the code that never changes: the proxies, the settler, the periphery. */
  codeHashes: z.record(z.string(), z.string()),
  /** Constructor arguments of the same contracts, ABI-encoded. */
  constructorArgs: z.record(z.string(), z.string()),
  /** Deployed, and proposed to the owner, who may still upgrade to any of them; oldest first. A record may hold a single one instead. */
  proposed: z
    .partialRecord(
      z.enum(['custodian', 'curveBook', 'entrypoint']),
      z.union([z.array(proposedSchema), proposedSchema.transform((one) => [one])]),
    )
    .default({}),
});

export type ImplementationRecord = z.output<typeof implementationSchema>;
export type ProposedRecord = z.output<typeof proposedSchema>;
export type DeploymentRecord = z.output<typeof recordSchema>;

/** Notes that the owner was asked to upgrade to `implementation` and to run `call` then; what it was asked before stays. */
export function addProposal(
  record: DeploymentRecord,
  name: keyof DeploymentRecord['implementations'],
  implementation: ImplementationRecord,
  call: string,
): void {
  const { contract, address, codeHash, block, commit, constructorArgs, immutables } = implementation;
  // One implementation may wait more than once, with different calls. What was to be at its address with other code is gone.
  const others = (record.proposed[name] ?? []).filter(
    (one) => one.address !== address || (one.codeHash === codeHash && (one.call ?? '0x') !== call),
  );
  const proposed = { contract, address, codeHash, block, commit, constructorArgs, immutables, call };
  record.proposed[name] = [...others, proposed];
}

const pendingSchema = z.strictObject({
  deployer: z.string(),
  firstNonce: z.number().int(),
  firstBlock: z.number().int(),
  permit2: z.string(),
  withdrawDelaySec: z.number().int(),
  commit: z.string(),
  /** keccak256 of what each transaction deploys. */
  initCodeHashes: z.array(z.string()),
});

export type PendingDeployment = z.output<typeof pendingSchema>;
type Layouts = Record<string, StorageLayout>;

export interface DeploymentFiles {
  readonly path: string;
  readonly pendingPath: string;
  /** See lock.ts. */
  readonly lockPath: string;
  /** Null when nothing was deployed. */
  read(): DeploymentRecord | null;
  write(record: DeploymentRecord): void;
  readPending(): PendingDeployment | null;
  /** Null removes it. */
  writePending(pending: PendingDeployment | null): void;
  readLayouts(): Layouts;
  writeLayouts(layouts: Layouts): void;
}

/** The files of the deployment on one chain, in `folder`. */
export function deploymentFiles(folder: string, chainId: number): DeploymentFiles {
  const path = join(folder, `${chainId}.json`);
  const pendingPath = join(folder, `${chainId}.pending.json`);
  const layoutsPath = join(folder, `${chainId}.layouts.json`);
  return {
    path,
    pendingPath,
    lockPath: join(folder, `${chainId}.lock`),
    read: () => readAs(path, recordSchema),
    write: (record) => writeJson(path, recordSchema.parse(record)),
    readPending: () => readAs(pendingPath, pendingSchema),
    writePending: (pending) => {
      if (pending === null) rmSync(pendingPath, { force: true });
      else writeJson(pendingPath, pending);
    },
    readLayouts: () => readAs(layoutsPath, z.record(z.string(), z.custom<StorageLayout>())) ?? {},
    writeLayouts: (layouts) => writeJson(layoutsPath, layouts),
  };
}

function readAs<T>(path: string, schema: z.ZodType<T>): T | null {
  if (!existsSync(path)) return null;
  try {
    return schema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    throw new DeployError(
      'BAD_CONFIG',
      `${path} is damaged: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

/** Writes the whole file or nothing, whoever else writes it. */
export function writeJson(path: string, value: unknown): void {
  mkdirSync(dirname(path), { recursive: true });
  const partial = `${path}.${process.pid}-${randomBytes(4).toString('hex')}.partial`;
  try {
    writeFileSync(partial, `${JSON.stringify(value, null, 2)}\n`);
    renameSync(partial, path);
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}
