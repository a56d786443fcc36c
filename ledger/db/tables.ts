/**
 * Rows of all tables but those of the ledger log (`ledger/chain/tables.ts`), as both databases return them: the one declaration of these
 * tables for TypeScript. A table or column that a migration adds is added here, too; `test/ledger/db/tables.test.ts` compares both.
 *
 * Columns have the database's names. Numbers are below 2^53, flags are 0 or 1, addresses and hashes lower-case hex.
 */
import type { Tables } from 'knex/types/tables.js';
import type { Address, CloseReason, Hex, OpenOrder, Side } from '../../core/types.js';
import type {
  LogName,
  OperatorRow,
  PublicationKind,
  RoutingPreference,
  Settlement,
  SettlementOutcome,
  SwapKind,
} from '../types.js';

/** An exact integer in text; `fromColumn` reads it and `toColumn` writes it. */
export type Amount = string;

/** A row of a table, as it is stored. */
export type Stored<T extends keyof Tables> = Tables[T];

declare module 'knex/types/tables.js' {
  interface Tables {
    // The order log, and the compacted book (`folded_…`, see docs/glossary.md).
    order_log: {
      order_seq: number;
      time_ms: number;
      maker: Address;
      kind: string;
      /** JSON, as `core/json.ts` writes it. */
      effects: string;
      signer: Address | null;
      nonce: number | null;
    };
    fold_position: {
      id: number;
      order_seq: number;
      generation: number;
      oid: number;
      time_ms: number;
      /** Cuts of earlier generations can't be rebuilt. */
      cut_generation: number;
    };
    folded_orders: {
      oid: number;
      market: number;
      placed_ms: number;
      has_fill: number;
      maker: Address;
      side: Side;
      tif: OpenOrder['tif'];
      state: 'open' | 'filled' | CloseReason;
      price_ticks: Amount;
      size_lots: Amount;
      filled_units: Amount;
      cloid: string | null;
      closed_ms: number | null;
    };
    folded_signers: {
      signer: Address;
      nonces: string;
    };
    folded_makers: {
      maker: Address;
      last_action_ms: number | null;
      armed_ms: number | null;
      trigger_day: number | null;
      trigger_count: number;
    };
    folded_agents: {
      address: Address;
      master: Address;
      name: string;
      since_ms: number;
      valid_until_ms: number;
      approved_seq: number;
      /** 0 once it was replaced or removed; its address can't be used again. */
      is_live: number;
    };
    // The publication log.
    publications: {
      market: number;
      seq: number;
      base_seq: number;
      cut_order_seq: number;
      cut_generation: number;
      cut_time_ms: number;
      fill_seq: number;
      ask_volume_units: Amount;
      bid_volume_units: Amount;
      /** JSON, like `ask_words`, `bid_words` and `excluded`. */
      trims: string;
      snapshot_hash: Hex;
      ask_words: string;
      bid_words: string;
      words_hash: Hex;
      tx_key: string;
      deadline_sec: number;
      prepared_ms: number;
      kind: PublicationKind;
      excluded: string;
      block_hash: Hex;
      block_number: number;
      ask_knots: number;
      bid_knots: number;
      compression: number;
      exact_ask_knots: number;
      exact_bid_knots: number;
      max_error_milli_bps: number;
      ask_error_ppb: number | null;
      bid_error_ppb: number | null;
    };
    post_costs: {
      hash: Hex;
      signer: Address;
      tx_key: string;
      nonce: number;
      block_number: number;
      gas_used: number;
      succeeded: number;
      seen_ms: number;
      /** Comma-separated indexes of the markets that it was for; empty for none. */
      markets: string;
      fee_wei: Amount;
      /** The error that it reverted with, as a node said; null where it succeeded or nobody knows. */
      revert_reason: string | null;
    };
    settlement_costs: {
      hash: Hex;
      signer: Address;
      tx_key: string;
      nonce: number;
      block_number: number;
      gas_used: number;
      succeeded: number;
      seen_ms: number;
      markets: string;
      fee_wei: Amount;
      revert_reason: string | null;
    };
    order_costs: {
      hash: Hex;
      signer: Address;
      tx_key: string;
      nonce: number;
      block_number: number;
      gas_used: number;
      succeeded: number;
      seen_ms: number;
      markets: string;
      fee_wei: Amount;
      revert_reason: string | null;
    };
    gas_days: { role: string; market: number; day_ms: number; gas: Amount; fee_wei: Amount };
    // The settlement log.
    settlements: {
      settlement_no: number;
      cut_generation: number;
      cut_block: number;
      checkpoint_seq: number;
      prepared_ms: number;
      maker: Address;
      token: Address;
      tx_key: string;
      prepared_by: Settlement['preparedBy'];
      amount_units: Amount;
      basis: Amount;
      previous_units: Amount;
      operator_seq: number | null;
    };
    settlement_outcomes: {
      settlement_no: number;
      time_ms: number;
      outcome: SettlementOutcome;
    };
    checkpoints: {
      checkpoint_seq: number;
      generation: number;
      block_number: number;
      timestamp_ms: number;
      leaf_count: number;
      block_hash: Hex;
      root: Hex;
      /** JSON: the last fill by market index. */
      ack_fill_seqs: string;
    };
    checkpoint_rows: {
      account: Address;
      token: Address;
      checkpoint_seq: number;
      balance_units: Amount;
      reserved_units: Amount;
    };
    // The swap log.
    swap_quotes: {
      id: string;
      owner: Address;
      receiver: Address;
      sell_token: Address;
      buy_token: Address;
      kind: SwapKind;
      preference: RoutingPreference;
      route: string;
      typed_data: string;
      sell_units: Amount;
      expected_sell_units: Amount;
      buy_units: Amount;
      min_buy_units: Amount;
      fee_units: Amount;
      nonce: Amount;
      slippage_bps: number;
      valid_to_sec: number;
      created_ms: number;
      expires_ms: number;
      /** 1 for an order that waits for its price. */
      is_limit: number;
      partner: Address | null;
      partner_bps: number;
      app_data: Hex | null;
    };
    swap_nonces: {
      owner: Address;
      /** How many nonces the owner was given. */
      issued: number;
    };
    swap_orders: {
      id: string;
      quote_id: string;
      owner: Address;
      signature: Hex;
      client_order_id: string | null;
      created_ms: number;
    };
    swap_pending: {
      order_id: string;
      created_ms: number;
      valid_to_sec: number;
      owner: Address | null;
      sell_token: Address | null;
      is_limit: number;
    };
    swap_attempts: {
      order_id: string;
      result: 'sent' | 'refused';
      attempt_no: number;
      time_ms: number;
      /** For an attempt that was sent: its key in the outbox. An attempt that was refused has `code` and `message`. */
      tx_key: string | null;
      code: string | null;
      message: string | null;
      /** Whether our curve is a part of the route; 1 for attempts from before this was stored. */
      on_curve: number;
    };
    swap_outcomes: {
      order_id: string;
      status: 'failed' | 'expired';
      code: string;
      message: string;
      generation: number;
      time_ms: number;
    };
    swap_reverts: {
      tx_hash: Hex;
      order_id: string;
      owner: Address;
      block_number: number;
      time_ms: number;
      gas_used: Amount;
    };
    swap_fees: {
      tx_hash: Hex;
      order_id: string;
      token: Address;
      time_ms: number;
      fee_wei: Amount;
    };
    swap_cancellations: {
      order_id: string;
      signature: Hex;
      time_ms: number;
    };
    /** Of an order that brought its approval: the call of the sell token by which Permit2 gets its allowance. */
    swap_permits: {
      order_id: string;
      data: Hex;
    };
    swap_executors: {
      signer: Address;
      funded: number;
      time_ms: number;
    };
    // The operator log.
    operator_log: {
      operator_seq: number;
      time_ms: number;
      kind: OperatorRow['kind'];
      note: string;
      maker: Address | null;
      /** Of a resume: the newest halt that it ends; a later one stands. */
      clears_halt_no: number | null;
      token: Address | null;
      amount_units: Amount | null;
      market: number | null;
      item: string | null;
    };
    // Tables of no log.
    outbox: {
      hash: Hex;
      tx_key: string;
      signer: Address;
      to_address: Address;
      raw: Hex;
      nonce: number;
      sent_ms: number;
      /** 0 open, 1 its nonce is used, 2 given up. */
      finished: number;
      valid_until_sec: number | null;
      /** The most that it and its replacements may bid; null without a bound. */
      max_fee_wei: Amount | null;
    };
    writers: {
      log: LogName;
      epoch: number;
    };
    meta: {
      key: string;
      value: string;
    };
  }
}
