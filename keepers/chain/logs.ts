import { toSafeInt, wordOf } from '../../core/amounts.js';
import { keccakText } from '../../core/hash.js';
import type { Address, Hex } from '../../core/types.js';

/** A log as eth_getLogs returns it, all hex in lower case: what it holds is compared as text. */
export interface RawLog {
  address: Address;
  topics: Hex[];
  data: Hex;
  blockNumber: number;
  blockHash: Hex;
  txHash: Hex;
  logIndex: number;
}

interface RpcLog {
  address: string;
  topics: string[];
  data: string;
  blockNumber: string;
  blockHash: string;
  transactionHash: string;
  logIndex: string;
}

/** Reads one entry of an eth_getLogs answer. */
export function parseRpcLog(value: unknown): RawLog {
  const log = value as RpcLog;
  return {
    address: log.address.toLowerCase() as Address,
    topics: log.topics.map((topic) => topic.toLowerCase() as Hex),
    data: log.data.toLowerCase() as Hex,
    blockNumber: toSafeInt(BigInt(log.blockNumber)),
    blockHash: log.blockHash.toLowerCase() as Hex,
    txHash: log.transactionHash.toLowerCase() as Hex,
    logIndex: toSafeInt(BigInt(log.logIndex)),
  };
}

const TOPICS = {
  Deposited: keccakText('Deposited(address,address,uint256)'),
  WithdrawRequested: keccakText('WithdrawRequested(address,address,uint256)'),
  WithdrawSettled: keccakText('WithdrawSettled(address,address,uint256,uint256,uint64)'),
  WithdrawExecuted: keccakText('WithdrawExecuted(address,address,uint256)'),
  MarketListed: keccakText('MarketListed(bytes32,address,address,uint256,uint256,uint256,uint256)'),
  CurvePosted: keccakText('CurvePosted(bytes32,uint32,uint32,uint96,uint96,bytes32)'),
  CurveTouched: keccakText('CurveTouched(bytes32,uint32,uint32,uint32)'),
  SeqSet: keccakText('SeqSet(bytes32,uint32)'),
  Swap: keccakText('Swap(bytes32,address,address,uint256,uint256,bool,uint256,uint256,uint256,uint256,uint256)'),
  OrderFilled: keccakText('OrderFilled(address,uint256,address,address,address,uint256,uint256,uint256,bool)'),
  PartnerOrderFilled: keccakText('PartnerOrderFilled(address,uint256,address,address,uint256,bytes32)'),
};

/** First topics of every event that the platform reads. */
export const EVENT_TOPICS: readonly Hex[] = Object.values(TOPICS);

/** What the platform reads from the chain, decoded. Amounts are unsigned base units. */
export type ChainEvent =
  | { type: 'deposited' | 'requested' | 'executed'; maker: Address; token: Address; amountUnits: bigint }
  | {
      type: 'settled';
      maker: Address;
      token: Address;
      amountUnits: bigint;
      basis: bigint;
      readyAtSec: bigint;
    }
  | {
      type: 'listed';
      marketId: Hex;
      base: Address;
      quote: Address;
      index: number;
      lotUnits: bigint;
      tickLotUnits: bigint;
      maxTtlSec: number;
    }
  | {
      type: 'posted';
      marketId: Hex;
      seq: number;
      deadlineSec: number;
      snapAskUnits: bigint;
      snapBidUnits: bigint;
      wordsHash: Hex;
    }
  | { type: 'touched'; marketId: Hex; seq: number; baseSeq: number; deadlineSec: number }
  | { type: 'seqSet'; marketId: Hex; seq: number }
  | {
      type: 'swap';
      marketId: Hex;
      taker: Address;
      recipient: Address;
      fillSeq: number;
      curveSeq: number;
      isBuy: boolean;
      baseUnits: bigint;
      quoteUnits: bigint;
      feeUnits: bigint;
      inputFeeUnits: bigint;
      consumedBeforeUnits: bigint;
    }
  | {
      type: 'orderFilled';
      owner: Address;
      nonce: bigint;
      recipient: Address;
      tokenIn: Address;
      tokenOut: Address;
      amountInUnits: bigint;
      amountOutUnits: bigint;
      feeUnits: bigint;
      feeInSwap: boolean;
    }
  | {
      type: 'partnerOrderFilled';
      owner: Address;
      nonce: bigint;
      /** Zero for an order with a hash alone. */
      partner: Address;
      token: Address;
      amountUnits: bigint;
      /** Zero for none. */
      appData: Hex;
    };

