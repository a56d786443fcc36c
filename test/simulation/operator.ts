/** Whoever operates the backend: lets makers in, looks at halts, and does what the runbook says, with the commands' own code. */
import { createRpcPool, type RpcPool } from '../../keepers/chain/pool.js';
import { ReconcileError, planReconcile } from '../../keepers/watcher/reconcile.js';
import { readStandingHalt } from '../../keepers/watcher/status.js';
import { readUnbackedClaim } from '../../ledger/chain/claims.js';
import { openDb, prepareDb } from '../../ledger/db/db.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import { requestReconcile } from '../../ledger/operator/reconcile-requests.js';
import type { Db } from '../../ledger/types.js';
import { MAKER_ROLES } from '../support/worlds/ledger-world.js';
import type { Backend } from './processes.js';
import { createActor, type Actor } from './scheduler.js';
import { OPERATOR, type Simulation } from './world.js';

export interface Operator {
  readonly actor: Actor;
  /** Makes the database, lets makers in, and looks after it from now on. */
  start(): Promise<void>;
  db(): Db;
  rpc(): RpcPool;
  /** Leaves the database that it has, for the one that is used now. */
  reopen(): Promise<void>;
  close(): Promise<void>;
}

const LOOK_MS = 4_000;
/** A settler that is down or out of reach does it later. */
const ASK_AGAIN_MS = 30_000;

export function createOperator(world: Simulation, backend: Backend): Operator {
  const { scheduler, chain, record } = world;
  const actor = createActor(OPERATOR);
  const { config } = backend;
  const silent = { info: () => undefined, warn: () => undefined, error: () => undefined, debug: () => undefined };
  let db: Db | null = null;
  let lowered = { what: '', atMs: 0 };

  const pool = () =>
    createRpcPool(config.rpcUrls, {
      nowMs: () => Date.now(),
      logger: silent as never,
      chainId: config.manifest.chainId,
    });

  async function look(): Promise<void> {
    if (db === null) return;
    const halt = await readStandingHalt(db.knex);
    if (halt === null) return;
    record.trace(() => `operator sees ${halt.code}`);
    if (halt.code === 'unbacked_claim' && (await lowerClaim(db))) return;
    try {
      const plan = await planReconcile(db, pool(), config.manifest);
      if (plan !== null) {
        await requestReconcile(db, { reversal: plan.reversal, capitalOrigin: false }, Date.now());
        record.count('operator reconciles');
        return;
      }
      await appendOperatorRow(db, { timeMs: Date.now(), kind: 'resume', maker: null, note: '' });
      record.count('operator resumes');
    } catch (error) {
      record.count(error instanceof ReconcileError ? `reconcile ${error.code}` : 'operator fails');
      record.trace(() => `operator fails: ${String(error)}`);
    }
  }

  /** Asks the settler for it, and again when that took long. False when no claim is above its balance any more. */
  async function lowerClaim({ knex }: Db): Promise<boolean> {
    const claim = await readUnbackedClaim(knex, chain.setting.address('owner'));
    if (claim === null) return false;
    const { maker, token, balanceUnits } = claim;
    const lower = { token, amountUnits: balanceUnits > 0n ? balanceUnits : 0n };
    const asked = `${maker} ${token} ${lower.amountUnits}`;
    if (asked !== lowered.what || Date.now() - lowered.atMs > ASK_AGAIN_MS) {
      await appendOperatorRow(db!, { timeMs: Date.now(), kind: 'lowerClaim', maker, note: '', lower });
      lowered = { what: asked, atMs: Date.now() };
      record.count('operator lowers a claim');
    }
    return true;
  }

  return {
    actor,
    db: () => db!,
    rpc: pool,
    async reopen() {
      await db?.close();
      db = null;
      const next = await openDb(backend.databaseUrl());
      await prepareDb(next, config.manifest.deploymentId);
      db = next;
    },
    start: () =>
      scheduler.as(actor, async () => {
        db = await openDb(backend.databaseUrl());
        await prepareDb(db, config.manifest.deploymentId);
        for (const role of MAKER_ROLES) {
          const maker = chain.setting.address(role);
          await appendOperatorRow(db, { timeMs: Date.now(), kind: 'approve', maker, note: '' });
        }
        const again = (): void => {
          scheduler.after(
            LOOK_MS,
            () =>
              void look()
                .catch(() => undefined)
                .then(again),
            actor,
          );
        };
        again();
      }),
    async close() {
      await db?.close();
    },
  };
}
