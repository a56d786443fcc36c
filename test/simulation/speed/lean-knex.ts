/**
 * Shorter ways through Knex, for the SQLite of a simulation: what a query builder compiled goes to the database, and its answer back, past the
 * events, debug lines and copies of the whole interface that nobody of the simulation looks at. The statements, their order, and what becomes
 * of them stay as they are.
 */
import { createRequire } from 'node:module';
import { SqliteClient } from '../../../ledger/db/dialects.js';
import { compiled, type Shaped } from './compiled.js';

interface Connection {
  readonly open: boolean;
}
interface Query {
  sql: string;
  bindings?: readonly unknown[];
}
/** As far as a pool of one connection that is there already needs it. */
interface Pool {
  readonly destroyed: boolean;
  readonly free: Resource[];
  readonly used: Resource[];
  readonly pendingAcquires: readonly unknown[];
  _stopReaping(): void;
}
interface Resource {
  readonly resource: Connection;
  /** The same connection, free. */
  resolve(): Resource;
}
interface Client {
  readonly transacting?: boolean;
  readonly pool?: Pool;
  _query(connection: Connection, query: Query): Promise<unknown>;
  query(connection: Connection, query: Query | string): Promise<unknown>;
  runner(builder: Builder): { run(): Promise<unknown> };
  transaction(...args: unknown[]): Transaction;
  acquireConnection(): Promise<Connection>;
  releaseConnection(connection: Connection): Promise<void>;
  processResponse(answered: unknown, runner: object): unknown;
}
interface Builder extends Shaped {
  readonly _connection?: Connection;
  toSQL(): Query | readonly Query[];
}
type Transactor = Record<string, unknown> & {
  context: Record<string, unknown>;
  commit(value: unknown): Promise<unknown>;
  rollback(error: unknown): Promise<unknown>;
};
interface Transaction {
  readonly client: Client;
  readonly userParams: unknown;
  trxClient: Client;
  transactor: Transactor;
  _resolver(value: unknown): void;
  _rejecter(error: unknown): void;
  begin(connection: Connection): Promise<unknown>;
  commit(connection: Connection, value: unknown): Promise<unknown>;
  rollback(connection: Connection, error: unknown): Promise<unknown>;
  isCompleted(): boolean;
  _onAcquire(container: (tx: unknown) => unknown, connection: Connection): Promise<unknown>;
}
/** What `knex` and transactions are: a function with an interface. */
type Interface = ((table?: string, options?: object) => unknown) & Transactor;

const load = createRequire(import.meta.url);
const makeKnex = load('knex/lib/knex-builder/make-knex') as (client: object) => Interface;
const prototype = SqliteClient.prototype as unknown as Client;

const inherited = ['version', 'config', 'driver', 'connectionSettings', 'valueForUndefined', 'logger'] as const;

