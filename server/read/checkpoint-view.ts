import { createHash } from 'node:crypto';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { formatUnits } from '../../core/amounts.js';
import { SLICE } from '../../core/merkle.js';
import type { Address, Hex, Market, Token } from '../../core/types.js';
import { lastCheckpoint, readChangedRows, readCheckpointState } from '../../ledger/settlements/checkpoint-log.js';
import { createCheckpointState, type CheckpointState } from '../../ledger/settlements/checkpoint-state.js';
import { readTx } from '../../ledger/db/db.js';
import { readMarkets } from '../../ledger/chain/ledger-log.js';
import { eachInSlices } from '../../ledger/db/lists.js';
import type { CheckpointHead, CheckpointRow, Db } from '../../ledger/types.js';
import type { Rendered } from '../rendered.js';

/** A row of the newest checkpoint with its proof. */
interface ProvenRow {
  row: CheckpointRow;
  token: Token;
  proof: Hex[];
}

/** The newest checkpoint, followed from the database. It is rendered once, from the changed rows, and served as bytes. */
export interface CheckpointView {
  /** JSON of the whole checkpoint, null before the first. */
  latest(): Rendered | null;
  /** Rows of one account with their proofs, and the checkpoint that they belong to; null before the first. */
  proofsOf(account: Address): Promise<{ head: CheckpointHead; rows: ProvenRow[] } | null>;
  /** Reads a newer checkpoint now, if there is one. */
  refresh(): Promise<void>;
  /** Calls `refresh` repeatedly until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
}

interface CheckpointViewDeps {
  db: Db;
  deploymentId: string;
  pollIntervalMs: number;
  logger: Pick<Logger, 'error'>;
}

/** Accounts with their JSON, in ascending order, changed account by account. */
interface Listing {
  sorted: Address[];
  json: Map<Address, string>;
}

interface Shown {
  head: CheckpointHead;
  state: CheckpointState;
  listing: Listing;
  tokens: ReadonlyMap<Address, Token>;
}

/** Creates a view that has read nothing yet. */
export function createCheckpointView(deps: CheckpointViewDeps): CheckpointView {
  let shown: Shown | null = null;
  let answer: Rendered | null = null;
  let running: Promise<void> = Promise.resolve();

  async function advance(): Promise<void> {
    const before = shown;
    const news = await readTx(deps.db, async (q) => {
      const head = await lastCheckpoint(q);
      if (head === null || head.checkpointSeq === before?.head.checkpointSeq) return null;
      const rows =
        before === null
          ? await readCheckpointState(q, head)
          : await readChangedRows(q, before.head.checkpointSeq, head.checkpointSeq);
      return { head, rows, markets: await readMarkets(q) };
    });
    if (news === null) return;
    // No proofs until the new checkpoint is complete: meanwhile the state is between two checkpoints.
    shown = null;
    const { head, markets } = news;
    const tokens = tokensOf(markets);
    const state = before?.state ?? createCheckpointState();
    const listing = before?.listing ?? { sorted: [], json: new Map<Address, string>() };
    const changed = await state.apply(news.rows);
    if (state.root() !== head.root) {
      throw new RangeError(`checkpoint ${head.checkpointSeq} has root ${head.root}, its rows give ${state.root()}`);
    }
    await updateListing(listing, state, tokens, changed);
    answer = await render(deps.deploymentId, head, listing, pairsOf(markets));
    shown = { head, state, listing, tokens };
  }

  function refresh(): Promise<void> {
    running = running.catch(() => undefined).then(advance);
    return running;
  }

  return {
    latest: () => answer,
    async proofsOf(account) {
      await running.catch(() => undefined);
      if (shown === null) return null;
      const { head, state, tokens } = shown;
      const rows = state
        .rowsOf(account)
        .sort((a, b) => (a.token < b.token ? -1 : 1))
        .map((row) => ({ row, token: tokenOf(tokens, row), proof: state.proofOf(row) }));
      return { head, rows };
    },
    refresh,
    async run(signal) {
      while (!signal.aborted) {
        await refresh().catch((error: unknown) => deps.logger.error({ err: error }, 'no checkpoint to show'));
        await delay(deps.pollIntervalMs, undefined, { signal }).catch(() => undefined);
      }
    },
  };
}

function tokensOf(markets: readonly Market[]): Map<Address, Token> {
  return new Map(markets.flatMap(({ base, quote }) => [base, quote]).map((token) => [token.address, token]));
}

function pairsOf(markets: readonly Market[]): Map<string, string> {
  return new Map(markets.map(({ index, pair }) => [`${index}`, pair]));
}

function tokenOf(tokens: ReadonlyMap<Address, Token>, row: CheckpointRow): Token {
  const token = tokens.get(row.token);
  if (token === undefined) throw new RangeError(`no listed pair trades ${row.token}`);
  return token;
}

/** Renders the accounts of changed rows again. Yields to the event loop after every slice. */
async function updateListing(
  { sorted, json }: Listing,
  state: CheckpointState,
  tokens: ReadonlyMap<Address, Token>,
  changed: readonly CheckpointRow[],
): Promise<void> {
  const accounts = new Set<Address>();
  await eachInSlices(changed, (row) => void accounts.add(row.account));
  await eachInSlices(accounts, (account) => {
    const rows = state.rowsOf(account).sort((a, b) => (a.token < b.token ? -1 : 1));
    const at = firstNotBelow(sorted, account);
    const isListed = sorted[at] === account;
    if (rows.length === 0) {
      if (isListed) sorted.splice(at, 1);
      json.delete(account);
    } else {
      if (!isListed) sorted.splice(at, 0, account);
      const balances = rows.map((row) => {
        const { symbol, decimals } = tokenOf(tokens, row);
        return {
          token: symbol,
          balance: formatUnits(row.balanceUnits, decimals),
          reserved: formatUnits(row.reservedUnits, decimals),
        };
      });
      json.set(account, JSON.stringify({ maker: account, balances }));
    }
  });
}

function firstNotBelow(sorted: readonly Address[], account: Address): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < account) low = middle + 1;
    else high = middle;
  }
  return low;
}

async function render(
  deploymentId: string,
  head: CheckpointHead,
  { sorted, json }: Listing,
  pairs: ReadonlyMap<string, string>,
): Promise<Rendered> {
  const start = {
    seq: head.checkpointSeq,
    deployment_id: deploymentId,
    generation: head.generation,
    block_number: head.blockNumber,
    block_hash: head.blockHash,
    timestamp_ms: head.timestampMs,
    root: head.root,
  };
  const acks = [...pairs].map(([index, pair]): [string, number] => [pair, head.ackFillSeqs[index] ?? 0]);
  // Hashed in slices, because the text may have many megabytes.
  const hash = createHash('sha256');
  const parts: Buffer[] = [];
  const push = (text: string): void => {
    const part = Buffer.from(text);
    hash.update(part);
    parts.push(part);
  };
  push(`${JSON.stringify(start).slice(0, -1)},"makers":[`);
  for (let from = 0; from < sorted.length; from += SLICE) {
    const accounts = sorted.slice(from, from + SLICE).map((account) => json.get(account)!);
    push(`${from === 0 ? '' : ','}${accounts.join(',')}`);
    await nextTurn();
  }
  push(`],"ack_fill_seqs":${JSON.stringify(Object.fromEntries(acks))}}`);
  return { body: Buffer.concat(parts), etag: `"${hash.digest('base64url').slice(0, 22)}"` };
}
