import type { Logger } from 'pino';
import { servedTokens } from '../../../core/operator-row.js';
import type { Address, Market } from '../../../core/types.js';
import { readTokenListings, type TokenListing } from '../../../ledger/chain/markets.js';
import { readOperatorState } from '../../../ledger/operator/operator-log.js';
import { readTokenFindings } from '../../../ledger/chain/token-findings.js';
import {
  UNATTRIBUTED,
  VAULT,
  type Account,
  type Db,
  type GenerationWrite,
  type LedgerEntry,
  type ListingRead,
  type TokenFinding,
} from '../../../ledger/types.js';
import type { RpcPool } from '../../chain/pool.js';
import type { Rpc } from '../../chain/rpc.js';
import { createEventProof, type ProveEvents } from '../scan/event-proof.js';
import { createHoldings, HOLDINGS_PACE, type HoldingsComparison, type HoldingsPace } from './holdings.js';
import type { Scan } from '../scan/scan.js';
import { createTokenChecks, TOKEN_PACE, type TokenPace } from './token-checks.js';

export interface TokenWatchDeps {
  db: Db;
  rpc: RpcPool;
  vault: Address;
  operator: Address;
  /** The contracts whose events a proof looks for. */
  addresses: readonly Address[];
  /** How a range of blocks is proven before a difference of holdings is believed; tests replace it. */
  proveEvents?: ProveEvents | undefined;
  holdingsPace?: HoldingsPace | undefined;
  tokenPace?: TokenPace | undefined;
  nowMs(): number;
  /** Measures intervals; absent: `nowMs` does. */
  monotonicMs?: (() => number) | undefined;
  logger: Logger;
}

/** A scan as it is about to be committed. */
interface TokenWatchQuestion {
  rpc: Rpc;
  scan: Scan;
  /** The last block before the scan. */
  lastBlock: number;
  /** Every market, those listed in the scan included. */
  markets: readonly Market[];
  /** What was read of tokens in this scan: they are looked at from the next one on. */
  read: readonly ListingRead[];
  entries: readonly LedgerEntry[];
  /** The balance after these entries. */
  balanceAfter(entries: readonly LedgerEntry[], account: Account, token: Address): bigint;
  /** Tokens are looked at near the head only: what they were long ago stops nothing now. */
  isNearHead: boolean;
}

/** The watcher's findings about tokens: whether they can be trusted, and why not. */
interface TokenWatch {
  /** Takes what is durable. */
  load(): Promise<void>;
  judge(question: TokenWatchQuestion): Promise<HoldingsComparison>;
  /** The newest judgement is durable. */
  committed(write: Pick<GenerationWrite, 'findings' | 'listings'>, listed: readonly Market[]): void;
  /** Findings in effect. */
  standing(): TokenFinding[];
}

/** One watcher's view of its tokens. Nothing in it is durable by itself. */
export function createTokenWatch(deps: TokenWatchDeps): TokenWatch {
  const { db, rpc, vault, addresses, nowMs, monotonicMs, logger } = deps;
  const holdings = createHoldings({
    rpc,
    vault,
    prove: deps.proveEvents ?? createEventProof({ db, rpc, addresses, nowMs, logger }),
    pace: deps.holdingsPace ?? HOLDINGS_PACE,
    nowMs,
    logger,
  });
  const pace = deps.tokenPace ?? TOKEN_PACE;
  const checks = createTokenChecks({ rpc, vault, recipient: deps.operator, pace, nowMs, monotonicMs, logger });
  let listings = new Map<Address, TokenListing>();
  let findings = new Map<string, TokenFinding>();

  function take(found: readonly TokenFinding[]): void {
    for (const one of found) findings.set(`${one.token}:${one.cause}`, one);
  }

  return {
    async load() {
      listings = new Map((await readTokenListings(db.knex)).map((one) => [one.token, one]));
      const stored = await readTokenFindings(db.knex);
      holdings.load(stored);
      checks.load(stored);
      findings = new Map();
      take(stored);
    },
    async judge({ scan, lastBlock, markets, read, entries, balanceAfter, isNearHead, ...question }) {
      const tokens = servedTokens(markets);
      const block = scan.blocks[scan.blocks.length - 1]!;
      const held = (after: readonly LedgerEntry[], token: Address): bigint => -balanceAfter(after, VAULT, token);
      const compared = await holdings.compare({
        rpc: question.rpc,
        scan,
        isNearHead,
        tokens: tokens.map(({ address }) => address),
        block,
        lastBlock,
        beforeUnits: (token) => held([], token),
        afterUnits: (token) => held(entries, token),
        unattributedUnits: (token) => balanceAfter(entries, UNATTRIBUTED, token),
        async delisted() {
          const { delisted } = await readOperatorState(db.knex);
          const traded = servedTokens(markets.filter(({ index }) => !delisted.has(index))).map(
            ({ address }) => address,
          );
          return new Set(tokens.map(({ address }) => address).filter((token) => !traded.includes(token)));
        },
      });
      if (!isNearHead || read.length > 0) return compared;
      const { reread } = await readOperatorState(db.knex);
      const looked = await checks.look({
        tokens,
        block,
        listing: (token) => listings.get(token),
        reread: (token) => reread.get(token),
        vaultUnits: (token) => held(entries, token),
      });
      return { ...compared, findings: [...compared.findings, ...looked] };
    },
    committed({ findings: found = [], listings: read = [] }, listed) {
      holdings.committed(found);
      checks.committed(found);
      take(found);
      for (const { market, readBlock, ...said } of read) {
        const named = listed.find(({ index }) => index === market);
        for (const side of ['base', 'quote'] as const) {
          const token = named?.[side].address;
          if (token !== undefined && !listings.has(token)) listings.set(token, { token, said: said[side], readBlock });
        }
      }
    },
    standing: () => [...findings.values()].filter(({ state }) => state !== 'clear'),
  };
}
