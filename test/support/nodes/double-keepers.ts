/** Keepers over the chain in memory, driven step by step, with endpoints that answer correctly. */
import { expect } from 'chai';
import { Interface, MaxUint256 } from 'ethers';
import { pino } from 'pino';
import type { Address } from '../../../core/types.js';
import { createRpcPool, type RpcPool } from '../../../keepers/chain/pool.js';
import type { Rpc } from '../../../keepers/chain/rpc.js';
import { verifyLedger, type VerifyReport } from '../../../keepers/verify/verify.js';
import { readEntries } from '../../../ledger/chain/fill-postings.js';
import { readBalances } from '../../../ledger/chain/balances.js';
import { requestReconcile } from '../../../ledger/operator/reconcile-requests.js';
import type { ReversalRequest } from '../../../ledger/chain/reversals.js';
import { VAULT, type Db } from '../../../ledger/types.js';
import { Custodian__factory, Entrypoint__factory } from '../../../typechain-types/index.js';
import { startKeepers, type KeeperOptions, type KeeperStack } from '../keeper-stack.js';
import { doubleChain, type HistoryChain } from '../worlds/ledger-world.js';

const CUSTODIAN = new Interface(Custodian__factory.abi);
const ENTRYPOINT = new Interface(Entrypoint__factory.abi);
const TOKEN = new Interface(['function balanceOf(address) view returns (uint256)']);

export interface DoubleKeepers {
  chain: HistoryChain;
  stack: KeeperStack;
  db: Db;
  token(symbol: string): Address;
  pool: RpcPool;
  send(role: string, call: 'deposit' | 'requestWithdraw' | 'executeWithdraw', args: unknown[]): Promise<void>;
  /** Buys base units of the first market for whatever they cost. */
  buy(role: string, units: bigint): Promise<void>;
  /** Sells base units to the first market for whatever they bring. */
  sell(role: string, units: bigint): Promise<void>;
  /** Sends the settler's call as anybody could who had its key. */
  settleAs(amountUnits: bigint, maker: string, symbol: string, basis?: bigint): Promise<void>;
  mine(blocks?: number): Promise<void>;
  /** Mines one block and scans to the head, or until nothing more can be scanned. */
  land(): Promise<void>;
  catchUp(): Promise<void>;
  snapshot(): Promise<string>;
  /** Takes the chain back, and lets it grow otherwise. */
  fork(to: string, blocks: number): Promise<void>;
  reconcile(reversal: ReversalRequest): Promise<void>;
  balance(account: string, symbol: string): Promise<bigint>;
  /** Every token's rows add up to what the vault holds at the scanned block, and each ref to zero. */
  expectConserved(): Promise<void>;
  /** Runs `verify`; with endpoints it compares the ledger with the chain, too. */
  verify(rpc?: RpcPool): Promise<VerifyReport>;
  /** The keepers of another database on the same chain; the first ones stop. */
  restart(db: Db, options?: KeeperOptions): Promise<DoubleKeepers>;
}

/** Starts keepers on a fresh chain and scans what is there. */
export async function startDouble(db: Db, options: KeeperOptions = {}): Promise<DoubleKeepers> {
  return run(db, doubleChain(), options);
}

