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

/** What a keeper's transactions call, and whether that listens to a key. */
export interface ServedContract {
  contract: Address;
  /** False when a majority of the endpoints says that it refuses whatever this key sends. */
  mayAct(signer: Address): Promise<boolean>;
}

const LOOK_INTERVAL_MS = 60_000;
/** Of the newest block's time: a chain that takes blocks back must not give a transaction its time back. */
const LATE_SEC = 600;

/**
 * Looks after what earlier keys of the same keeper have signed, which nobody can sign anew: rows are done with once the chain has used
 * their nonce, and given up once they can't do anything any more, because their time is over or the contract refuses the key. Without it they
 * would count as under way for ever, and what waits for them would wait for ever. Nothing is sent.
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
    // The key may serve another contract now: what it sends there, and what it sends itself in place of that, is that keeper's affair.
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
        // What can't be told now must not hold up the key in use.
        await settle(signer, serves, headTimestampSec).catch((error: unknown) =>
          logger.warn({ signer, err: error }, 'what an earlier key has signed can not be settled yet'),
        );
      }
    },
  };
}
