import type { Logger } from 'pino';
import { ENOUGH_VOTES, isRobbed, judgeHoldings, type HoldingsVerdict, type Said } from '../../../core/holdings.js';
import type { Address } from '../../../core/types.js';
import type { LedgerEntry, ScannedBlock, TokenFinding } from '../../../ledger/types.js';
import type { RpcPool } from '../../chain/pool.js';
import type { Rpc } from '../../chain/rpc.js';
import type { ProveEvents } from '../scan/event-proof.js';
import { surplusEntries, withdrawnSurplusEntries } from '../derive/postings.js';
import { createProvenBlocks } from './proven-blocks.js';
import { OtherBlockError, readBalancesAt } from './tokens.js';
import type { Scan } from '../scan/scan.js';
import { createTransferSums } from './transfers.js';

/** Intervals for comparing the vault with the ledger where they differ. Seconds of chain time. */
export interface HoldingsPace {
  /**
   * A surplus of a token is booked at most so often: sending a unit per block then causes one booking per interval, and the proof of each
   * block.
   */
  surplusIntervalSec: number;
  /** With a single endpoint, or one of two that answers alone, a difference is believed when it has lasted as long, look after look. */
  laterLookSec: number;
  /** A finding ends when nothing was wrong for so long; a token that is right in every other block keeps its finding. */
  calmSec: number;
  /** Tokens of which the endpoint of the scan says what the ledger does are asked of others, too, at most so often: it can hide a loss for no longer. */
  othersLookSec: number;
}

export const HOLDINGS_PACE: HoldingsPace = { surplusIntervalSec: 60, laterLookSec: 30, calmSec: 60, othersLookSec: 60 };

/** A token that does not answer, or whose balance falls by itself, is asked at most so often. */
const RESTING_INTERVAL_SEC = 10;
const RESTING: readonly string[] = ['no_answer', 'bad_answer', 'balance_decreased'];
interface HoldingsDeps {
  rpc: RpcPool;
  vault: Address;
  prove: ProveEvents;
  pace: HoldingsPace;
  nowMs(): number;
  logger: Logger;
}

/** What a scan is to be compared with. */
interface HoldingsQuestion {
  /** The endpoint of the scan, and what it said. */
  rpc: Rpc;
  scan: Scan;
  tokens: readonly Address[];
  block: ScannedBlock;
  /** Others have the state of the block, too; most keep only that of new ones. */
  isNearHead: boolean;
  /** The block before the scan, and what the ledger says that the vault held then and holds now. */
  lastBlock: number;
  beforeUnits(token: Address): bigint;
  afterUnits(token: Address): bigint;
  /** What belongs to nobody. */
  unattributedUnits(token: Address): bigint;
  /** Tokens that no market trades any more. */
  delisted(): Promise<ReadonlySet<Address>>;
}

export interface HoldingsComparison {
  /** Surpluses to book, and what is taken back of booked ones. */
  entries: LedgerEntry[];
  /** What the vault holds of the tokens that are agreed on, or are missing some. */
  held: { token: Address; units: bigint }[];
  halt: { code: string; message: string } | null;
  findings: TokenFinding[];
  /** What the vault is known to hold beyond all rows. */
  differences: { token: Address; differenceUnits: bigint }[];
}

interface Holdings {
  /** Takes what is durable; what only a run of looks tells begins anew. */
  load(findings: readonly TokenFinding[]): void;
  compare(question: HoldingsQuestion): Promise<HoldingsComparison>;
  /** The newest comparison is durable, with these findings. */
  committed(findings: readonly TokenFinding[]): void;
}

/** A difference that every look has shown since. */
interface Lasting {
  sinceSec: number;
  /** The least of all looks, signed. */
  differenceUnits: bigint;
}

/** Where ledger and vault were the same. */
interface Agreement {
  blockNumber: number;
  units: bigint;
}

type Found = Pick<TokenFinding, 'state' | 'code' | 'message' | 'differenceUnits'>;

/**
 * Compares what the vault holds with what the ledger explains, and decides what to do about a difference: book it, wait and see, put the
 * token into quarantine, or, where transfers took of every token, halt. One endpoint's answer does not suffice: a second one must report
 * the same for the same block, or a single one must keep reporting it; and the blocks since the last agreement must be proven to contain no
 * event that the ledger lacks. Neither does it suffice for the end of a finding, nor to make one of a quarantine that is less.
 */
