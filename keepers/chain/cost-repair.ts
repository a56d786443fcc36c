/** Corrects the stored costs of a role's transactions when the chain drops one, or has it elsewhere than noted. */
import type { Logger } from 'pino';
import type { Address } from '../../core/types.js';
import {
  dropCosts,
  readCostedSigners,
  readCostsAfter,
  readReopened,
  type CostRole,
  type TransactionCost,
} from '../../ledger/transactions/costs.js';
import type { Db, Transaction, Writer } from '../../ledger/types.js';
import { endsOf } from './unknown-costs.js';
import type { Rpc } from './rpc.js';

/** Nonces handled at a time. */
const PAGE = 50;
/** Newest nonces of each key that are checked again after a start. */
const AGAIN_AFTER_START = 64;

interface CostRepair {
  /**
   * Deletes stored costs of transactions that the chain has dropped: at once where their keeper has seen it; for all others their receipts
   * are read again once they are at `finalBlock` or before, a page at a time. A cost stays while no endpoint has another receipt. Returns
   * what was deleted, which can then be collected anew.
   */
  repair(finalBlock: number): Promise<TransactionCost[]>;
}

interface CostRepairDeps {
  role: CostRole;
  db: Db;
  writer: Writer;
  rpc: Rpc;
  logger: Logger;
  /** Only this key's; absent: those of all keys that the role ever had. */
  only?: Address;
  /** Further writes in the transaction that deletes costs of these nonces. */
  also?(tx: Transaction, signer: Address, nonces: readonly number[]): Promise<void>;
}

export function createCostRepair({ role, db, writer, rpc, logger, only, also }: CostRepairDeps): CostRepair {
  /** Up to these nonces the stored costs are those of the final chain. */
  const confirmed = new Map<Address, number>();
  const isMeant = ({ signer }: { signer: Address }): boolean => only === undefined || signer === only;

  async function drop(signer: Address, from: number, why: string): Promise<TransactionCost[]> {
    const dropped = await writer.tx(async (tx) => {
      const costs = await dropCosts(tx, role, { signer, from });
      await also?.(
        tx,
        signer,
        costs.map(({ nonce }) => nonce),
      );
      return costs;
    });
    logger.warn({ role, signer, nonces: dropped.map(({ nonce }) => nonce) }, why);
    return dropped;
  }

  /** Checks nonces that have become final, each once. */
  async function confirm(signer: Address, lastNonce: number, toBlock: number): Promise<TransactionCost[]> {
    const after = Math.min(confirmed.get(signer) ?? lastNonce - AGAIN_AFTER_START, lastNonce);
    confirmed.set(signer, after);
    const costs = await readCostsAfter(db.knex, role, { signer, after, toBlock, limit: PAGE });
    const ends = await endsOf({ db, rpc }, costs);
    for (const [i, cost] of costs.entries()) {
      const end = ends[i];
      // Without any receipt the stored cost stays: the nonce is used, and nothing shows that another transaction used it.
      const isSame =
        end === null ||
        end === undefined ||
        (end.hash === cost.hash && end.blockNumber === cost.blockNumber && end.gasUsed === cost.gasUsed);
      if (!isSame) return drop(signer, cost.nonce, 'the chain has transactions elsewhere than noted');
      confirmed.set(signer, cost.nonce);
    }
    return [];
  }

  return {
    async repair(finalBlock) {
      const dropped: TransactionCost[] = [];
      for (const { signer, nonce } of (await readReopened(db.knex, role)).filter(isMeant)) {
        dropped.push(...(await drop(signer, nonce, 'the chain has dropped transactions whose costs are noted')));
        confirmed.set(signer, Math.min(confirmed.get(signer) ?? nonce - 1, nonce - 1));
      }
      for (const { signer, lastNonce } of (await readCostedSigners(db.knex, role)).filter(isMeant))
        dropped.push(...(await confirm(signer, lastNonce, finalBlock)));
      return dropped;
    },
  };
}
