import { toSafeInt } from '../../core/amounts.js';
import { nameMarkets } from '../../core/token-names.js';
import { servedTokens } from '../../core/operator-row.js';
import type { Address, Market } from '../../core/types.js';
import { readBalances } from '../../ledger/chain/balances.js';
import { fromColumn } from '../../ledger/db/columns.js';
import { toChainFill } from '../../ledger/chain/fills.js';
import { landedSeq, readPostSeen, readPublication } from '../../ledger/publications/publication-log.js';
import { readPosted } from '../../ledger/publications/raises.js';
import { differencesFromChain } from '../../ledger/publications/rebuild.js';
import { isSuspendedCurve } from '../../ledger/chain/suspense.js';
import { toSettledOrder } from '../../ledger/chain/settled-orders.js';
import { standingFindings } from '../../ledger/chain/token-findings.js';
import { VAULT } from '../../ledger/types.js';
import { ICurveBook__factory, ICustodian__factory } from '../../typechain-types/index.js';
import type { ChainEvent } from '../chain/logs.js';
import type { RpcPool } from '../chain/pool.js';
import { toQuantity, type Rpc } from '../chain/rpc.js';
import { draftGeneration } from '../watcher/derive/derive.js';
import { NO_CLAIMS } from '../watcher/derive/custody.js';
import { draftSettledOrders } from '../watcher/derive/settled-orders.js';
import { proveRange } from '../watcher/scan/prove-range.js';
import type { Scan } from '../watcher/scan/scan.js';
import { readMarket } from '../watcher/tokens/listing.js';
import { readBalancesAt } from '../watcher/tokens/tokens.js';
import { readRows, type RowFilter } from '../../ledger/db/rows.js';
import { readListing } from '../../ledger/views/audit.js';
import { VerifyError, same, type Verification } from './verification.js';

const CHECK = 'chain';
/** Blocks read at a time. */
const SPAN = 200;

const curveBook = ICurveBook__factory.createInterface();
const custodian = ICustodian__factory.createInterface();

/**
 * Reads every scanned block again, proves it as a scan does, and compares its hash and its events with what is stored; then, at the last scanned block, the vault's
 * holdings, the claims and the live curves. Returns the number of events.
 */
export async function verifyChain(verification: Verification, rpc: RpcPool): Promise<number> {
  const { q, head, deploymentBlock, contracts, onProgress } = verification;
  const addresses = [contracts.custodian, contracts.curveBook, contracts.entrypoint];
  if (contracts.orderSettler !== undefined) addresses.push(contracts.orderSettler);
  const total = head.toBlock - deploymentBlock + 1;
  let events = 0;
  for (let from = deploymentBlock; from <= head.toBlock; from += SPAN) {
    const to = Math.min(from + SPAN - 1, head.toBlock);
    const scan = await proveRange(rpc, { from, to, addresses, prove: 'events' });
    const stored = await readRows(q, 'blocks', { between: ['number', from, to], orderBy: ['number'] });
    same(
      CHECK,
      `blocks ${from} to ${to}`,
      stored.map((row) => [row.number, row.hash, row.parent_hash, row.timestamp_sec]),
      scan.blocks.map((one) => [one.number, one.hash, one.parentHash, one.timestampSec]),
    );
    events += scan.events.length;
    await compareEvents(verification, rpc, scan, from, to);
    onProgress({ check: CHECK, done: to - deploymentBlock + 1, total });
  }
  await compareHoldings(verification, rpc);
  await compareClaims(verification, rpc);
  await compareCurves(verification, rpc);
  return events;
}

