import { ENOUGH_VOTES } from '../../../core/holdings.js';
import type { Logger } from 'pino';
import { isUsableSymbol } from '../../../core/token-names.js';
import type { Address, Token } from '../../../core/types.js';
import type { TokenListing } from '../../../ledger/chain/markets.js';
import type { SaidOfToken, ScannedBlock, TokenCause, TokenFinding } from '../../../ledger/types.js';
import type { RpcPool } from '../../chain/pool.js';
import { toQuantity, type Rpc } from '../../chain/rpc.js';
import { canTransfer, readSaid, tokenOf } from './tokens.js';

/** Time between two looks at every token, and how soon one that failed is looked at again. */
export interface TokenPace {
  intervalMs: number;
  againMs: number;
}

export const TOKEN_PACE: TokenPace = { intervalMs: 60_000, againMs: 10_000 };

/** Looks in a row that must fail, at different blocks, before the only endpoint is believed; and succeed, before it is over. */
const LOOKS = 2;

interface TokenCheckDeps {
  rpc: RpcPool;
  vault: Address;
  /** Anybody who may receive a token. */
  recipient: Address;
  pace: TokenPace;
  /** Of what is stored. */
  nowMs(): number;
  /** Measures intervals; absent: `nowMs` does. */
  monotonicMs?: (() => number) | undefined;
  logger: Logger;
}

interface TokenQuestion {
  tokens: readonly Token[];
  block: ScannedBlock;
  /** What the token said when it was listed, or when the operator read it again; null when nobody knows. */
  listing(token: Address): TokenListing | undefined;
  reread(token: Address): SaidOfToken | undefined;
  vaultUnits(token: Address): bigint;
}

interface TokenChecks {
  load(findings: readonly TokenFinding[]): void;
  /** Looks at the tokens that are due, and returns what changed. Never throws: an endpoint that does not answer has no vote. */
  look(question: TokenQuestion): Promise<TokenFinding[]>;
  committed(findings: readonly TokenFinding[]): void;
}

interface Problem {
  code: string;
  message: string;
}

const CAUSES = ['metadata', 'transfers'] as const;
type Cause = (typeof CAUSES)[number];

/** What one endpoint finds of one token, by cause; null for nothing wrong. */
type Looked = Record<Cause, Problem | null>;
/** What all of them find; undefined where that is not enough to change anything. */
type Agreed = Record<Cause, Problem | null | undefined>;

/**
 * Checks tokens' metadata from time to time, and whether the vault could pay them out. What is found counts when a second endpoint finds
 * the same, or where there is only one, when it finds it again at a later block; and it is over when two find nothing wrong, or the only
 * one.
 */
