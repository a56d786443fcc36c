/** Suites on a chain that mines when it is told to: one chain for all, an empty database and a stack of its own for each test. */
import type { Wallet } from 'ethers';
import type { ExecutorDeps } from '../../keepers/executor/deps.js';
import type { SwapDeps } from '../../server/swap/deps.js';
import { custodyOf, type Custody } from './custody.js';
import type { forEachDatabase } from './db.js';
import { forOneDatabase, type OpenTestDb } from './db.js';
import {
  startKeepers,
  startManualChain,
  type KeeperOptions,
  type KeeperStack,
  type ManualChain,
} from './keeper-stack.js';
import { startSwapStack, type SwapStack } from './swap-stack.js';

/** What a test of keepers has. */
export interface KeeperTest {
  chain: ManualChain;
  stack: KeeperStack;
  custody: Custody;
}

/**
 * Declares the tests, on one database unless told `forEachDatabase`, within a `describe`. `begin` takes the chain back and starts keepers on an empty database, which the
 * test stops; `open` opens another one.
 */
export function forEachKeepers(
  declare: (begin: (options?: KeeperOptions) => Promise<KeeperTest>, open: OpenTestDb) => void,
  databases: typeof forEachDatabase = forOneDatabase,
): void {
  onManualChain(databases, (chain, open) => {
    const begin = async (options?: KeeperOptions): Promise<KeeperTest> => {
      await chain().reset();
      const stack = await startKeepers(await open(), chain(), options);
      return { chain: chain(), stack, custody: custodyOf(chain(), stack) };
    };
    declare(begin, open);
  });
}

/** What a test of swaps has. */
interface SwapTest {
  chain: ManualChain;
  stack: SwapStack;
  /** Has tokens, of which Permit2 may take all, and no ETH. */
  taker: Wallet;
}

/** What a test of swaps changes of the API and of the executor, and whether the settler is one that can't check orders. */
export type SwapChanges = [api?: Partial<SwapDeps>, executor?: Partial<ExecutorDeps>, isOldSettler?: boolean];

/** Takes the chain back and starts a stack on an empty database, which the test stops. */
export type BeginSwaps = (...changes: SwapChanges) => Promise<SwapTest>;

/** The same with swap API and executor; on both databases with `forEachDatabase`. */
export function forEachSwapStack(
  declare: (begin: BeginSwaps) => void,
  databases: typeof forEachDatabase = forOneDatabase,
): void {
  onManualChain(databases, (chain, open) => {
    const begin: BeginSwaps = async (...changes) => {
      await chain().reset();
      const stack = await startSwapStack(await open(), chain(), ...changes);
      return { chain: chain(), stack, taker: chain().wallet('taker3') };
    };
    declare(begin);
  });
}

/** Declares a suite on one manual chain; `chain` is available once the tests run. */
function onManualChain(
  databases: typeof forEachDatabase,
  declare: (chain: () => ManualChain, open: OpenTestDb) => void,
): void {
  let chain: ManualChain;

  before(async function () {
    this.timeout(120_000);
    chain = await startManualChain();
  });

  after(() => chain?.close());

  databases((_name, open) => declare(() => chain, open));
}
