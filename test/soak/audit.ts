/** Looks at what a soak left behind: records against the chain, fills against their curves, costs, halts, balances. */
import { Contract, type JsonRpcProvider } from 'ethers';
import { toSafeInt } from '../../core/amounts.js';
import type { Address } from '../../core/types.js';
import type { SandboxManifest } from '../../deploy/manifest.js';
import { readBalances, sumBalances } from '../../ledger/chain/balances.js';
import { openDb } from '../../ledger/db/db.js';
import { readHalt } from '../../ledger/chain/halts.js';
import { readMarkets } from '../../ledger/chain/markets.js';
import { readCosts } from '../../ledger/transactions/costs.js';
import { readPublications } from '../../ledger/publications/publication-log.js';
import { rebuildPublication } from '../../ledger/publications/rebuild.js';
import { createSnapshotStore } from '../../ledger/orders/snapshots.js';
import type { Db, Publication } from '../../ledger/types.js';
import { measureLateFills, type LateFills } from './late-fills.js';

interface Audit {
  publications: number;
  kinds: Record<string, number>;
  fills: number;
  reverted: number;
  feeWei: string;
  lateFills: LateFills;
  problems: string[];
}

const PAGE = 10_000;
/** Every how many publications one is rebuilt; all of the newest are. */
const STRIDE = 7;

/** Everything that must hold in the database of a server that was stopped. */
export async function auditDatabase(url: string, manifest: SandboxManifest, provider: JsonRpcProvider): Promise<Audit> {
  const db = await openDb(url);
  try {
    const publications = await readAll(db);
    const poster = manifest.accounts.find(({ role }) => role === 'poster')!.address.toLowerCase() as Address;
    const costs = await readCosts(db.knex, 'poster', { signer: poster, sinceMs: 0 });
    const reverted = costs.filter(({ succeeded, hash }) => !succeeded && hash !== '0x');
    const halt = await readHalt(db.knex);
    const negative = (await readBalances(db.knex)).filter(
      ({ account, balanceUnits }) =>
        balanceUnits < 0n &&
        manifest.accounts.some((one) => one.role.startsWith('maker') && sameAddress(one.address, account)),
    );
    const fills = (await db.knex('fills').count({ n: '*' }).first()) as { n: number };
    return {
      publications: publications.length,
      kinds: countBy(publications.map(({ kind }) => kind)),
      fills: fills.n,
      reverted: reverted.length,
      feeWei: costs.reduce((sum, { feeWei }) => sum + feeWei, 0n).toString(),
      lateFills: await measureLateFills(db.knex),
      problems: [
        ...(halt === null ? [] : [`halted: ${halt.code} ${halt.message}`]),
        ...reverted.map(({ hash, txKey }) => `${txKey} reverted in ${hash}`),
        ...negative.map(({ account, token }) => `${account} owes ${token}`),
        ...(await unlikeVault(db, manifest, provider)),
        ...(await unlikeRecords(db, publications)),
      ],
    };
  } finally {
    await db.close();
  }
}

const sameAddress = (a: string, b: string): boolean => a.toLowerCase() === b;

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

async function readAll(db: Db): Promise<Publication[]> {
  const all: Publication[] = [];
  for (const { index } of await readMarkets(db.knex)) {
    for (let afterSeq = 0; ;) {
      const page = await readPublications(db.knex, { market: index, afterSeq, limit: PAGE });
      all.push(...page);
      if (page.length < PAGE) break;
      afterSeq = page.at(-1)!.seq;
    }
  }
  return all.sort((a, b) => a.cut.generation - b.cut.generation || a.cut.orderSeq - b.cut.orderSeq);
}

async function unlikeRecords(db: Db, publications: readonly Publication[]): Promise<string[]> {
  const markets = await readMarkets(db.knex);
  const snapshots = createSnapshotStore(markets);
  const problems: string[] = [];
  for (const [i, publication] of publications.entries()) {
    if (i % STRIDE !== 0 && i < publications.length - 100) continue;
    await rebuildPublication(db.knex, { markets, snapshots }, publication).catch((error: unknown) => {
      problems.push(String(error));
    });
    snapshots.forget(publication.market, publication.seq + 1);
  }
  return problems;
}

async function unlikeVault(db: Db, manifest: SandboxManifest, provider: JsonRpcProvider): Promise<string[]> {
  const sums = await sumBalances(db.knex);
  const head = await db.knex('generations').max({ block: 'to_block' }).first<{ block: number }>();
  const problems: string[] = [];
  for (const { symbol, address } of manifest.tokens) {
    const abi = ['function balanceOf(address) view returns (uint256)'];
    const balanceOf = new Contract(address, abi, provider).getFunction('balanceOf');
    const blockTag = toSafeInt(BigInt(head.block));
    const held = (await balanceOf(manifest.contracts['custodian'], { blockTag })) as bigint;
    const booked = sums.get(address.toLowerCase() as Address) ?? 0n;
    if (held !== booked) problems.push(`the vault holds ${held} ${symbol}, the ledger says ${booked}`);
  }
  return problems;
}
