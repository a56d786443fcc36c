import { pino } from 'pino';
import { keccakText } from '../../core/hash.js';
import type { Address } from '../../core/types.js';
import { createRpcPool } from '../../keepers/chain/pool.js';
import type { Rpc } from '../../keepers/chain/rpc.js';
import { createWatcher } from '../../keepers/watcher/watcher.js';
import { createSnapshotStore } from '../../ledger/orders/snapshots.js';
import { acquireWriter } from '../../ledger/db/writers.js';
import { doubleChain } from '../../test/support/worlds/ledger-world.js';
import { median, ROUNDS, type Row } from '../gateway/measure.js';
import type { Database } from './databases.js';

const BLOCKS = 2_000;
const REQUEST = keccakText('requestWithdraw(address,uint256)').slice(2, 10);
/** The server's default. */
const SCAN_MAX_BLOCKS = 200;

/** Blocks per second of a watcher that was away, over a chain in memory whose every tenth block has a request for a withdrawal. */
export async function measureCatchUp(database: Database): Promise<Row[]> {
  const chain = doubleChain();
  const { custodian, curveBook, entrypoint } = chain.manifest.contracts as Record<string, Address>;
  const [from, token] = [chain.address('maker1'), chain.manifest.tokens[0]!.address];
  const word = (text: string): string => text.padStart(64, '0');
  const data = `0x${REQUEST}${word(token.slice(2))}${word('1')}`;
  for (let block = 0; block < BLOCKS; block += 1) {
    if (block % 10 === 0) await chain.rpc.call('eth_sendTransaction', [{ from, to: custodian, data }]);
    await chain.rpc.call('evm_mine');
  }
  const rates: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const { db, drop } = await database.create();
    const writer = await acquireWriter(db, 'ledger');
    const logger = pino({ level: 'silent' });
    const markets: never[] = [];
    const watcher = await createWatcher({
      db,
      writer,
      rpc: createRpcPool(['double:'], { nowMs: () => Date.now(), logger, connect: (): Rpc => chain.rpc }),
      contracts: { custodian: custodian!, curveBook: curveBook!, entrypoint: entrypoint! },
      deploymentId: 'bench',
      deploymentBlock: 1,
      operator: chain.address('owner'),
      markets,
      snapshots: createSnapshotStore(markets),
      pollIntervalMs: 500,
      haltOnSuspense: true,
      scanMaxBlocks: SCAN_MAX_BLOCKS,
      nowMs: () => Date.now(),
      logger,
      onGeneration: () => undefined,
      onReversal: () => undefined,
    });
    const startedMs = performance.now();
    do await watcher.scan();
    while (watcher.status().catchingUp);
    const scanned = watcher.status().nextBlock - 1;
    if (watcher.status().halt !== null || scanned < BLOCKS) throw new Error(`stopped at block ${scanned}`);
    rates.push((scanned * 1_000) / (performance.now() - startedMs));
    await writer.release();
    await drop();
  }
  return [{ goal: '', what: `${database.name}: catch-up, blocks`, value: median(rates), unit: '/s', bound: null }];
}
