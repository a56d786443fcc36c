/** Faults of the database: statements that wait or fail, commits that fail before or after they took effect, crashes at any of them. */
import { SqliteClient } from '../../ledger/db/dialects.js';
import { never, type Actor } from './scheduler.js';
import { nameOf, strikes, type Simulation } from './world.js';

interface Connection {
  readonly inTransaction: boolean;
  readonly open: boolean;
  exec(sql: string): unknown;
  close(): unknown;
}
type Query = { sql: string };
type Send = (connection: Connection, query: Query) => Promise<unknown>;

const broken = (what: string): Error => Object.assign(new Error(`disk I/O error ${what}`), { code: 'SQLITE_IOERR' });

/** Has every statement of a process pass through the simulation; the returned function ends that. */
export function installDatabaseFaults(world: Simulation, committed: () => void): () => void {
  const prototype = SqliteClient.prototype as unknown as { _query: Send };
  const original = prototype._query;
  const { scheduler, record } = world;
  const owners = new WeakMap<Connection, Actor>();
  /** Connections whose session was ended from outside. */
  const severed = new WeakSet<Connection>();

  /** A process that dies leaves no transaction open; one that is stopped has its session ended. */
  function own(connection: Connection, actor: Actor): void {
    owners.set(connection, actor);
    actor.onDeath.push(() => {
      if (connection.open) connection.close();
    });
    actor.onSevered.push(() => {
      if (!connection.open) return;
      if (connection.inTransaction) connection.exec('ROLLBACK');
      severed.add(connection);
    });
  }

  async function query(this: unknown, connection: Connection, sent: Query): Promise<unknown> {
    const actor = scheduler.current();
    if (actor === undefined) return original.call(this, connection, sent);
    if (actor.isDead) return never();
    if (!owners.has(connection)) own(connection, actor);
    const where = nameOf(actor);
    const { sql } = sent;
    const isCommit = /^COMMIT/i.test(sql);
    if (severed.has(connection)) {
      severed.delete(connection);
      throw broken('after its session was ended');
    }
    if (strikes(world, isCommit ? 'crashBeforeCommit' : 'crashAtStatement', where)) {
      scheduler.kill(actor);
      return never();
    }
    if (strikes(world, 'dbSlow', where)) await scheduler.sleep(world.decisions.int('dbSlowMs', 1, 300));
    if (actor.isDead) return never();
    if (/^BEGIN/i.test(sql) && strikes(world, 'dbFailBegin', where)) throw broken('at the beginning');
    if (!isCommit && connection.inTransaction && !/^ROLLBACK/i.test(sql) && strikes(world, 'dbFailStatement', where))
      throw broken('in a statement');
    if (isCommit && strikes(world, 'dbFailBeforeCommit', where)) {
      connection.exec('ROLLBACK');
      throw broken('before the commit');
    }
    const answer = await original.call(this, connection, sent);
    record.trace(() => `${scheduler.nowMs()} ${where} ${sql.slice(0, 60).replace(/trx\d+/, 'trx')}`);
    if (!isCommit) return answer;
    committed();
    if (strikes(world, 'crashAfterCommit', where)) {
      scheduler.kill(actor);
      return never();
    }
    if (strikes(world, 'dbFailAfterCommit', where)) throw broken('after the commit');
    return answer;
  }

  prototype._query = query;
  return () => {
    prototype._query = original;
  };
}
