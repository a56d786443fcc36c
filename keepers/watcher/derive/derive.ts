import type { Address, ChainFill, Hex, Market } from '../../../core/types.js';
import type {
  AttributedFill,
  ClaimRow,
  CustodyEvent,
  GenerationWrite,
  LedgerEntry,
  PostSeen,
  ScannedBlock,
  SeqReset,
} from '../../../ledger/types.js';
import type { ChainEvent, RawLog } from '../../chain/logs.js';
import {
  createClaimReplay,
  custodyEvent,
  type ClaimContext,
  type ClaimReplay,
  type CustodyChainEvent,
} from './custody.js';
import { fillEntries } from '../../../ledger/chain/fill-postings.js';
import { depositEntries, executionEntries } from './postings.js';
import type { SeenEvent } from '../scan/scan.js';

/** A curve or a touch as the chain tells of it: which post a touch goes back to is known to the ledger. */
export type DraftedPost = Omit<PostSeen, 'postedSeq' | 'era'>;

/** Numbers that were given back, as the chain tells of it. */
export type DraftedReset = Omit<SeqReset, 'era' | 'fillSeq'>;

type CurveEvent = { post: DraftedPost } | { fill: ChainFill } | { reset: DraftedReset };

/** What a scan means for the ledger, before fills are attributed and holdings compared. */
interface GenerationDraft {
  custody: CustodyEvent[];
  posts: DraftedPost[];
  resets: DraftedReset[];
  fills: ChainFill[];
  /** Posts, fills and resets once more, in chain order: a post raises consumption by what was taken before it. */
  curveEvents: CurveEvent[];
  entries: LedgerEntry[];
  reservations: GenerationWrite['reservations'];
  claims: ClaimRow[];
  netCapital: GenerationWrite['netCapital'];
}

interface DraftContext {
  /** Markets listed before this scan, and those listed in it. */
  markets: readonly Market[];
  listed: readonly Market[];
  blocks: readonly ScannedBlock[];
  /** Withdrawals before this scan, and the settlements in it that this database prepared. */
  claims: ClaimContext;
}

/** Reads custody events, posts and fills out of a scan. Tokens that no listed pair trades are recorded and never booked. */
export function draftGeneration(events: readonly SeenEvent[], context: DraftContext): GenerationDraft {
  const draft: GenerationDraft = {
    custody: [],
    posts: [],
    resets: [],
    fills: [],
    curveEvents: [],
    entries: [],
    reservations: [],
    claims: [],
    netCapital: [],
  };
  const byId = new Map([...context.markets, ...context.listed].map((market) => [market.id, market]));
  // Served from its listing on, and not earlier in the same scan, so that the size of a scan decides nothing.
  const served = new Set(context.markets.flatMap((market) => [market.base.address, market.quote.address]));
  const times = new Map(context.blocks.map((block) => [block.number, block.timestampSec]));
  const replay = createClaimReplay(context.claims);

  for (const { log, event } of events) {
    const timestampSec = times.get(log.blockNumber) ?? 0;
    switch (event.type) {
      case 'deposited':
      case 'requested':
      case 'settled':
      case 'executed':
        draft.custody.push(custodyEvent(log, event, context.claims));
        if (served.has(event.token)) bookCustody(draft, replay, log, event);
        break;
      case 'posted':
      case 'touched':
        draft.curveEvents.push({ post: postSeen(requireMarket(byId, event.marketId), log, event, timestampSec) });
        break;
      case 'seqSet':
        draft.curveEvents.push({ reset: seqReset(requireMarket(byId, event.marketId), log, event.seq) });
        break;
      case 'swap':
        draft.curveEvents.push({ fill: chainFill(requireMarket(byId, event.marketId), log, event, timestampSec) });
        break;
      case 'listed':
        served.add(event.base).add(event.quote);
        break;
      case 'orderFilled':
      case 'partnerOrderFilled':
        // Read by settled-orders.ts.
        break;
    }
  }
  for (const one of draft.curveEvents) {
    if ('post' in one) draft.posts.push(one.post);
    else if ('fill' in one) draft.fills.push(one.fill);
    else draft.resets.push(one.reset);
  }
  return { ...draft, claims: replay.changed(), reservations: replay.reservations() };
}

/** Completes the entries with the fills' postings. */
export function fillPostings(
  markets: readonly Market[],
  fills: readonly AttributedFill[],
  operator: Address,
): LedgerEntry[] {
  return fills.flatMap(({ fill, decomposition, suspended }) => {
    const market = markets[fill.market];
    return market === undefined ? [] : fillEntries(market, fill, decomposition, operator, suspended !== undefined);
  });
}

function bookCustody(draft: GenerationDraft, replay: ClaimReplay, log: RawLog, event: CustodyChainEvent): void {
  const { maker, token, amountUnits } = event;
  const ref = `${event.type}:${log.txHash}:${log.logIndex}`;
  if (event.type === 'deposited') {
    draft.entries.push(...depositEntries(ref, maker, token, amountUnits));
    draft.netCapital.push({ account: maker, token, deltaUnits: amountUnits });
    return;
  }
  replay.apply(log, event);
  if (event.type !== 'executed') return;
  draft.entries.push(...executionEntries(ref, maker, token, amountUnits));
  draft.netCapital.push({ account: maker, token, deltaUnits: -amountUnits });
}

function postSeen(
  market: Market,
  log: RawLog,
  event: Extract<ChainEvent, { type: 'posted' | 'touched' }>,
  blockTimestampSec: number,
): DraftedPost {
  const posted = event.type === 'posted' ? event : null;
  return {
    market: market.index,
    seq: event.seq,
    baseSeq: event.type === 'touched' ? event.baseSeq : event.seq,
    deadlineSec: event.deadlineSec,
    snapAskUnits: posted?.snapAskUnits ?? 0n,
    snapBidUnits: posted?.snapBidUnits ?? 0n,
    wordsHash: posted?.wordsHash ?? '0x',
    blockNumber: log.blockNumber,
    blockTimestampSec,
    txHash: log.txHash,
  };
}

function seqReset(market: Market, { blockNumber, logIndex, txHash }: RawLog, seq: number): DraftedReset {
  return { market: market.index, seq, blockNumber, logIndex, txHash };
}

function chainFill(
  market: Market,
  log: RawLog,
  event: Extract<ChainEvent, { type: 'swap' }>,
  timestampSec: number,
): ChainFill {
  return {
    market: market.index,
    fillSeq: event.fillSeq,
    curveSeq: event.curveSeq,
    side: event.isBuy ? 'ask' : 'bid',
    baseUnits: event.baseUnits,
    quoteUnits: event.quoteUnits,
    feeUnits: event.feeUnits,
    inputFeeUnits: event.inputFeeUnits,
    consumedBeforeUnits: event.consumedBeforeUnits,
    taker: event.taker,
    recipient: event.recipient,
    blockNumber: log.blockNumber,
    blockHash: log.blockHash,
    txHash: log.txHash,
    logIndex: log.logIndex,
    timestampMs: timestampSec * 1_000,
  };
}

function requireMarket(byId: ReadonlyMap<Hex, Market>, id: Hex): Market {
  const market = byId.get(id);
  if (market === undefined) throw new RangeError(`an event names market ${id}, which was never listed`);
  return market;
}
