import type { Logger } from 'pino';
import type { Address, ChainFill, Hex, Market } from '../../../core/types.js';
import type {
  AttributedFill,
  BalanceRow,
  ClaimRow,
  CustodyEvent,
  GenerationWrite,
  LedgerEntry,
  PostSeen,
  Queryable,
  ScannedBlock,
} from '../../../ledger/types.js';
import type { ChainEvent, RawLog } from '../../chain/logs.js';
import type { Scan, SeenEvent } from '../scan/scan.js';
import type { Attributor, DraftedPost, DraftedReset } from './attributor.js';
import {
  createClaimReplay,
  custodyEvent,
  readClaimContext,
  type ClaimContext,
  type ClaimReplay,
  type CustodyChainEvent,
} from './custody.js';
import { depositEntries, executionEntries } from './postings.js';
import { draftSettledOrders } from './settled-orders.js';
import { bookSuspense, suspenseFaults } from './suspense.js';

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

/** The part of a generation that follows from the events of a scan and from what was stored before it. */
type Books = Required<
  Pick<
    GenerationWrite,
    | 'custody'
    | 'posts'
    | 'seqResets'
    | 'fills'
    | 'settledOrders'
    | 'entries'
    | 'reservations'
    | 'claims'
    | 'netCapital'
    | 'snapshots'
    | 'suspense'
    | 'assignments'
  >
>;

interface BookDeps {
  q: Queryable;
  attributor: Attributor;
  operator: Address;
  /** Balance before the scan. */
  balanceUnits(account: BalanceRow['account'], token: Address): bigint;
  logger: Logger;
}

/**
 * Books the events of a scan: each fill to the orders behind its curve, custody to its makers, and what nothing stored explains to the
 * suspense account. `faults` say what is not explained. Reads only; the attributor remembers the fills once `commit` is called.
 */
export async function bookScan(
  { blocks, events }: Scan,
  { markets, listed }: Pick<DraftContext, 'markets' | 'listed'>,
  { q, attributor, operator, balanceUnits, logger }: BookDeps,
): Promise<{ books: Books; faults: { code: string; message: string }[]; commit(): void }> {
  const draft = draftGeneration(events, { markets, listed, blocks, claims: await readClaimContext(q, events) });
  const known = [...markets, ...listed];
  const run = attributor.begin(q);
  const posts: PostSeen[] = [];
  const fills: AttributedFill[] = [];
  for (const one of draft.curveEvents) {
    const market = known['post' in one ? one.post.market : 'fill' in one ? one.fill.market : one.reset.market];
    if (market === undefined) continue;
    if ('post' in one) posts.push(await run.land(market, one.post));
    else if ('fill' in one) fills.push(await run.attribute(market, one.fill));
    else await run.reset(one.reset);
  }
  const settled = draftSettledOrders(events, markets, operator);
  const { custody, reservations, claims, netCapital } = draft;
  const booked = await bookSuspense(
    q,
    {
      ...{ markets: known, fills, custody, unexplained: run.unexplained(), claims, operator, balanceUnits },
      entries: { custody: draft.entries, orders: settled.entries },
    },
    logger,
  );
  const { orders: settledOrders } = settled;
  return {
    books: {
      ...{ custody, posts, seqResets: run.resets(), settledOrders, reservations, claims, netCapital },
      ...{ snapshots: run.snapshots(), suspense: booked.items, assignments: booked.assignments },
      ...{ fills: [...booked.fills], entries: booked.entries },
    },
    faults: [...run.faults(), ...suspenseFaults(booked.items)],
    commit: () => run.commit(),
  };
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