async function run(db: Db, chain: HistoryChain, options: KeeperOptions): Promise<DoubleKeepers> {
  const { rpc: own, manifest } = chain;
  const custodian = manifest.contracts.custodian.toLowerCase() as Address;
  // Two endpoints with the same answers, so that a difference to the ledger counts at once.
  const names = ['double:0', 'double:1'];
  const connect = (name: string): Rpc => ({ ...own, name });
  const logger = pino({ level: 'silent' });
  const pool = createRpcPool(names, { nowMs: () => Date.now(), logger, connect });
  const stack = await startKeepers(db, chain, {
    connect: chain.connect!,
    ...options,
    watcher: { rpc: pool, ...options.watcher },
  });
  const token = (symbol: string): Address => manifest.tokens.find((one) => one.symbol === symbol)!.address as Address;
  const transact = (from: Address, to: Address, data: string) =>
    own.call('eth_sendTransaction', [{ from, to, data, gas: '0x4c4b40' }]);
  const head = async (): Promise<number> => Number(await own.call('eth_blockNumber'));

  const it: DoubleKeepers = {
    ...{ chain, stack, db, token, pool },
    send: async (role, call, args) =>
      void (await transact(chain.address(role), custodian, CUSTODIAN.encodeFunctionData(call, args as never))),
    async buy(role, units) {
      const args = [token('USDC'), token('WETH'), units, MaxUint256, chain.address(role), MaxUint256] as const;
      const data = ENTRYPOINT.encodeFunctionData('swapExactOutput', [...args]);
      await transact(chain.address(role), manifest.contracts.entrypoint as Address, data);
    },
    async sell(role, units) {
      const args = [token('WETH'), token('USDC'), units, 0n, chain.address(role), MaxUint256] as const;
      const data = ENTRYPOINT.encodeFunctionData('swap', [...args]);
      await transact(chain.address(role), manifest.contracts.entrypoint as Address, data);
    },
    async settleAs(amountUnits, maker, symbol, basis = 0n) {
      const one = [chain.address(maker), token(symbol), amountUnits, basis];
      const data = CUSTODIAN.encodeFunctionData('settleWithdrawBatch', [[one]] as never);
      await transact(chain.address('settler'), custodian, data);
    },
    async mine(blocks = 1) {
      for (let block = 0; block < blocks; block++) await own.call('evm_mine');
    },
    async land() {
      await it.mine();
      await it.catchUp();
    },
    async catchUp() {
      for (let before = -1; stack.watcher.status().nextBlock <= (await head());) {
        if (stack.watcher.status().nextBlock === before) return;
        before = stack.watcher.status().nextBlock;
        await stack.watcher.scan();
      }
    },
    snapshot: async () => String(await own.call('evm_snapshot')),
    async fork(to, blocks) {
      await own.call('evm_revert', [to]);
      await own.call('evm_increaseTime', [1]);
      await it.mine(blocks);
    },
    async reconcile(reversal) {
      await requestReconcile(db, { reversal, capitalOrigin: false }, 1);
      await stack.watcher.scan();
      await it.catchUp();
    },
    async balance(account, symbol) {
      const rows = await readBalances(db.knex, { account: account as Address });
      return rows.find((row) => row.token === token(symbol))?.balanceUnits ?? 0n;
    },
    async expectConserved() {
      const rows = await readBalances(db.knex);
      const at = `0x${(stack.watcher.status().nextBlock - 1).toString(16)}`;
      for (const { symbol } of manifest.tokens) {
        const data = TOKEN.encodeFunctionData('balanceOf', [custodian]);
        const held = BigInt(String(await own.call('eth_call', [{ to: token(symbol), data }, at])));
        const sum = rows
          .filter((row) => row.token === token(symbol) && row.account !== VAULT)
          .reduce((all, row) => all + row.balanceUnits, 0n);
        expect(sum, `the rows in ${symbol}`).to.equal(held);
      }
      const refs = new Map<string, bigint>();
      const span = { from: 0, to: Number.MAX_SAFE_INTEGER };
      for (const { ref, token: of, amount_units: units } of await readEntries(db.knex, span)) {
        refs.set(`${ref}:${of}`, (refs.get(`${ref}:${of}`) ?? 0n) + BigInt(units));
      }
      expect([...refs].filter(([, sum]) => sum !== 0n)).to.deep.equal([]);
    },
    verify: (rpc) =>
      verifyLedger({
        ...{ db, deploymentId: manifest.deploymentId, deploymentBlock: manifest.deploymentBlock, rpc: rpc ?? null },
        ...{ operator: chain.address('owner'), onProgress: () => undefined },
        contracts: {
          custodian,
          curveBook: manifest.contracts.curveBook.toLowerCase() as Address,
          entrypoint: manifest.contracts.entrypoint.toLowerCase() as Address,
        },
      }),
    async restart(other, more = {}) {
      await stack.stop();
      return run(other, chain, { ...options, ...more });
    },
  };
  return it;
}