/** Decodes a log of our contracts; null for an event the platform does not read. Throws RangeError on a malformed one. */
export function decodeLog(log: RawLog): ChainEvent | null {
  const word = (index: number): bigint => {
    const at = 2 + index * 64;
    if (log.data.length < at + 64) throw new RangeError(`log data of ${log.txHash} is too short`);
    return BigInt(`0x${log.data.slice(at, at + 64)}`);
  };
  const topic = (index: number): Hex => {
    const value = log.topics[index];
    if (value === undefined) throw new RangeError(`log of ${log.txHash} lacks topic ${index}`);
    return value;
  };
  const topicAddress = (index: number): Address => `0x${topic(index).slice(26)}`;
  const wordAddress = (index: number): Address => `0x${word(index).toString(16).padStart(40, '0')}`;
  const int = (index: number): number => toSafeInt(word(index));

  switch (log.topics[0]) {
    case TOPICS.Deposited:
      return { type: 'deposited', maker: topicAddress(1), token: topicAddress(2), amountUnits: word(0) };
    case TOPICS.WithdrawRequested:
      return { type: 'requested', maker: topicAddress(1), token: topicAddress(2), amountUnits: word(0) };
    case TOPICS.WithdrawExecuted:
      return { type: 'executed', maker: topicAddress(1), token: topicAddress(2), amountUnits: word(0) };
    case TOPICS.WithdrawSettled:
      return {
        type: 'settled',
        maker: topicAddress(1),
        token: topicAddress(2),
        amountUnits: word(0),
        basis: word(1),
        readyAtSec: word(2),
      };
    case TOPICS.MarketListed:
      return {
        type: 'listed',
        marketId: topic(1),
        base: topicAddress(2),
        quote: topicAddress(3),
        index: int(0),
        lotUnits: word(1),
        tickLotUnits: word(2),
        maxTtlSec: int(3),
      };
    case TOPICS.CurvePosted:
      return {
        type: 'posted',
        marketId: topic(1),
        seq: toSafeInt(BigInt(topic(2))),
        deadlineSec: int(0),
        snapAskUnits: word(1),
        snapBidUnits: word(2),
        wordsHash: `0x${log.data.slice(2 + 3 * 64, 2 + 4 * 64)}`,
      };
    case TOPICS.CurveTouched:
      return {
        type: 'touched',
        marketId: topic(1),
        seq: toSafeInt(BigInt(topic(2))),
        baseSeq: int(0),
        deadlineSec: int(1),
      };
    case TOPICS.SeqSet:
      return { type: 'seqSet', marketId: topic(1), seq: int(0) };
    case TOPICS.Swap:
      return {
        type: 'swap',
        marketId: topic(1),
        taker: topicAddress(2),
        recipient: topicAddress(3),
        fillSeq: int(0),
        curveSeq: int(1),
        isBuy: word(2) !== 0n,
        baseUnits: word(3),
        quoteUnits: word(4),
        feeUnits: word(5),
        inputFeeUnits: word(6),
        consumedBeforeUnits: word(7),
      };
    case TOPICS.OrderFilled:
      return {
        type: 'orderFilled',
        owner: topicAddress(1),
        nonce: BigInt(topic(2)),
        recipient: topicAddress(3),
        tokenIn: wordAddress(0),
        tokenOut: wordAddress(1),
        amountInUnits: word(2),
        amountOutUnits: word(3),
        feeUnits: word(4),
        feeInSwap: word(5) !== 0n,
      };
    case TOPICS.PartnerOrderFilled:
      return {
        type: 'partnerOrderFilled',
        owner: topicAddress(1),
        nonce: BigInt(topic(2)),
        partner: topicAddress(3),
        token: wordAddress(0),
        amountUnits: word(1),
        appData: `0x${wordOf(word(2))}`,
      };
    default:
      return null;
  }
}