export function createTokenChecks(deps: TokenCheckDeps): TokenChecks {
  const { rpc, logger, monotonicMs = deps.nowMs } = deps;
  let findings = new Map<string, TokenFinding>();
  const dueMs = new Map<Address, number>();
  const lookedAt = new Map<Address, number>();
  /** Looks in a row with the same outcome, by token, cause and code. */
  const inARow = new Map<string, { code: string; looks: number }>();

  const key = (token: Address, cause: TokenCause): string => `${token}:${cause}`;

  const stands = (token: Address, cause: TokenCause): boolean =>
    (findings.get(key(token, cause))?.state ?? 'clear') !== 'clear';

  async function look(question: TokenQuestion): Promise<TokenFinding[]> {
    const nowMs = deps.nowMs();
    const atMs = monotonicMs();
    const due = question.tokens.filter(
      ({ address }) =>
        (dueMs.get(address) ?? -Infinity) <= atMs && (lookedAt.get(address) ?? -1) < question.block.number,
    );
    const found = await Promise.all(due.map((token) => lookAt(token, question, nowMs)));
    return found.flat();
  }

  async function lookAt(token: Token, question: TokenQuestion, nowMs: number): Promise<TokenFinding[]> {
    const { address } = token;
    lookedAt.set(address, question.block.number);
    dueMs.set(address, monotonicMs() + deps.pace.againMs);
    const agreed = await agreedLook(token, question);
    if (agreed === null) return [];
    const changed = CAUSES.flatMap((cause) => {
      const problem = agreed.looked[cause];
      return problem === undefined ? [] : judge(address, cause, problem, agreed.isCertain, question, nowMs);
    });
    const isQuiet = CAUSES.every((cause) => agreed.looked[cause] === null && !stands(address, cause));
    if (isQuiet) dueMs.set(address, monotonicMs() + deps.pace.intervalMs);
    return changed;
  }

  /**
   * What an endpoint finds; when something is wrong or was, what all of them find. Null when too few say anything.
   */
  async function agreedLook(
    token: Token,
    question: TokenQuestion,
  ): Promise<{ looked: Agreed; isCertain: boolean } | null> {
    const isAlone = rpc.endpoints.length === 1;
    if (isAlone || !CAUSES.some((cause) => stands(token.address, cause))) {
      const first = await lookThrough(rpc, token, question);
      if (first === null) return null;
      if (isAlone || CAUSES.every((cause) => first[cause] === null)) return { looked: first, isCertain: false };
    }
    const surveyed = await rpc
      .survey((endpoint) => lookedThrough(endpoint, token, question), ENOUGH_VOTES)
      .catch(() => []);
    const looks = surveyed.map(({ answer }) => answer);
    if (looks.length < 2) return null;
    const agreed = (cause: Cause): Problem | null | undefined => {
      const problems = looks.map((one) => one[cause]).filter((one) => one !== null);
      if (problems.length === looks.length) return problems[0]!;
      // One endpoint that finds nothing wrong keeps a token out of quarantine, because then the other endpoint is at fault. Ending a
      // quarantine takes two.
      return stands(token.address, cause) && looks.length - problems.length < 2 ? undefined : null;
    };
    return { looked: { metadata: agreed('metadata'), transfers: agreed('transfers') }, isCertain: true };
  }

  async function lookedThrough(endpoint: Rpc, token: Token, question: TokenQuestion): Promise<Looked> {
    return {
      metadata: await metadataProblem(endpoint, token, question),
      transfers: await transferProblem(endpoint, token, question),
    };
  }

  async function lookThrough(endpoint: Rpc, token: Token, question: TokenQuestion): Promise<Looked | null> {
    try {
      return await lookedThrough(endpoint, token, question);
    } catch (error) {
      logger.debug({ token: token.address, err: error }, 'a token could not be looked at');
      return null;
    }
  }

  async function metadataProblem(endpoint: Rpc, token: Token, question: TokenQuestion): Promise<Problem | null> {
    const said = await readSaid(endpoint, token.address, toQuantity(question.block.number));
    const right = question.reread(token.address) ?? question.listing(token.address)?.said ?? null;
    const decimals = right === null ? token.decimals : tokenOf(token.address, right).decimals;
    const now = tokenOf(token.address, said).decimals;
    if (now !== decimals)
      return {
        code: 'decimals_changed',
        message: `it says that it has ${said.decimals ?? 'no'} decimals, not ${decimals}`,
      };
    const symbol = right?.symbol ?? (isPlainName(token) ? token.symbol : said.symbol);
    if (said.symbol === symbol) return null;
    return { code: 'symbol_changed', message: `it calls itself ${quoted(said.symbol)}, not ${quoted(symbol)}` };
  }

  async function transferProblem(endpoint: Rpc, token: Token, question: TokenQuestion): Promise<Problem | null> {
    const units = question.vaultUnits(token.address);
    if (units <= 0n) return null;
    const transfer = { token: token.address, holder: deps.vault, recipients: [deps.recipient, deps.vault], units };
    if (await canTransfer(endpoint, transfer, question.block.number)) return null;
    return { code: 'transfers_fail', message: 'it refuses to move what the vault holds of it' };
  }

  function judge(
    token: Address,
    cause: Cause,
    problem: Problem | null,
    isCertain: boolean,
    question: TokenQuestion,
    nowMs: number,
  ): TokenFinding[] {
    const before = findings.get(key(token, cause));
    const standing = before !== undefined && before.state !== 'clear' ? before.code : '';
    const code = problem?.code ?? '';
    const row = inARow.get(key(token, cause));
    const looks = row?.code === code ? row.looks + 1 : 1;
    inARow.set(key(token, cause), { code, looks });
    if (code === standing || looks < (isCertain && problem !== null ? 1 : LOOKS)) return [];
    if (problem === null) logger.info({ token, was: standing }, 'a token is as it was again');
    else logger.error({ token, code }, `a token is in quarantine: ${problem.message}`);
    return [
      {
        token,
        cause,
        state: problem === null ? 'clear' : 'quarantined',
        code,
        message: problem?.message ?? '',
        blockNumber: question.block.number,
        agreed: null,
        differenceUnits: null,
        timeMs: nowMs,
      },
    ];
  }

  return {
    load(loaded) {
      findings = new Map(loaded.map((one) => [key(one.token, one.cause), one]));
      for (const map of [dueMs, lookedAt, inARow]) map.clear();
    },
    look,
    committed(stored) {
      for (const one of stored) findings.set(key(one.token, one.cause), one);
    },
  };
}

/** The name is the symbol itself, and no name that was made for it. */
const isPlainName = ({ symbol, address }: Token): boolean =>
  isUsableSymbol(symbol) && !symbol.startsWith('0x') && !symbol.endsWith(`.${address.slice(2, 10)}`);

/** A token's symbol, shortened and without control characters. */
const quoted = (symbol: string): string => JSON.stringify(symbol.slice(0, 32).replaceAll(/[^\x20-\x7e]/g, '?'));