/** Installs them; the returned function takes them away again. */
export function installLeanKnex(): () => void {
  const { runner, transaction, acquireConnection, releaseConnection } = prototype;
  /** Whose interface all transactions share. */
  let template: Interface | undefined;

  function sendQuery(this: Client, connection: Connection, asked: Query | string): Promise<unknown> {
    const sent = typeof asked === 'string' ? { sql: asked } : asked;
    return this._query(connection, sent).catch((error: Error) => {
      error.message = `${sent.sql} - ${error.message}`;
      throw error;
    });
  }

  /** Knex draws 21 random numbers for the name of each statement, which nobody asks for. */
  function compile(builder: Builder): Query {
    const { random } = Math;
    Math.random = () => 0;
    try {
      return builder.toSQL() as Query;
    } finally {
      Math.random = random;
    }
  }

  const compileOnce = (builder: Builder): Query => compiled(builder, () => compile(builder));

  async function run(client: Client, builder: Builder): Promise<unknown> {
    const own = builder._connection;
    const connection = own ?? (await client.acquireConnection());
    try {
      const answered = await client.query(connection, compileOnce(builder));
      return client.processResponse(answered, { client, builder, connection });
    } finally {
      if (own === undefined) await client.releaseConnection(connection);
    }
  }

  /** Past timers that would end a wait, and a round each second that would close connections of a larger pool. */
  async function acquire(this: Client): Promise<Connection> {
    const { pool } = this;
    const isFree = pool !== undefined && !pool.destroyed && pool.free.length > 0 && pool.pendingAcquires.length === 0;
    if (!isFree) {
      const connection = await acquireConnection.call(this);
      pool?._stopReaping();
      return connection;
    }
    const taken = pool.free.pop()!;
    pool.used.push(taken);
    return taken.resource;
  }

  function release(this: Client, connection: Connection): Promise<void> {
    const { pool } = this;
    const isAlone = pool !== undefined && !pool.destroyed && pool.pendingAcquires.length === 0;
    const at = isAlone ? pool.used.findIndex(({ resource }) => resource === connection) : -1;
    if (at < 0) return releaseConnection.call(this, connection);
    for (const one of pool!.used.splice(at, 1)) pool!.free.push(one.resolve());
    return Promise.resolve();
  }

  /** A client that always has the transaction's connection. */
  function clientOf(of: Transaction, connection: Connection): Client {
    const client = Object.create(prototype) as Client & Record<string, unknown>;
    for (const name of inherited) client[name] = (of.client as unknown as Record<string, unknown>)[name];
    return Object.assign(client, {
      transacting: true,
      query(by: Connection, asked: Query | string): Promise<unknown> {
        if (by !== connection) return Promise.reject(new Error('Invalid connection for transaction query.'));
        if (of.isCompleted()) return Promise.reject(new Error('Transaction query already complete'));
        return sendQuery.call(client, by, asked);
      },
      acquireConnection: () => Promise.resolve(connection),
      releaseConnection: () => Promise.resolve(),
    });
  }

  function transactorOf(of: Transaction, connection: Connection): Transactor {
    template ??= makeKnex(Object.create(prototype) as object);
    const { context: shared } = template;
    const context = Object.create(shared) as Record<string, unknown> & { queryBuilder(): { table: Interface } };
    const transactor = ((table: string, options?: object) =>
      context.queryBuilder().table(table, options)) as unknown as Transactor;
    Object.setPrototypeOf(transactor, template);
    return Object.assign(transactor, {
      context: Object.assign(context, {
        client: of.trxClient,
        userParams: of.userParams ?? {},
        transaction(this: { _transaction(...args: unknown[]): unknown }, container: unknown, options: object = {}) {
          return this._transaction(container, { doNotRejectOnRollback: true, ...options }, of);
        },
      }),
      isTransaction: true,
      commit: (value: unknown) => of.commit(connection, value),
      rollback: (error: unknown) => of.rollback(connection, error),
      isCompleted: () => of.isCompleted(),
    });
  }

  function onAcquire(this: Transaction, container: (tx: unknown) => unknown, connection: Connection): Promise<unknown> {
    const execution = new Promise((resolve, reject) => Object.assign(this, { _resolver: resolve, _rejecter: reject }));
    this.trxClient = clientOf(this, connection);
    const work = async (): Promise<void> => {
      await this.begin(connection);
      const transactor = (this.transactor = transactorOf(this, connection));
      Object.assign(transactor, { executionPromise: execution });
      const result = container(transactor);
      const isAwaited = typeof (result as { then?: unknown } | undefined)?.then === 'function';
      if (isAwaited)
        Promise.resolve(result)
          .then((value) => transactor.commit(value))
          .catch((error: unknown) => transactor.rollback(error));
    };
    work().catch((error: unknown) => this._rejecter(error));
    return execution;
  }

  prototype.query = sendQuery;
  prototype.acquireConnection = acquire;
  prototype.releaseConnection = release;
  prototype.runner = function (this: Client, builder) {
    // Schema builders make several statements, and ask for their connection.
    return '_sequence' in builder ? runner.call(this, builder) : { run: () => run(this, builder) };
  };
  prototype.transaction = function (this: Client, ...args) {
    const made = transaction.apply(this, args);
    if (this.transacting !== true) made._onAcquire = onAcquire;
    return made;
  };
  return () => {
    prototype.transaction = transaction;
    for (const name of ['query', 'runner', 'acquireConnection', 'releaseConnection'])
      Reflect.deleteProperty(prototype, name);
  };
}