export function createHoldings(deps: HoldingsDeps): Holdings {
  const { rpc, vault, pace, logger } = deps;
  let findings = new Map<Address, TokenFinding>();
  const lasting = new Map<Address, Lasting>();
  const calmSinceSec = new Map<Address, number>();
  const bookedSec = new Map<Address, number>();
  /** Of the newest comparison, which may never become durable. */
  const booking = new Map<Address, number>();
  const askedSec = new Map<Address, number>();
  /** When all tokens were last asked of others. */
  let othersAskedSec = 0;
  /** Where as many endpoints as it takes to end a finding last said what the ledger does. */
  const confirmed = new Map<Address, Agreement>();
  const proven = createProvenBlocks(deps);
  /** What transfers took out of the vault, as of the newest comparison. */
  const taken = new Map<Address, bigint>();
  /** Differences that the token itself caused, until they change. */
  const ownDoing = new Map<Address, bigint>();
  const transfers = createTransferSums({ endpoints: () => rpc.ranked(), vault });

  const standing = (token: Address): TokenFinding | undefined => {
    const found = findings.get(token);
    return found?.state === 'clear' ? undefined : found;
  };

  async function compare(question: HoldingsQuestion): Promise<HoldingsComparison> {
    const { block } = question;
    booking.clear();
    taken.clear();
    proven.begin();
    // Those that may rest may spoil a common request, too.
    const silent = new Set(question.tokens.filter((token) => RESTING.includes(standing(token)?.code ?? '')));
    const asked = question.tokens.filter(
      (token) => !silent.has(token) || block.timestampSec - (askedSec.get(token) ?? 0) >= RESTING_INTERVAL_SEC,
    );
    for (const token of asked) if (silent.has(token)) askedSec.set(token, block.timestampSec);
    const first = await readBalancesAt(question.rpc, vault, asked, block, silent);
    const differenceOf = (token: Address): bigint | null => {
      const said = first.get(token);
      return typeof said === 'bigint' ? said - question.afterUnits(token) : null;
    };
    const waits = (token: Address): boolean =>
      (differenceOf(token) ?? 0n) > 0n && !isDue(token, block) && standing(token)?.state !== 'quarantined';
    const suspects = asked.filter((token) => {
      const difference = differenceOf(token);
      if (difference === null) return true;
      if (difference === 0n) return standing(token) !== undefined;
      return difference !== ownDoing.get(token) && !waits(token);
    });
    const isOthersTurn = question.isNearHead && block.timestampSec - othersAskedSec >= pace.othersLookSec;
    if (isOthersTurn) othersAskedSec = block.timestampSec;
    const doubted = isOthersTurn ? asked.filter((token) => !waits(token)) : suspects;
    const votes = await readVotes(doubted, suspects.length === 0, block, first, silent);
    const comparison: HoldingsComparison = { entries: [], held: [], halt: null, findings: [], differences: [] };
    for (const token of asked) {
      if (waits(token)) {
        wait(token, differenceOf(token)!, question, comparison);
        continue;
      }
      const heard = votes.get(token);
      const isUnheard = heard === undefined || (heard.length === 0 && !suspects.includes(token));
      const said = isUnheard ? [first.get(token) ?? 'no_answer'] : heard;
      const expected = question.afterUnits(token);
      // Of two endpoints, one that does not answer leaves the other one alone; of more, silence makes a difference wait.
      const isAlone = said.length === 1 && rpc.endpoints.length <= (isUnheard ? 1 : 2);
      const isEnough = isAlone || said.filter((units) => units === expected).length >= ENOUGH_VOTES;
      await judge(token, judgeHoldings(said, expected), question, comparison, { isAlone, isEnough });
    }
    await haltIfRobbed(question, comparison);
    return comparison;
  }

  /** Halts the ledger when the shortfall concerns more than the markets of the short tokens (`isRobbed`). */
  async function haltIfRobbed(question: HoldingsQuestion, into: HoldingsComparison): Promise<void> {
    if (taken.size === 0) return;
    const delisted = await question.delisted();
    const newest = new Map(into.findings.map(({ token, state }) => [token, state]));
    const traded = question.tokens
      .filter((token) => !delisted.has(token))
      .map((token) => ({
        expectedUnits: question.afterUnits(token),
        isShort: taken.has(token),
        isQuarantined: (newest.get(token) ?? standing(token)?.state) === 'quarantined',
      }));
    if (!isRobbed(traded)) return;
    const robbed = [...taken].filter(([token]) => !delisted.has(token));
    const list = robbed.map(([token, units]) => `${units} units of ${token}`).join(', ');
    into.halt ??= { code: 'shortfall', message: `the vault lacks ${list} at block ${question.block.number}` };
    for (const [token, units] of robbed) into.held.push({ token, units: question.afterUnits(token) - units });
  }

  /**
   * What each endpoint says of these tokens, one vote each; the only endpoint has voted already. Where nothing is in doubt, an endpoint that does not
   * have the block yet is held to nothing.
   */
  async function readVotes(
    tokens: readonly Address[],
    isRoutine: boolean,
    block: ScannedBlock,
    first: ReadonlyMap<Address, Said>,
    silent: ReadonlySet<Address>,
  ): Promise<Map<Address, Said[]>> {
    if (tokens.length === 0 || rpc.endpoints.length === 1)
      return new Map(tokens.map((token) => [token, [first.get(token) ?? 'no_answer']]));
    // An endpoint that does not answer must not hold up the scan, and with it every market, for as long as a token is in doubt.
    const ask = (endpoint: Rpc): Promise<Map<Address, Said>> =>
      readBalancesAt(endpoint, vault, tokens, block, silent).catch((error: unknown) => {
        if (isRoutine && error instanceof OtherBlockError) return new Map();
        throw error;
      });
    const surveyed = await rpc.survey(ask, ENOUGH_VOTES, true, false).catch(() => []);
    const votes = new Map<Address, Said[]>();
    for (const token of tokens) {
      const said = surveyed.flatMap(({ answer }) => answer.get(token) ?? []);
      votes.set(token, said);
      for (const { endpoint, answer } of surveyed) blame(endpoint, token, answer.get(token) ?? null, said, block);
    }
    return votes;
  }

  /** Penalises an endpoint that most others contradict, or that has no balance where others have one. */
  function blame(
    endpoint: RpcPool['endpoints'][number],
    token: Address,
    vote: Said | null,
    votes: readonly Said[],
    block: ScannedBlock,
  ): void {
    if (vote === null) return;
    const others = votes.filter((one) => one !== vote);
    const isLonely =
      votes.filter((one) => one === vote).length === 1 && others.length > 1 && new Set(others).size === 1;
    const isMute = typeof vote !== 'bigint' && others.some((one) => typeof one === 'bigint');
    if (isLonely || isMute)
      rpc.penalize(`it says that the vault holds ${vote} of ${token} at block ${block.number}`, endpoint);
  }

  async function judge(
    token: Address,
    verdict: HoldingsVerdict,
    question: HoldingsQuestion,
    into: HoldingsComparison,
    { isAlone, isEnough }: { isAlone: boolean; isEnough: boolean },
  ): Promise<void> {
    const { block } = question;
    const expected = question.afterUnits(token);
    const before = standing(token);
    const agree = (): void => {
      into.held.push({ token, units: expected });
      into.differences.push({ token, differenceUnits: 0n });
    };
    if (verdict.kind === 'agreed') {
      lasting.delete(token);
      // Too few say so: it counts neither for the end of a finding nor against it.
      if (before !== undefined && !isEnough) return stay(before, into);
      if (isEnough) confirmed.set(token, { blockNumber: block.number, units: expected });
      ownDoing.delete(token);
      agree();
      return calm(token, question, into);
    }
    calmSinceSec.delete(token);
    if (verdict.kind === 'silent') {
      lasting.delete(token);
      const message =
        verdict.code === 'no_answer'
          ? 'it does not say what the vault holds of it'
          : 'what it says that the vault holds of it is no balance';
      return note(token, { state: 'quarantined', code: verdict.code, message, differenceUnits: null }, question, into);
    }
    if (verdict.kind === 'contradicted') {
      if (before?.state === 'quarantined') return stay(before, into);
      agree();
      const message = 'endpoints do not agree on what the vault holds of it, one of them with the ledger';
      const found = { state: 'doubt', code: 'endpoints_disagree', message, differenceUnits: 0n } as const;
      return note(token, found, question, into);
    }
    const known = ownDoing.get(token);
    if (known !== undefined && known === verdict.differenceUnits) {
      into.differences.push({ token, differenceUnits: known });
      return undefined;
    }
    const believed = verdict.kind === 'different' ? verdict.differenceUnits : outlasted(token, verdict, block, isAlone);
    if (believed === null) {
      const isLess = verdict.differenceUnits > 0n || before?.code === 'shortfall';
      if (before?.state === 'quarantined' && isLess) return stay(before, into);
      return doubt(token, verdict.differenceUnits, question, into);
    }
    if (believed > 0n) return surplus(token, believed, question, into);
    return shortage(token, -believed, question, into);
  }

  /** Too few endpoints say otherwise for a finding to become another one. */
  function stay({ token, differenceUnits }: TokenFinding, into: HoldingsComparison): void {
    into.differences.push({ token, differenceUnits: differenceUnits ?? 0n });
  }

  /** The difference that the only endpoint has reported for long enough; null before that, or with several endpoints. */
  function outlasted(
    token: Address,
    { differenceUnits }: { differenceUnits: bigint },
    block: ScannedBlock,
    isAlone: boolean,
  ): bigint | null {
    const before = lasting.get(token);
    const isSame = before !== undefined && before.differenceUnits > 0n === differenceUnits > 0n;
    const nearer = isSame && closer(before.differenceUnits, differenceUnits);
    const now = {
      sinceSec: isSame ? before.sinceSec : block.timestampSec,
      differenceUnits: nearer ? before.differenceUnits : differenceUnits,
    };
    lasting.set(token, now);
    if (!isAlone || block.timestampSec - now.sinceSec < pace.laterLookSec || !isSame) return null;
    return now.differenceUnits;
  }

  function doubt(token: Address, differenceUnits: bigint, question: HoldingsQuestion, into: HoldingsComparison): void {
    into.differences.push({ token, differenceUnits: 0n });
    const isMissing = differenceUnits < 0n;
    const found: Found = {
      state: isMissing ? 'quarantined' : 'doubt',
      code: isMissing ? 'shortfall_unconfirmed' : 'surplus_unconfirmed',
      message: isMissing
        ? `the vault is said to lack ${-differenceUnits} units, by too few endpoints to believe it`
        : `the vault is said to hold ${differenceUnits} units too many, by too few endpoints to book them`,
      differenceUnits,
    };
    note(token, found, question, into);
  }

  const isDue = (token: Address, { timestampSec }: ScannedBlock): boolean =>
    timestampSec - (bookedSec.get(token) ?? 0) >= pace.surplusIntervalSec;

  /** A surplus whose time has not come is not even asked for again. */
  function wait(token: Address, units: bigint, question: HoldingsQuestion, into: HoldingsComparison): void {
    calmSinceSec.delete(token);
    into.differences.push({ token, differenceUnits: 0n });
    const message = `the vault is said to hold ${units} units too many, which wait to be booked`;
    note(token, { state: 'doubt', code: 'surplus_waits', message, differenceUnits: units }, question, into);
  }

  async function surplus(
    token: Address,
    units: bigint,
    question: HoldingsQuestion,
    into: HoldingsComparison,
  ): Promise<void> {
    const { block } = question;
    if (!isDue(token, block) || !(await isProven(token, question))) return wait(token, units, question, into);
    logger.error({ token, surplusUnits: units.toString() }, 'the vault holds more than the ledger explains');
    into.entries.push(...surplusEntries(`surplus:${token}:${block.number}`, token, units));
    into.held.push({ token, units: question.afterUnits(token) + units });
    into.differences.push({ token, differenceUnits: 0n });
    confirmed.set(token, { blockNumber: block.number, units: question.afterUnits(token) + units });
    booking.set(token, block.timestampSec);
    settled(token, question, into);
  }

  /** Something is missing: either transfers that the ledger does not explain took it, or the token itself caused it. */
  async function shortage(
    token: Address,
    units: bigint,
    question: HoldingsQuestion,
    into: HoldingsComparison,
  ): Promise<void> {
    const { block } = question;
    const unconfirmed = (why: string): void => {
      into.differences.push({ token, differenceUnits: -units });
      // A finding stays until there is another one.
      if (standing(token)?.code === 'shortfall') return void taken.set(token, units);
      const message = `the vault lacks ${units} units, and ${why}`;
      note(
        token,
        { state: 'quarantined', code: 'shortfall_unconfirmed', message, differenceUnits: -units },
        question,
        into,
      );
    };
    if (!(await isProven(token, question))) return unconfirmed('the blocks since it did not are being proven');
    const takenUnits = await unexplainedTransfers(token, question);
    // Anybody may send so many transfers that no endpoint lists them all: that must not block the scan.
    if (takenUnits === null) return unconfirmed('no endpoint has named all transfers of the token since it did not');
    if (takenUnits > 0n) {
      taken.set(token, units);
      into.differences.push({ token, differenceUnits: -units });
      const message = `the vault lacks ${units} units, which transfers took out of it`;
      // It outlives a halt, so that a scan after `resume` still knows since when something is missing.
      const found = { state: 'quarantined', code: 'shortfall', message, differenceUnits: -units } as const;
      return note(token, found, question, into);
    }
    if (question.unattributedUnits(token) >= units) {
      logger.error(
        { token, units: units.toString() },
        'the vault holds less of a token than before, and no transfer says why',
      );
      into.entries.push(...withdrawnSurplusEntries(`surplus-back:${token}:${block.number}`, token, units));
      into.held.push({ token, units: question.afterUnits(token) - units });
      into.differences.push({ token, differenceUnits: 0n });
      confirmed.set(token, { blockNumber: block.number, units: question.afterUnits(token) - units });
      return settled(token, question, into);
    }
    ownDoing.set(token, -units);
    into.differences.push({ token, differenceUnits: -units });
    const message = `the vault holds ${units} units less than the ledger explains, and no transfer of the token says why`;
    const found = { state: 'quarantined', code: 'balance_decreased', message, differenceUnits: -units } as const;
    return note(token, found, question, into);
  }

  /** What left the vault by transfers beyond what the ledger explains since it was last agreed with; null while no endpoint has told. */
  async function unexplainedTransfers(token: Address, question: HoldingsQuestion): Promise<bigint | null> {
    const agreed = agreedAt(token, question);
    const net = await transfers.net({ token, from: agreed.blockNumber + 1, to: question.block.number });
    return net === null ? null : question.afterUnits(token) - agreed.units - net;
  }

  /** Where the ledger and the vault were last agreed, as far as that is not of another history. */
  function agreedAt(token: Address, question: HoldingsQuestion): Agreement {
    const agreed = standing(token)?.agreed ?? confirmed.get(token) ?? null;
    if (agreed !== null && agreed.blockNumber <= question.lastBlock) return agreed;
    return { blockNumber: question.lastBlock, units: question.beforeUnits(token) };
  }

  /** Whether the blocks since the last agreement hold no event that the ledger lacks, as far as that can be proven now. */
  function isProven(token: Address, question: HoldingsQuestion): Promise<boolean> {
    const range = { from: agreedAt(token, question).blockNumber + 1, to: question.block.number };
    return proven.covers(range, { token, scan: question.scan, rpc: question.rpc });
  }

  /** The difference is booked: from here on ledger and vault are agreed. */
  function settled(token: Address, question: HoldingsQuestion, into: HoldingsComparison): void {
    lasting.delete(token);
    if (standing(token) !== undefined) clear(token, question, into);
  }

  function calm(token: Address, question: HoldingsQuestion, into: HoldingsComparison): void {
    if (standing(token) === undefined) return;
    const { timestampSec } = question.block;
    const since = calmSinceSec.get(token) ?? timestampSec;
    calmSinceSec.set(token, since);
    if (timestampSec - since < pace.calmSec) return;
    clear(token, question, into);
  }

  function clear(token: Address, question: HoldingsQuestion, into: HoldingsComparison): void {
    const found: Found = { state: 'clear', code: '', message: '', differenceUnits: 0n };
    logger.info({ token, was: standing(token)?.code }, 'the vault and the ledger agree on a token again');
    put(token, found, question, into);
  }

  /** A row per change, not per look. */
  function note(token: Address, found: Found, question: HoldingsQuestion, into: HoldingsComparison): void {
    const before = standing(token);
    if (before?.state === found.state && before.code === found.code) return;
    const line = { token, code: found.code, differenceUnits: found.differenceUnits?.toString() ?? null };
    if (found.state === 'quarantined') logger.error(line, `a token is in quarantine: ${found.message}`);
    else logger.warn(line, `a token is in doubt: ${found.message}`);
    put(token, found, question, into);
  }

  function put(token: Address, found: Found, question: HoldingsQuestion, into: HoldingsComparison): void {
    into.findings.push({
      token,
      cause: 'holdings',
      ...found,
      blockNumber: question.block.number,
      agreed: found.state === 'clear' ? null : agreedAt(token, question),
      timeMs: deps.nowMs(),
    });
  }

  return {
    load(loaded) {
      findings = new Map(loaded.filter(({ cause }) => cause === 'holdings').map((one) => [one.token, one]));
      // Times, too: a reorganisation may have taken the blocks back that they are of.
      transfers.clear();
      for (const map of [lasting, calmSinceSec, bookedSec, booking, askedSec, ownDoing, taken, confirmed]) map.clear();
      othersAskedSec = 0;
      proven.clear();
    },
    compare,
    committed(stored) {
      for (const one of stored) if (one.cause === 'holdings') findings.set(one.token, one);
      for (const [token, sec] of booking) bookedSec.set(token, sec);
    },
  };
}

const closer = (a: bigint, b: bigint): boolean => (a < 0n ? -a : a) < (b < 0n ? -b : b);
