/** Keepers over a chain double with two markets, WETH-USDC and WETH-DAI, whose tokens and endpoints can be made to lie. */
import { Interface } from 'ethers';
import { pino } from 'pino';
import type { Address } from '../../../core/types.js';
import { createRpcPool, type RpcPool } from '../../../keepers/chain/pool.js';
import { HOLDINGS_PACE } from '../../../keepers/watcher/tokens/holdings.js';
import type { WatcherDeps } from '../../../keepers/watcher/watcher.js';
import { readBalances } from '../../../ledger/chain/balances.js';
import { readHalt } from '../../../ledger/chain/halts.js';
import { readTokenFindings } from '../../../ledger/chain/token-findings.js';
import { UNATTRIBUTED, type Db } from '../../../ledger/types.js';
import { Custodian__factory, Entrypoint__factory } from '../../../typechain-types/index.js';
import { startKeepers, type KeeperStack } from '../keeper-stack.js';
import { doubleChain, type HistoryChain } from './ledger-world.js';
import { lyingRpc, type Lies } from '../nodes/lying-tokens.js';

const CUSTODIAN = new Interface(Custodian__factory.abi);
const ENTRYPOINT = new Interface(Entrypoint__factory.abi);
const TOKEN = new Interface(['function transfer(address,uint256)']);

export interface TokenWorld {
  chain: HistoryChain;
  stack: KeeperStack;
  pool: RpcPool;
  /** What each endpoint lies about. */
  lies: Lies[];
  token(symbol: string): Address;
  vault: Address;
  custody(role: string, call: 'deposit' | 'requestWithdraw' | 'executeWithdraw', ...args: unknown[]): Promise<void>;
  give(symbol: string, units: bigint): Promise<void>;
  /** Takes tokens out of the vault by a transfer, as only a broken custodian could. */
  rob(symbol: string, units: bigint): Promise<void>;
  sell(role: string, tokenIn: string, tokenOut: string, units: bigint): Promise<void>;
  mine(blocks?: number): Promise<void>;
  /** Lets time pass before the next block. */
  wait(sec: number): Promise<void>;
  /** Mines a block and scans it. */
  step(blocks?: number): Promise<void>;
  haltCode(): Promise<string | undefined>;
  unattributed(symbol: string): Promise<bigint>;
  /** Code of what stands against a token now, with its state. */
  findingsOf(symbol: string): Promise<string[]>;
}

export interface TokenWorldOptions {
  endpoints?: number;
  /** How the endpoints word a revert. */
  reverts?: string;
  chain?: HistoryChain;
  watcher?: Partial<WatcherDeps>;
}

/** Starts keepers that check tokens at every block; how long a difference must last before it counts is as on a real platform. */
export async function startTokenWorld(db: Db, options: TokenWorldOptions = {}): Promise<TokenWorld> {
  const { endpoints = 1, reverts, chain = doubleChain() } = options;
  const lies: Lies[] = Array.from({ length: endpoints }, () => new Map());
  const names = lies.map((_, i) => `endpoint${i}:`);
  const logger = pino({ level: 'silent' });
  const connect = (url: string) => {
    const i = names.indexOf(url);
    return lyingRpc(chain.rpc, lies[i]!, { name: url, ...(reverts === undefined ? {} : { reverts }) });
  };
  const pool = createRpcPool(names, { nowMs: () => Date.now(), logger, connect });
  const stack = await startKeepers(db, chain, {
    connect: () => chain.rpc,
    watcher: {
      rpc: pool,
      holdingsPace: HOLDINGS_PACE,
      tokenPace: { intervalMs: 0, againMs: 0 },
      ...options.watcher,
    },
  });
  const send = (role: string, to: string, data: string) =>
    chain.rpc.call('eth_sendTransaction', [{ from: chain.address(role), to, data }]);
  const token = (symbol: string): Address =>
    chain.manifest.tokens.find((one) => one.symbol === symbol)!.address as Address;
  const { custodian, entrypoint } = chain.manifest.contracts as unknown as Record<string, Address>;
  const vault = custodian!;

  async function scan(): Promise<void> {
    const head = Number.parseInt(String(await chain.rpc.call('eth_blockNumber')), 16);
    do await stack.watcher.scan();
    while (stack.watcher.status().nextBlock <= head && stack.watcher.status().halt === null);
  }
  const mine = async (blocks = 1): Promise<void> => {
    for (let i = 0; i < blocks; i += 1) await chain.rpc.call('evm_mine');
  };

  return {
    chain,
    stack,
    pool,
    lies,
    token,
    vault,
    async custody(role, call, ...args) {
      await send(role, vault, CUSTODIAN.encodeFunctionData(call, args as never));
    },
    async give(symbol, units) {
      await send('taker2', token(symbol), TOKEN.encodeFunctionData('transfer', [vault, units]));
    },
    async rob(symbol, units) {
      const data = TOKEN.encodeFunctionData('transfer', [chain.address('taker2'), units]);
      await chain.rpc.call('eth_sendTransaction', [{ from: vault, to: token(symbol), data }]);
    },
    async sell(role, tokenIn, tokenOut, units) {
      const args = [token(tokenIn), token(tokenOut), units, 0n, chain.address(role), 2n ** 40n] as const;
      await send(role, entrypoint!, ENTRYPOINT.encodeFunctionData('swap', [...args]));
    },
    mine,
    async wait(sec) {
      await chain.rpc.call('evm_increaseTime', [sec]);
    },
    async step(blocks = 1) {
      for (let i = 0; i < blocks; i += 1) {
        await mine();
        await scan();
      }
    },
    haltCode: async () => (await readHalt(db.knex))?.code,
    async unattributed(symbol) {
      const rows = await readBalances(db.knex, { account: UNATTRIBUTED });
      return rows.find((row) => row.token === token(symbol))?.balanceUnits ?? 0n;
    },
    findingsOf: async (symbol) =>
      (await readTokenFindings(db.knex))
        .filter((one) => one.token === token(symbol) && one.state !== 'clear')
        .map(({ state, code }) => `${state} ${code}`),
  };
}