/** The events as the watcher reads them, and the rows, in chain order. */
async function compareEvents(
  { q, markets, operator, head, warn }: Verification,
  rpc: Rpc,
  scan: Scan,
  from: number,
  to: number,
): Promise<void> {
  const draft = draftGeneration(scan.events, { markets, listed: [], blocks: scan.blocks, claims: NO_CLAIMS });
  const inChain = {
    between: ['block_number', from, to],
    orderBy: ['block_number', 'log_index'],
  } as const satisfies RowFilter<'fills'>;
  const custody = await readRows(q, 'custody_events', inChain);
  same(
    CHECK,
    `the deposits and withdrawals of blocks ${from} to ${to}`,
    custody.map((row) => [
      ...[row.kind, row.maker, row.token, row.amount_units, row.basis, row.ready_at_sec],
      ...[row.tx_hash, row.log_index, row.block_number],
    ]),
    draft.custody.map((one) => [
      ...[one.kind, one.maker, one.token, `${one.amountUnits}`, one.basis?.toString() ?? null, one.readyAtSec],
      ...[one.txHash, one.logIndex, one.blockNumber],
    ]),
  );
  const fills = (await readRows(q, 'fills', inChain)).map(toChainFill);
  same(CHECK, `the fills of blocks ${from} to ${to}`, fills, draft.fills);
  const posts = await readRows(q, 'posts_seen', { ...inChain, orderBy: ['block_number', 'market', 'seq', 'tx_hash'] });
  const seen = [...draft.posts].sort(
    (a, b) => a.blockNumber - b.blockNumber || a.market - b.market || a.seq - b.seq || (a.txHash < b.txHash ? -1 : 1),
  );
  same(
    CHECK,
    `the curves of blocks ${from} to ${to}`,
    posts.map((row) => [
      ...[row.market, row.seq, row.base_seq, row.deadline_sec, row.words_hash, row.snap_ask_units, row.snap_bid_units],
      ...[row.block_number, row.block_timestamp_sec, row.tx_hash],
    ]),
    seen.map((one) => [
      ...[one.market, one.seq, one.baseSeq, one.deadlineSec, one.wordsHash, one.snapAskUnits, one.snapBidUnits],
      ...[one.blockNumber, one.blockTimestampSec, one.txHash],
    ]),
  );
  const resets = await readRows(q, 'seq_resets', inChain);
  same(
    CHECK,
    `the numbers given back in blocks ${from} to ${to}`,
    resets.map((row) => [row.market, row.seq, row.block_number, row.log_index, row.tx_hash]),
    draft.resets.map((one) => [one.market, one.seq, one.blockNumber, one.logIndex, one.txHash]),
  );
  const orders = (await readRows(q, 'settled_orders', inChain)).map(toSettledOrder);
  const filled = draftSettledOrders(scan.events, markets, operator).orders;
  same(CHECK, `the signed orders filled in blocks ${from} to ${to}`, orders, filled);
  for (const { event, log } of scan.events) {
    if (event.type !== 'listed') continue;
    const stored = markets[event.index];
    if (stored === undefined)
      throw new VerifyError(CHECK, `market ${event.index} is listed and the ledger has no row of it`);
    await compareListing({ q, markets, head, warn }, rpc, event, log.blockNumber, stored);
  }
}

/**
 * Compares a market with its event, and its tokens' metadata with the chain if both the ledger and this endpoint read them at the block of
 * the listing. Otherwise a token may have changed since, which is no fault of the ledger.
 */
async function compareListing(
  { q, markets, head, warn }: Pick<Verification, 'q' | 'markets' | 'head' | 'warn'>,
  rpc: Rpc,
  event: Extract<ChainEvent, { type: 'listed' }>,
  listedBlock: number,
  stored: Market,
): Promise<void> {
  const { market, read } = await readMarket(rpc, event, { listedBlock, laterBlock: head.toBlock });
  const named = nameMarkets([...markets.slice(0, event.index), market])[event.index]!;
  const what = `market ${event.index}`;
  const ofChain = ({ index, id, base, quote, lotUnits, tickLotUnits, maxTtlSec }: Market): unknown[] => [
    ...[index, id, base.address, quote.address, lotUnits, tickLotUnits, maxTtlSec],
  ];
  same(CHECK, what, ofChain(stored), ofChain(named));
  const row = (await readListing(q, event.index))!;
  if (row.read_block !== null && row.read_block !== row.to_block)
    same(CHECK, `the block at which the tokens of ${what} were asked`, row.read_block, listedBlock);
  if (row.read_block === listedBlock && read.readBlock === listedBlock) {
    const said = [JSON.stringify(read.base), JSON.stringify(read.quote)];
    same(CHECK, `what the tokens of ${what} said`, [row.base_said, row.quote_said], said);
    return same(CHECK, what, stored, named);
  }
  if (JSON.stringify(tokensOf(stored)) === JSON.stringify(tokensOf(named))) return undefined;
  warn(
    `${what}, ${stored.pair}: its tokens say ${describeTokens(named)} at block ${read.readBlock}, and the ledger has ${describeTokens(stored)}: changed since`,
  );
}

const tokensOf = ({ base, quote, pair, tickSize, lotSize }: Market): unknown => ({
  base,
  quote,
  pair,
  tickSize,
  lotSize,
});
const describeTokens = ({ base, quote }: Market): string =>
  `${base.symbol} with ${base.decimals} and ${quote.symbol} with ${quote.decimals} decimals`;

/**
 * For a token with a finding, the ledger keeps the amount last agreed on; a different balance on the chain is a warning, not a difference.
 */
