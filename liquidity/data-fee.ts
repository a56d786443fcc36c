/** What a rollup charges for a transaction's data in addition to gas, by the chain's gas price oracle. */
import { Interface, Transaction } from 'ethers';
import { ceilDiv } from '../core/amounts.js';
import type { DataFee } from '../core/swap/pricing.js';
import type { Address, Hex } from '../core/types.js';
import { callsAt, codeAt, isFailedCall, onOne, type EthReader, type Head } from './eth.js';

const ORACLE = new Interface([
  'function getL1Fee(bytes unsignedTx) view returns (uint256)',
  'function getL1FeeUpperBound(uint256 unsignedTxSize) view returns (uint256)',
  'function getOperatorFee(uint256 gasUsed) view returns (uint256)',
]);
/**
 * Bytes of an order's transaction that don't compress, its signature not counted: addresses, amounts, nonce, prices and the owner's signature; and
 * what each call of a pool adds. Of each route measured, the fee for so many is at least that for its transaction.
 */
export const ORDER_BYTES = 368n;
export const CALL_BYTES = 160n;
/** Gas at which the operator's fee is asked for, which is linear. */
const PROBE_GAS = 1_000_000n;

interface DataFees {
  /** Most that a transaction of so many bytes costs beside its gas, whatever they are. */
  ofBytes(bytes: bigint, head: Head): Promise<bigint>;
  /** By the model, for a quote; per gas it is rounded up. */
  expected(head: Head): Promise<{ data: DataFee; weiPerGas: bigint }>;
  /** Of one transaction, as it would be signed, at its whole limit of gas, for whoever is about to send it. */
  of(transaction: Unsigned, head: Head): Promise<bigint>;
}

/** What is known of a transaction before its sender chooses nonce and prices. */
export interface Unsigned {
  to: Address;
  data: Hex;
  gasLimit: bigint;
}

/** As long and as hard to compress as what a sender chooses may be: chain id, nonce and both prices. */
const CHOSEN = {
  chainId: 0x6d3c95e1,
  nonce: 0x7a4e29c3,
  maxFeePerGas: 0x5b93d17e62n,
  maxPriorityFeePerGas: 0x49e7a6c58dn,
};

const NOTHING = { data: { orderWei: 0n, callWei: 0n }, weiPerGas: 0n };

/** A chain without code at `oracle` charges nothing but gas. */
export function createDataFees(eth: EthReader, oracle: Address | null): DataFees {
  let isThere = false;

  async function hasOracle(): Promise<boolean> {
    if (oracle === null || isThere) return isThere;
    isThere = (await codeAt(eth, oracle)) !== '0x';
    return isThere;
  }

  async function ask(method: string, args: unknown[], head: Head): Promise<bigint> {
    const call = { to: oracle!, data: ORACLE.encodeFunctionData(method, args) };
    return onOne(eth, async (one) => BigInt((await callsAt(one, head, [call]))[0] ?? '0x0'));
  }

  /** Older oracles know no fee of the operator, and there is none then. */
  async function operatorFee(gas: bigint, head: Head): Promise<bigint> {
    return ask('getOperatorFee', [gas], head).catch((error: unknown) => {
      if (isFailedCall(error)) return 0n;
      throw error;
    });
  }

  return {
    async ofBytes(bytes, head) {
      return (await hasOracle()) ? ask('getL1FeeUpperBound', [bytes], head) : 0n;
    },
    async expected(head) {
      if (!(await hasOracle())) return NOTHING;
      const [order, withCall, fixed, probe] = await Promise.all([
        ask('getL1FeeUpperBound', [ORDER_BYTES], head),
        ask('getL1FeeUpperBound', [ORDER_BYTES + CALL_BYTES], head),
        operatorFee(0n, head),
        operatorFee(PROBE_GAS, head),
      ]);
      const data = { orderWei: order + fixed, callWei: withCall - order };
      return { data, weiPerGas: ceilDiv(probe - fixed, PROBE_GAS) };
    },
    async of(transaction, head) {
      if (!(await hasOracle())) return 0n;
      const { unsignedSerialized } = Transaction.from({ type: 2, ...CHOSEN, ...transaction });
      return (await ask('getL1Fee', [unsignedSerialized], head)) + (await operatorFee(transaction.gasLimit, head));
    },
  };
}
