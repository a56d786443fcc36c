import type { Book } from '../../core/book.js';
import type { Agents } from '../../core/book/agents.js';
import type { MinOrderUnits } from '../../core/min-order.js';
import type { Address, Market, OrderEffect, Readiness } from '../../core/types.js';
import type { SignedRequest, SourceLetter } from '../../core/wire/types.js';
import type { Db, Writer } from '../../ledger/types.js';

/** Settings of the order interface. */
export interface GatewayConfig {
  /** Accepted source letters of signed actions, in the order in which they are tried. */
  sources: readonly SourceLetter[];
  /** Chains whose id an agent approval may be signed for; null accepts any. */
  signatureChainIds: readonly bigint[] | null;
  /** Signatures of unknown accounts per minute and IP address before further ones are refused. */
  failuresPerMinute: number;
  /** Pause between two reads of the ledger log when no hint arrives. */
  pollMs: number;
  /** Mark price by pair, a plain decimal, for a market without a book and without a trade. */
  referencePrices: Readonly<Record<string, string>>;
  /** Least value of an order by market. */
  minOrderUnits: MinOrderUnits;
}

export interface GatewayLogger {
  info: (fields: object, message: string) => void;
  warn: (fields: object, message: string) => void;
  error: (fields: object, message: string) => void;
}

/** A request with the signer that was recovered elsewhere. */
export interface ForwardedAction {
  signer: Address;
  request: SignedRequest;
}

/** Where a process without the order log hands verified actions over to. */
export interface Forward {
  /**
   * Resolves with the reply, which is true of any state up to this row or a later one. Rejects with GatewayUnavailableError. The maker, by
   * itself the signer, is who waits: one has no more than its share of what may.
   */
  submit(action: ForwardedAction, maker?: Address): Promise<{ reply: ExchangeReply; orderSeq: number }>;
  waiting(): number;
  /** Resolves when everything submitted so far has been answered. */
  idle(): Promise<void>;
}

/** Where a standby hands actions over to. */
export interface ActionRelay {
  /**
   * Hands over an action of a maker, whose client is at this address, and resolves with the reply. Throws GatewayUnavailableError: `standby` and
   * `write_failed` when nothing of it is stored, `outcome_unknown` when it may be; RateLimitedError as the active gateway.
   */
  action(body: unknown, maker: Address, address: string | undefined): Promise<ExchangeReply>;
}

export interface GatewayDeps {
  db: Db;
  /** The right to append to the order log; null for a standby, which follows the log of another process and refuses every action. */
  writer: Writer | null;
  /** Where an edge's actions go; left out, a process without a writer refuses them. */
  forward?: Forward | null;
  /** Of a standby: who hands a verified action over to the active gateway; left out, it is refused. */
  relay?: ActionRelay | null;
  config: GatewayConfig;
  readiness: () => Readiness;
  /** Tokens in quarantine; none when left out. */
  quarantined?: () => ReadonlySet<Address>;
  /** Unix milliseconds. */
  clock: () => number;
  logger: GatewayLogger;
}

/** Reply of the exchange wire to a signed action: accepted, or refused as a whole. */
export type ExchangeReply =
  | { status: 'ok'; response: { type: string; data?: { statuses: EntryStatus[] } } }
  | { status: 'err'; response: string };

/** Result of one entry of a batch. An error has no second key: strict clients refuse one. */
export type EntryStatus = 'success' | { resting: { oid: number; cloid?: string } } | { error: string };

/** What an action is judged against: the state after everything that was queued before it. */
export interface AdmissionView {
  book: Book;
  markets: readonly Market[];
  /** Unreserved balance after the last durable generation, in units of the token. */
  available: (maker: Address, token: Address) => bigint;
  minOrderUnits: MinOrderUnits;
  readiness: Readiness;
  /** Indexes of markets that take no orders. */
  delisted: ReadonlySet<number>;
  /** Tokens whose markets take no orders for the time being. */
  quarantined: ReadonlySet<Address>;
  agents: Agents;
  /** Whether the address is or was an approved maker, or has a ledger row. */
  isAccount: (address: Address) => boolean;
  /** The clock, by which actions, agents and schedules expire. */
  nowMs: number;
  /** Time of the row that the action becomes: the clock, but no earlier than any row before. By it the book remembers what was offered. */
  rowMs: number;
}

export interface ActionOutcome {
  effects: OrderEffect[];
  reply: ExchangeReply;
}

/** Judges an admitted action. It does not throw for anything a maker may send; refusals are replies. */
export type ActionHandler<A> = (action: A, maker: Address, view: AdmissionView) => ActionOutcome;