async function compareHoldings({ q, head, contracts, markets, warn }: Verification, rpc: Rpc): Promise<void> {
  const tokens = servedTokens(markets);
  const found = new Map(
    (await standingFindings(q)).filter(({ cause }) => cause === 'holdings').map((one) => [one.token, one]),
  );
  const block = { number: head.toBlock, hash: head.blockHash };
  const addresses = tokens.map(({ address }) => address);
  const held = await readBalancesAt(rpc, contracts.custodian, addresses, block, new Set(found.keys()));
  const rows = await readBalances(q);
  for (const { address: token } of tokens) {
    const owed = rows
      .filter((row) => row.token === token && row.account !== VAULT)
      .reduce((sum, row) => sum + row.balanceUnits, 0n);
    const said = held.get(token) ?? 'no_answer';
    const finding = found.get(token);
    if (finding !== undefined && said !== owed)
      warn(`${token} is ${finding.state}: ${finding.code}; all rows have ${owed}, the vault is said to hold ${said}`);
    else if (said !== owed && (typeof said === 'bigint' || owed !== 0n))
      same(CHECK, `what all rows have together of ${token}`, owed, said);
  }
}

async function compareClaims({ q, head, contracts }: Verification, rpc: Rpc): Promise<void> {
  const rows = await readRows(q, 'claims', { orderBy: ['maker', 'token'] });
  for (let at = 0; at < rows.length; at += SPAN) {
    const part = rows.slice(at, at + SPAN);
    const calls = part.flatMap(({ maker, token }) => [
      custodian.encodeFunctionData('claim', [maker, token]),
      custodian.encodeFunctionData('claimBasis', [maker, token]),
    ]);
    const answers = await callAll(rpc, contracts.custodian, calls, head.toBlock);
    part.forEach((row, i) => {
      const [amount] = custodian.decodeFunctionResult('claim', answers[2 * i]!);
      const [basis] = custodian.decodeFunctionResult('claimBasis', answers[2 * i + 1]!);
      const stored = [fromColumn(row.claim_units), fromColumn(row.basis)];
      same(CHECK, `the claim of ${row.maker} in ${row.token}`, stored, [amount, basis]);
    });
  }
}

/**
 * The words that takers trade against, as the chain stores them, are those of the newest publication that was seen. Of a curve in suspense,
 * which no publication here explains, they are those that were seen.
 */
async function compareCurves({ q, head, contracts, markets }: Verification, rpc: Rpc): Promise<void> {
  for (const market of markets) {
    const calls = [
      curveBook.encodeFunctionData('marketState', [market.id]),
      curveBook.encodeFunctionData('curveWords', [market.id]),
    ];
    const [state, words] = await callAll(rpc, contracts.curveBook, calls, head.toBlock);
    const [live] = curveBook.decodeFunctionResult('marketState', state!);
    const [askWords, bidWords] = curveBook.decodeFunctionResult('curveWords', words!);
    const chain = live as Record<'seq' | 'deadline' | 'snapAsk' | 'snapBid' | 'fillSeq', bigint>;
    const seq = toSafeInt(chain.seq);
    same(CHECK, `the number of ${market.pair}`, await landedSeq(q, market.index), seq);
    // Before the first curve, and after numbers were given back, nothing is live.
    const seen = await readPostSeen(q, market.index);
    if (seen === null) {
      same(CHECK, `the deadline of ${market.pair}, where no curve is live`, 0n, chain.deadline);
      continue;
    }
    const posted = await readPosted(q, market.index, seq);
    if (posted === null) throw new VerifyError(CHECK, `curve ${seq} of ${market.pair} was never seen on-chain`);
    const expected = (await isSuspendedCurve(q, market.index, seq, seen.txHash))
      ? { seq, deadlineSec: seen.deadlineSec, wordsHash: posted.wordsHash }
      : await readPublication(q, market.index, seq);
    if (expected === null) throw new VerifyError(CHECK, `curve ${seq} of ${market.pair} was never prepared`);
    const [difference] = differencesFromChain(expected, posted, {
      seq,
      deadlineSec: toSafeInt(chain.deadline),
      snapAskUnits: chain.snapAsk,
      snapBidUnits: chain.snapBid,
      askWords: [...(askWords as bigint[])],
      bidWords: [...(bidWords as bigint[])],
    });
    if (difference !== undefined) throw new VerifyError(CHECK, `curve ${seq} of ${market.pair}: ${difference}`);
  }
}

async function callAll(rpc: Rpc, to: Address, calls: readonly string[], block: number): Promise<string[]> {
  const answers = await rpc.batch(
    calls.map((data) => ({ method: 'eth_call', params: [{ to, data }, toQuantity(block)] })),
  );
  return answers as string[];
}
