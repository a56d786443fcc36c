/**
 * A process that is an executor, and kills itself with SIGKILL just before a step that leaves the process: a request to the node, or a
 * transaction of the swap log. The first line of its standard input is its task, so that a test may have it ready before; further lines are
 * `round`, `die <k>` to die before the k-th step from then on, and `ahead <ms>` for its clock. Each is answered.
 */
import { createInterface } from 'node:readline';
import { pino } from 'pino';
import type { Address, Hex, Market } from '../../../core/types.js';
import { createOutbox } from '../../../keepers/chain/outbox.js';
import { createRpc } from '../../../keepers/chain/rpc.js';
import { DEFAULT_GAS } from '../../../core/swap/pricing.js';
import { createExecutor } from '../../../keepers/executor/executor.js';
import { openDb } from '../../../ledger/db/db.js';
import { readMarkets } from '../../../ledger/chain/markets.js';
import { acquireWriter } from '../../../ledger/db/writers.js';
import { createMarketData } from '../../../liquidity/market-data.js';

/** Task of the process. */
export interface ExecutorTask {
  database: { url: string; schema?: string };
  rpcUrl: string;
  chainId: number;
  privateKey: Hex;
  contracts: { settler: Address; curveBook: Address; custodian: Address; entrypoint: Address; wrappedNative: Address };
}

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
console.log('loaded');
const first = await input.next();
const task = JSON.parse(String(first.value)) as ExecutorTask;
const { contracts } = task;
let stepsLeft = Number.POSITIVE_INFINITY;
let aheadMs = 0;

/** Wraps a step so that the process kills itself before the chosen one. SIGKILL can't be caught, so no code of this process runs after it. */
function step<A extends unknown[], R>(run: (...args: A) => Promise<R>): (...args: A) => Promise<R> {
  return (...args) => {
    stepsLeft -= 1;
    if (stepsLeft === 0) process.kill(process.pid, 'SIGKILL');
    return run(...args);
  };
}

const { url, schema } = task.database;
const db = await openDb(url, schema === undefined ? {} : { schema });
const owned = await acquireWriter(db, 'swap', { pollMs: 20 });
const writer = { ...owned, tx: step(owned.tx) as typeof owned.tx };
const node = createRpc(task.rpcUrl);
const rpc = { ...node, call: step(node.call), batch: step(node.batch) };
const nowMs = (): number => Date.now() + aheadMs;
const logger = pino({ level: 'silent' });
const markets: Market[] = [...(await readMarkets(db.knex))];
const marketData = createMarketData(
  { eth: rpc, contracts, markets: () => markets, venues: [], wrappedNative: contracts.wrappedNative },
  () => undefined,
);
const outbox = createOutbox({
  db,
  writer,
  rpc,
  chainId: task.chainId,
  privateKey: task.privateKey,
  order: 'queue',
  stuckMs: 60_000,
  nowMs,
  logger,
});
const executor = createExecutor({
  db,
  writer,
  outbox,
  rpc,
  settler: contracts.settler,
  marketData,
  readiness: () => ({ ready: true }),
  toleranceBps: 10,
  maxSends: 5,
  maxGas: 1_000_000n,
  gasModel: DEFAULT_GAS,
  feeMarginBps: 2_000,
  maxReverts: 2,
  newAccountGas: 94_000n,
  newContractGas: 94_000n,
  pollIntervalMs: 50,
  nowMs,
  logger,
});
console.log('started');
for await (const line of { [Symbol.asyncIterator]: () => input }) {
  const [command = '', argument = ''] = line.split(' ');
  if (command === 'die') stepsLeft = Number.parseInt(argument, 10);
  if (command === 'ahead') aheadMs = Number.parseInt(argument, 10);
  if (command === 'round') await executor.round();
  console.log('done');
}
