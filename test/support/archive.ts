/** Keepers with an archive on a chain in memory, for drills of losing the database. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MaxUint256, Interface } from 'ethers';
import pino from 'pino';
import { openArchive, type Archive } from '../../keepers/archive/archive.js';
import { carryOutImport, planImport, type ImportDeps, type ImportReport } from '../../keepers/archive/import.js';
import { createFolderStore, type ArchiveStore } from '../../keepers/archive/store.js';
import { createRpcPool, type RpcPool } from '../../keepers/chain/pool.js';
import type { Rpc } from '../../keepers/chain/rpc.js';
import { verifyLedger, type VerifyReport } from '../../keepers/verify/verify.js';
import { readBalances } from '../../ledger/chain/balances.js';
import type { Address, Hex } from '../../core/types.js';
import type { Db } from '../../ledger/types.js';
import { Custodian__factory, Entrypoint__factory } from '../../typechain-types/index.js';
import { startKeepers, type KeeperOptions, type KeeperStack } from './keeper-stack.js';
import { doubleChain, type HistoryChain } from './worlds/ledger-world.js';

const CUSTODIAN = new Interface(Custodian__factory.abi);
const ENTRYPOINT = new Interface(Entrypoint__factory.abi);
const WETH: Address = `0x${'1'.repeat(40)}`;
const USDC: Address = `0x${'2'.repeat(40)}`;
const ETHER = 10n ** 18n;

/** A chain, an archive in a folder, and whoever trades. */
export interface Site {
  chain: HistoryChain;
  dir: string;
  store: ArchiveStore;
  openArchive(privateKey?: Hex): Promise<Archive>;
  /** Keepers over a database, with the archive of this site. */
  start(db: Db, options?: KeeperOptions & { archive?: Archive | null }): Promise<KeeperStack>;
  fund(): Promise<void>;
  /** A taker sells or buys base units. */
  swap(isBuy: boolean, baseUnits: bigint): Promise<void>;
  mine(blocks?: number): Promise<void>;
  withdraw(role: string, wethUnits: bigint): Promise<void>;
  /** A point that `takeBack` returns to, from where the chain grows otherwise. */
  mark(): Promise<string>;
  takeBack(mark: string): Promise<void>;
  headBlock(): Promise<number>;
  importDeps(db: Db): ImportDeps;
  /** What `curvebook archive import` does. */
  restore(db: Db, change?: Partial<ImportDeps>): Promise<ImportReport>;
  /** What `curvebook verify --rpc` does. */
  verify(db: Db): Promise<VerifyReport>;
  close(): void;
}

/** These endpoints as one, the first one first. */
export function poolOf(endpoints: readonly Rpc[]): RpcPool {
  return createRpcPool(
    endpoints.map((_, i) => `${i}`),
    { nowMs: () => Date.now(), logger: pino({ level: 'silent' }), connect: (url) => endpoints[Number(url)]! },
  );
}

export function createSite(change: Parameters<typeof doubleChain>[0] = {}): Site {
  const chain = doubleChain(change);
  const { rpc, manifest } = chain;
  const dir = mkdtempSync(join(tmpdir(), 'curvebook-archive-'));
  // Small folders, so that every drill goes through several.
  const store = createFolderStore(dir, 4);
  const contracts = manifest.contracts as Record<string, Address>;
  const custodian = contracts['custodian']!;
  const entrypoint = contracts['entrypoint']!;
  const curveBook = contracts['curveBook']!;
  const posterKey = chain.wallet('poster').privateKey as Hex;
  const settlerKey = chain.wallet('settler').privateKey as Hex;
  const send = (role: string, to: Address, data: string) =>
    rpc.call('eth_sendTransaction', [{ from: chain.address(role), to, data }]);
  const open = (privateKey = posterKey) =>
    openArchive({ store, deploymentId: manifest.deploymentId, privateKey, nowMs: () => Date.now() });
  let elapsedMs = 0;
  const importDeps = (db: Db): ImportDeps => ({
    db,
    store,
    rpc: poolOf([rpc]),
    deploymentId: manifest.deploymentId,
    deploymentBlock: manifest.deploymentBlock,
    contracts: { curveBook, entrypoint, custodian },
    operator: chain.address('owner'),
    signers: new Set(),
    nowMs: () => Date.now(),
  });
  return {
    chain,
    dir,
    store,
    openArchive: open,
    async start(db, { archive, ...options } = {}) {
      const used = archive === undefined ? await open() : archive;
      return startKeepers(db, chain, {
        connect: () => rpc,
        // A nonce count that the database does not explain is accepted from a single endpoint only after it has not changed for a while.
        monotonicMs: () => (elapsedMs += 31_000),
        ...options,
        poster: { archive: used === null ? null : { archive: used, required: true }, ...options.poster },
        settler: {
          archive: used === null ? null : { archive: await open(settlerKey), required: true },
          ...options.settler,
        },
      });
    },
    async fund() {
      for (const role of ['maker1', 'maker2']) {
        await send(role, custodian, CUSTODIAN.encodeFunctionData('deposit', [WETH, 100n * ETHER]));
        await send(role, custodian, CUSTODIAN.encodeFunctionData('deposit', [USDC, 250_000n * 10n ** 6n]));
      }
    },
    async swap(isBuy, baseUnits) {
      const to = chain.address('taker2');
      const data = isBuy
        ? ENTRYPOINT.encodeFunctionData('swapExactOutput', [USDC, WETH, baseUnits, MaxUint256, to, MaxUint256])
        : ENTRYPOINT.encodeFunctionData('swap', [WETH, USDC, baseUnits, 0n, to, MaxUint256]);
      await send('taker2', entrypoint, data);
    },
    async mine(blocks = 1) {
      for (let i = 0; i < blocks; i += 1) await rpc.call('evm_mine');
    },
    async withdraw(role, wethUnits) {
      // As many requests as pay for a settlement if there is a claim already.
      for (const units of [wethUnits - 2n, 1n, 1n])
        await send(role, custodian, CUSTODIAN.encodeFunctionData('requestWithdraw', [WETH, units]));
    },
    mark: async () => String(await rpc.call('evm_snapshot')),
    takeBack: async (mark) => void (await rpc.call('evm_revert', [mark])),
    headBlock: async () => Number.parseInt(String(await rpc.call('eth_blockNumber')), 16),
    importDeps,
    async restore(db, change) {
      const deps = { ...importDeps(db), ...change };
      return carryOutImport(deps, await planImport(deps));
    },
    verify: (db) =>
      verifyLedger({
        db,
        deploymentId: manifest.deploymentId,
        deploymentBlock: manifest.deploymentBlock,
        operator: chain.address('owner'),
        contracts: { custodian, entrypoint, curveBook, orderSettler: contracts['orderSettler']! },
        rpc: poolOf([rpc]),
        onProgress: () => undefined,
      }),
    close: () => rmSync(dir, { recursive: true, force: true }),
  };
}

/** Balances and reservations of all accounts, in a form that is equal on both databases. */
export async function balancesOf(db: Db): Promise<Record<string, string>> {
  const rows = await readBalances(db.knex);
  return Object.fromEntries(
    rows
      .filter((row) => row.balanceUnits !== 0n || row.reservedUnits !== 0n)
      .map((row) => [`${row.account}:${row.token}`, `${row.balanceUnits} ${row.reservedUnits}`])
      .sort(([a], [b]) => (a! < b! ? -1 : 1)),
  );
}
