/** The poster: the keeper's own view and rounds over the world's logs, and what it signed and nothing replaced yet. */
import { maxBig } from '../../core/amounts.js';
import type { PostRecord } from '../../core/curve/post.js';
import { isArmedWithin } from '../../core/cut.js';
import { operatorStandings, servedTokens, type OperatorFloors } from '../../core/operator-row.js';
import type { Address, OrderLogRow } from '../../core/types.js';
import { partialOf } from '../../keepers/poster/gas.js';
import { BELOW_FLOOR, prepareDue, type Due } from '../../keepers/poster/prepare.js';
import type { PosterView } from '../../keepers/poster/view.js';
import type { Follower } from '../../ledger/orders/follower.js';
import type { OperatorState } from '../../ledger/operator/operator-log.js';
import type { GenerationRow } from '../../ledger/types.js';
import type { Count, WorldChain } from './chain.js';
import type { WorldGateway } from './gateway.js';
import type { WorldLedger } from './ledger.js';
import { OPERATOR, type Setting } from './setting.js';

/** Short enough that curves are touched and expire within a strategy. */
const CURVE_TTL_SEC = 12;
const TOUCH_BEFORE_SEC = 6;
/** What is built on a live curve must land before it dies. */
const AMEND_MARGIN_SEC = 3;
/** As operators run it. */
const SMALL_CHANGE_ORDERS = 10n;
const SMALL_CHANGE_INTERVAL_MS = 6_000;

interface WorldPoster {
  /** Takes note of a row of the order log. */
  follow(row: OrderLogRow): void;
  /** Whether small changes wait. */
  pace(on: boolean): void;
  /** What the operator's row should have of a token; null for no floor. */
  floor(token: Address, amount: string | null): void;
  /** A round; true when something was signed. */
  round(head: GenerationRow, generation: number, amend: boolean): boolean;
  /** The signed posts that may get into the block, oldest first; one of them takes the place of all. */
  signed(): readonly (readonly PostRecord[])[];
  used(): void;
}

interface WorldPosterDeps {
  setting: Setting;
  chain: WorldChain;
  ledger: WorldLedger;
  gateway: WorldGateway;
  operator: OperatorState;
  nowMs: () => number;
  count: Count;
}

export function createWorldPoster({
  setting,
  chain,
  ledger,
  gateway,
  operator,
  nowMs,
  count,
}: WorldPosterDeps): WorldPoster {
  const { markets } = setting;
  /** Newest order row that carried out a scheduled cancel, by maker. */
  const triggered = new Map<Address, number>();
  const floors: Record<string, string> = {};
  let isPaced = true;
  let pool: PostRecord[][] = [];

  function shortTokens(): Set<Address> {
    const standings = operatorStandings(servedTokens(markets), floors satisfies OperatorFloors, (token) =>
      ledger.rowOf(OPERATOR, token),
    );
    return new Set(standings.filter((one) => one.stopsPosting).map(({ token }) => token.address));
  }

  function viewOf(head: GenerationRow): PosterView {
    const timeMs = nowMs();
    const armed = gateway.book.armed();
    const near = [...armed].filter(([, armedMs]) => isArmedWithin(armedMs, timeMs)).map(([maker]) => maker);
    return {
      cut: { orderSeq: gateway.lastOrderSeq(), generation: head.generation, timeMs },
      head,
      operator,
      excluded: new Set([...operator.suspended, ...near]),
      armed: (maker) => armed.get(maker) ?? null,
      triggeredSeq: (maker) => triggered.get(maker) ?? 0,
      shortTokens: shortTokens(),
      quarantined: new Set(),
      markets: markets.map((market) => {
        const last = ledger.last(market.index);
        const landedSeq = ledger.landedSeq(market.index);
        if (last === undefined) return { market, last: null, landedSeq, taken: new Set(), older: [] };
        const { publication, snapshot } = last;
        const { seq, deadlineSec, blockNumber } = publication;
        return {
          market,
          landedSeq,
          taken: new Set(),
          older: ledger.executable(market.index, head.blockTimestampMs / 1_000),
          last: { seq, snapshot, deadlineSec, blockNumber, signed: true, landed: landedSeq === seq, publication },
        };
      }),
      availableUnits: (maker, token) => maxBig(ledger.rowOf(maker, token) - ledger.reservedOf(maker, token), 0n),
    };
  }

  /** A full post as a partial one over the live curve, where the chain would take it. */
  function amended(due: Due, view: PosterView): Due {
    const last = view.markets[due.market.index]?.last;
    const { record, publication } = due;
    if (record.kind !== 'full' || !last?.landed || last.deadlineSec - chain.timeSec() < AMEND_MARGIN_SEC) return due;
    const partial = partialOf(record, last.publication);
    return { ...due, record: partial, publication: { ...publication, kind: 'partial', baseSeq: partial.baseSeq } };
  }

  function prepared(due: Due, txKey: string): PostRecord {
    const { publication, snapshot, record } = due;
    ledger.prepared({ publication: { ...publication, txKey }, snapshot });
    if (publication.trims.length > 0) count('trimmed');
    if (publication.excluded.length > 0) count('maker left out');
    if (due.leftOut.some(({ lots }) => lots > 0n)) count('depth left out');
    return record;
  }

  return {
    follow({ effects, maker, orderSeq }) {
      if (effects.some(({ type }) => type === 'trigger')) triggered.set(maker, orderSeq);
    },
    pace: (on) => void (isPaced = on),
    floor(token, amount) {
      if (amount === null) delete floors[token];
      else floors[token] = amount;
    },
    round(head, generation, amend) {
      const view = viewOf(head);
      if (view.markets.some(({ older }) => older.length > 1)) count('several executable curves');
      const follower = { book: gateway.book, progress: ledger.progress } as Follower;
      const { due, crossing, skipped } = prepareDue(view, follower, {
        curveTtlSec: CURVE_TTL_SEC,
        maxTtlSec: new Map(),
        touchBeforeSec: TOUCH_BEFORE_SEC,
        small: {
          quoteUnits: (market) => (isPaced ? setting.minOrderUnits(market) * SMALL_CHANGE_ORDERS : 0n),
          intervalMs: SMALL_CHANGE_INTERVAL_MS,
        },
        usedSeq: () => 0,
        knots: setting.knots,
        preparedMs: nowMs(),
      });
      if (crossing.some(({ orders }) => orders > 0)) count('crossing left out');
      if (skipped.some(({ reason }) => reason === 'small_change')) count('small change waits');
      if (skipped.some(({ reason }) => reason === BELOW_FLOOR)) count('posting stopped');
      if (due.length === 0) return false;
      const txKey = `post:${generation}`;
      pool.push(due.map((one) => prepared(amend ? amended(one, view) : one, txKey)));
      if (pool.length > 1) count('post replaced before it landed');
      return true;
    },
    signed: () => pool,
    // They all have the same nonce.
    used: () => void (pool = []),
  };
}
