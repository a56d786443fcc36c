/** The simulated chain as it truly is: blocks on the virtual clock, a mempool that survives, reorganisations, and what branches held that lost. */
import { Interface, MaxUint256 } from 'ethers';
import type { Address, Hex, Market } from '../../core/types.js';
import { toQuantity, type Rpc } from '../../keepers/chain/rpc.js';
import { Custodian__factory, Entrypoint__factory } from '../../typechain-types/index.js';
import { doubleChain, type HistoryChain } from '../support/worlds/ledger-world.js';

const CUSTODIAN = new Interface(Custodian__factory.abi);
const ENTRYPOINT = new Interface(Entrypoint__factory.abi);
const TOKEN = new Interface([
  'function transfer(address,uint256)',
  'function balanceOf(address) view returns (uint256)',
]);

/** Long enough to lower a claim that a reorganisation left without its balance, with a settler that is out of reach for a while. */
const WITHDRAW_DELAY_SEC = 60;

/** A block as nodes answer it, with the logs of all its receipts. */
export interface KnownBlock {
  number: number;
  hash: Hex;
  parentHash: Hex;
  timestampSec: number;
  header: Record<string, unknown>;
  receipts: Record<string, unknown>[];
  /** What the vault holds at its end, by token, and how many transactions each keeper has sent. */
  held: ReadonlyMap<Address, Hex>;
  counts: ReadonlyMap<Address, Hex>;
}

export interface SimulatedChain {
  readonly setting: HistoryChain & { markets: readonly Market[] };
  readonly rpc: Rpc;
  head(): KnownBlock;
  /** The block of a height on the chain that counts. */
  at(number: number): KnownBlock | undefined;
  /** Any block that was ever mined. */
  byHash(hash: Hex): KnownBlock | undefined;
  /** Mines at a time of the wall clock. */
  mine(nowMs: number): Promise<void>;
  /** Takes this many blocks back and mines one more in their place; what they held is sent again as far as `keeps` says. */
  reorganise(depth: number, nowMs: number, keeps: () => boolean): Promise<void>;
  /** Takes a signed transaction, as a node does. */
  sendRaw(raw: Hex): Promise<unknown>;
  deposit(role: string, token: Address, units: bigint): Promise<void>;
  request(role: string, token: Address, units: bigint): Promise<void>;
  execute(role: string, token: Address): Promise<void>;
  transfer(role: string, token: Address, units: bigint): Promise<void>;
  swap(role: string, tokenIn: Address, tokenOut: Address, units: bigint): Promise<void>;
  /** What the vault holds of a token at the end of a block. */
  held(token: Address, block: number): bigint;
}

/** A fresh chain; the clock must be installed already. */
export async function createSimulatedChain(): Promise<SimulatedChain> {
  const double = doubleChain({ withdrawDelaySec: WITHDRAW_DELAY_SEC });
  const setting = { ...double, markets: double.markets! };
  const { rpc, manifest } = setting;
  const lower = (text: string): Address => text.toLowerCase() as Address;
  const custodian = lower(manifest.contracts.custodian);
  const entrypoint = lower(manifest.contracts.entrypoint);
  const HELD = TOKEN.encodeFunctionData('balanceOf', [custodian]);
  const blocks: KnownBlock[] = [];
  const known = new Map<Hex, KnownBlock>();
  /** How to undo each block, and how to send what is mined again. */
  const snapshots: string[] = [];
  const sent = new Map<string, () => Promise<unknown>>();

  async function learn(number: number): Promise<void> {
    const header = (await rpc.call('eth_getBlockByNumber', [toQuantity(number), false])) as Record<string, unknown>;
    const receipts = (await rpc.call('eth_getBlockReceipts', [header['hash']])) as Record<string, unknown>[];
    const held = new Map<Address, Hex>();
    for (const { address } of manifest.tokens) {
      const token = lower(address);
      held.set(token, (await rpc.call('eth_call', [{ to: token, data: HELD }, toQuantity(number)])) as Hex);
    }
    const counts = new Map<Address, Hex>();
    for (const role of ['poster', 'settler', 'executor']) {
      const signer = setting.address(role);
      counts.set(signer, (await rpc.call('eth_getTransactionCount', [signer, toQuantity(number)])) as Hex);
    }
    const block: KnownBlock = {
      held,
      counts,
      number,
      hash: header['hash'] as Hex,
      parentHash: header['parentHash'] as Hex,
      timestampSec: Number.parseInt(String(header['timestamp']), 16),
      header,
      receipts,
    };
    blocks[number] = block;
    known.set(block.hash, block);
  }

  async function mineOne(timestampSec: number): Promise<void> {
    snapshots[blocks.length] = String(await rpc.call('evm_snapshot'));
    const offsetSec = Math.max(-1, timestampSec - blocks.at(-1)!.timestampSec - 2);
    await rpc.call('evm_increaseTime', [offsetSec]);
    await rpc.call('evm_mine');
    await learn(blocks.length);
  }

  async function send(role: string, to: Address, data: string): Promise<void> {
    const tx = { from: setting.address(role), to, data };
    const again = async (): Promise<unknown> => {
      const hash = await rpc.call('eth_sendTransaction', [tx]);
      sent.set(String(hash), again);
      return hash;
    };
    await again();
  }

  async function sendRaw(raw: Hex): Promise<unknown> {
    const hash = await rpc.call('eth_sendRawTransaction', [raw]);
    sent.set(String(hash), () => rpc.call('eth_sendRawTransaction', [raw]));
    return hash;
  }

  await learn(0);
  await learn(1);

  return {
    setting,
    rpc,
    head: () => blocks.at(-1)!,
    at: (number) => blocks[number],
    byHash: (hash) => known.get(hash),
    mine: (nowMs) => mineOne(Math.floor(nowMs / 1_000)),
    async reorganise(depth, nowMs, keeps) {
      const lost = blocks.slice(-depth);
      await rpc.call('evm_revert', [snapshots[lost[0]!.number]]);
      blocks.length -= depth;
      const hashes = lost.flatMap(({ header }) => header['transactions'] as string[]);
      for (const hash of hashes) {
        const again = sent.get(hash);
        if (again !== undefined && keeps()) await again().catch(() => undefined);
      }
      for (const { timestampSec } of lost) await mineOne(timestampSec);
      await mineOne(Math.floor(nowMs / 1_000));
    },
    sendRaw,
    deposit: (role, token, units) => send(role, custodian, CUSTODIAN.encodeFunctionData('deposit', [token, units])),
    request: (role, token, units) =>
      send(role, custodian, CUSTODIAN.encodeFunctionData('requestWithdraw', [token, units])),
    execute: (role, token) => send(role, custodian, CUSTODIAN.encodeFunctionData('executeWithdraw', [token])),
    transfer: (role, token, units) => send(role, token, TOKEN.encodeFunctionData('transfer', [custodian, units])),
    swap: (role, tokenIn, tokenOut, units) =>
      send(
        role,
        entrypoint,
        ENTRYPOINT.encodeFunctionData('swap', [tokenIn, tokenOut, units, 0n, setting.address(role), MaxUint256]),
      ),
    held: (token, block) => BigInt(blocks[block]!.held.get(token)!),
  };
}
