import type { Logger } from 'pino';
import type { Address } from '../../core/types.js';
import {
  finishOutbox,
  giveUpOutbox,
  lastFinishedNonce,
  lastNonce,
  otherSigners,
  readOutbox,
} from '../../ledger/transactions/outbox.js';
import type { Db, OutboxRow, Writer } from '../../ledger/types.js';
import type { ProvenBlock } from './account-proof.js';
import { createNonceWatch, type NonceWatch } from './nonces.js';
import type { Rpc } from './rpc.js';

/** The contract that a keeper's transactions call, and whether it accepts a key. */
export interface ServedContract {
  contract: Address;
  /** False when a majority of the endpoints answers that it refuses this key. */
  mayAct(signer: Address): Promise<boolean>;
}

const LOOK_INTERVAL_MS = 60_000;
/** How long after its end of validity a transaction is given up: after a reorganisation, block times may be earlier again. */
const LATE_SEC = 600;

/**
 * Finishes transactions of earlier keys of the same keeper, which can't be signed again: rows are finished once the chain has used their
 * nonce, and given up once they can have no effect any more, because their validity has ended or the contract refuses the key. Otherwise
 * they would count as pending for ever, and so would everything that waits for them. Nothing is sent.
 */
export function createRetiredSigners(deps: {
  db: Db;
  writer: Writer;
  rpc: Rpc;
  serves: ServedContract | null;
  /** The key in use. */
  signer: Address;
  provenBlock(): Promise<ProvenBlock | null>;
  monotonicMs(): number;
  logger: Logger;
}): { look(headTimestampSec: number): Promise<void> } {
  const { db, writer, rpc, serves, signer: own, provenBlock, monotonicMs, logger } = deps;
  let lookedMs = Number.NEGATIVE_INFINITY;
  const watches = new Map<Address, NonceWatch>();

  function watchOf(signer: Address): NonceWatch {
    const watch = watches.get(signer) ?? createNonceWatch({ rpc, signer, provenBlock, monotonicMs, logger });
    watches.set(signer, watch);
    return watch;
  }

  async function settle(
    signer: Address,
    { contract, mayAct }: ServedContract,
    headTimestampSec: number,
  ): Promise<void> {
    const signed = {
      last: await lastNonce(db.knex, signer),
      lastFinished: await lastFinishedNonce(db.knex, signer),
    };
    const { agreed } = await watchOf(signer).used(signed, true);
    // The key may be in use for another contract now: those transactions belong to that keeper.
    const rows = (await readOutbox(db.knex, signer)).filter(({ to }) => to === contract || to === signer);
    const [used, left] = [rows.filter((row) => row.nonce < agreed), rows.filter((row) => row.nonce >= agreed)];
    if (used.length > 0) await writer.tx((tx) => finishOutbox(tx, signer, agreed));
    const isOver = ({ to, validUntilSec }: OutboxRow): boolean =>
      to !== contract || (validUntilSec !== null && validUntilSec + LATE_SEC <= headTimestampSec);
    const lets = left.every(isOver) || (await mayAct(signer));
    const dead = left.filter((row) => !lets || isOver(row)).map(({ hash }) => hash);
    if (dead.length > 0) await writer.tx((tx) => giveUpOutbox(tx, dead));
    if (used.length + dead.length === 0) return;
    logger.info(
      { signer, used: used.length, givenUp: dead.length },
      'transactions of a key that is not in use any more',
    );
  }

  return {
    async look(headTimestampSec) {
      if (serves === null || monotonicMs() - lookedMs < LOOK_INTERVAL_MS) return;
      lookedMs = monotonicMs();
      for (const signer of await otherSigners(db.knex, serves.contract, own)) {
        // An error here must not block the key in use.
        await settle(signer, serves, headTimestampSec).catch((error: unknown) =>
          logger.warn({ signer, err: error }, 'what an earlier key has signed can not be settled yet'),
        );
      }
    },
  };
}
