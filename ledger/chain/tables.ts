/**
 * Rows of the ledger log and of its projections, as both databases return them: the one declaration of these tables for TypeScript. A
 * table or column that a migration adds is added here, too; `test/ledger/db/tables.test.ts` compares both.
 */
import type { Address, Hex, Side } from '../../core/types.js';
import type { MakerSum, MarketSum, TakerSum } from '../accounts/tables.js';
import type { Amount } from '../db/tables.js';
import type { Account, CustodyKind, EntryKind, SuspenseKind, TokenCause, TokenState } from '../types.js';

declare module 'knex/types/tables.js' {
  interface Tables {
    // The log: rows of each generation, halts and reversals.
    generations: {
      generation: number;
      from_block: number;
      to_block: number;
      block_timestamp_ms: number;
      scanned_ms: number;
      observed_head: number;
      observed_head_timestamp_ms: number;
      block_hash: Hex;
    };
    blocks: {
      number: number;
      timestamp_sec: number;
      generation: number;
      hash: Hex;
      parent_hash: Hex;
    };
    markets: {
      market: number;
      base_decimals: number;
      quote_decimals: number;
      max_ttl_sec: number;
      generation: number;
      id: Hex;
      pair: string;
      base_symbol: string;
      base_address: Address;
      quote_symbol: string;
      quote_address: Address;
      tick_size: string;
      lot_size: string;
      lot_units: Amount;
      tick_lot_units: Amount;
      /**
       * JSON of the token's metadata as read at the listing, and the block of that reading; null for markets that were listed before it was
       * stored.
       */
      base_said: string | null;
      quote_said: string | null;
      read_block: number | null;
    };
    custody_events: {
      block_number: number;
      log_index: number;
      generation: number;
      kind: CustodyKind;
      maker: Address;
      token: Address;
      tx_hash: Hex;
      amount_units: Amount;
      basis: Amount | null;
      ready_at_sec: number | null;
      settlement_no: number | null;
      paid_gas: number | null;
    };
    posts_seen: {
      market: number;
      seq: number;
      base_seq: number;
      deadline_sec: number;
      block_number: number;
      block_timestamp_sec: number;
      generation: number;
      snap_ask_units: Amount;
      snap_bid_units: Amount;
      words_hash: Hex;
      tx_hash: Hex;
      posted_seq: number;
      era: number;
      /** The middle of the curve; null when a side is empty, and for a curve that this database did not prepare. */
      middle_half_subticks: Amount | null;
    };
    seq_resets: {
      market: number;
      era: number;
      seq: number;
      fill_seq: number;
      block_number: number;
      log_index: number;
      generation: number;
      tx_hash: Hex;
    };
    fills: {
      market: number;
      fill_seq: number;
      curve_seq: number;
      block_number: number;
      log_index: number;
      timestamp_ms: number;
      generation: number;
      side: Side;
      taker: Address;
      recipient: Address;
      block_hash: Hex;
      tx_hash: Hex;
      base_units: Amount;
      quote_units: Amount;
      fee_units: Amount;
      input_fee_units: Amount;
      consumed_before_units: Amount;
      residual_units: Amount;
      rounding_units: Amount;
      compression_residual_units: Amount;
      operator_gain_units: Amount;
      missing_base_units: Amount;
      /**
       * Set for a fill without rows in `entries` and `fill_legs`, which both follow from this row and its parts: the operator that gets the
       * residual and the input fees. Null for a fill that has those rows.
       */
      booked_by: Address | null;
    };
    fill_legs: {
      market: number;
      fill_seq: number;
      leg_no: number;
      maker: Address;
      price_ticks: Amount;
      base_units: Amount;
      quote_units: Amount;
    };
    order_fills: {
      market: number;
      fill_seq: number;
      oid: number;
      part_no: number;
      leg_no: number;
      tid: number;
      generation: number;
      maker: Address;
      side: Side;
      price_ticks: Amount;
      base_units: Amount;
      start_base_units: Amount;
      cloid: string | null;
      quote_units: Amount;
      closed_units: Amount;
      timestamp_ms: number;
    };
    snapshots: {
      market: number;
      seq: number;
      generation: number;
      /** JSON of the book. */
      payload: string;
    };
    entries: {
      ref: string;
      kind: EntryKind;
      account: Account;
      token: Address;
      line: number;
      generation: number;
      amount_units: Amount;
    };
    balance_changes: {
      generation: number;
      account: Account;
      token: Address;
      reserved_delta_units: Amount;
      net_capital_delta_units: Amount;
    };
    claim_changes: {
      generation: number;
      maker: Address;
      token: Address;
      claim_units: Amount;
      basis: Amount;
      outstanding_units: Amount;
      ready_at_sec: number | null;
      pending_since_block: number | null;
      advance_units: Amount;
      paid_gas: number;
    };
    settled_orders: {
      owner: Address;
      recipient: Address;
      token_in: Address;
      token_out: Address;
      tx_hash: Hex;
      nonce: Amount;
      amount_in_units: Amount;
      amount_out_units: Amount;
      fee_units: Amount;
      /** 1: the fee is booked with the fill of the same transaction. */
      fee_in_swap: number;
      /** Null without a partner, as what it was sent. */
      partner: Address | null;
      partner_units: Amount | null;
      app_data: Hex | null;
      block_number: number;
      log_index: number;
      generation: number;
    };
    halts: {
      halt_no: number;
      time_ms: number;
      code: string;
      message: string;
      generation: number | null;
      from_block: number | null;
    };
    token_findings: {
      finding_no: number;
      generation: number;
      block_number: number;
      time_ms: number;
      token: Address;
      cause: TokenCause;
      state: TokenState;
      code: string;
      message: string;
      agreed_block: number | null;
      agreed_units: Amount | null;
      difference_units: Amount | null;
    };
    suspense: {
      item: string;
      kind: SuspenseKind;
      code: string;
      message: string;
      ref: string;
      tx_hash: Hex;
      generation: number;
      block_number: number;
      market: number | null;
      seq: number | null;
      maker: Address | null;
      token: Address | null;
      other_token: Address | null;
      units: Amount;
      other_units: Amount;
    };
    suspense_assignments: {
      item: string;
      account: Address;
      generation: number;
      operator_seq: number;
    };
    reversals: {
      generation: number;
      kept_generation: number;
      from_block: number;
      to_block: number;
      depth: number;
      time_ms: number;
      operator_seq: number;
      /** The newest halt that it ends; later ones stay in effect. */
      clears_halt_no: number;
    };
    orphaned_rows: {
      reversal: number;
      row_no: number;
      generation: number;
      table_name: string;
      /** JSON of the row as it was. */
      payload: string;
    };
    capital_origins: {
      operator_seq: number;
      generation: number;
      block_number: number;
      time_ms: number;
    };
    // Projections of the log.
    balances: {
      account: Account;
      token: Address;
      generation: number;
      balance_units: Amount;
      reserved_units: Amount;
      net_capital_units: Amount;
    };
    claims: {
      maker: Address;
      token: Address;
      claim_units: Amount;
      basis: Amount;
      outstanding_units: Amount;
      ready_at_sec: number | null;
      pending_since_block: number | null;
      generation: number;
      advance_units: Amount;
      paid_gas: number;
    };
    taker_fees: {
      taker: Address;
      token: Address;
      accrued_units: Amount;
      generation: number;
    };
    market_progress: {
      market: number;
      generation: number;
      fill_seq: number;
      ask_volume_units: Amount;
      bid_volume_units: Amount;
    };
    pair_gains: {
      /** Maker, taker and token, joined by colons. */
      pair: string;
      maker: Address;
      /** `all`: the sum over all takers of the maker. */
      taker: Address | 'all';
      token: Address;
      /** The loss as text that sorts like the number, on either database; empty without one. */
      loss_key: string;
      fills: number;
      legs: number;
      generation: number;
      quote_units: Amount;
      gain_units: Amount;
    };
    scan_times: {
      id: number;
      scanned_ms: number;
    };
    candles: {
      market: number;
      interval_no: number;
      open_ms: number;
      trades: number;
      open_ticks: Amount;
      high_ticks: Amount;
      low_ticks: Amount;
      close_ticks: Amount;
      base_units: Amount;
      quote_units: Amount;
    };
    maker_positions: {
      maker: Address;
      market: number;
      parts: number;
      generation: number;
      bought_base_units: Amount;
      bought_quote_units: Amount;
      sold_base_units: Amount;
      sold_quote_units: Amount;
      realised_units: Amount;
    };
    // Sums of accounts, as ledger/accounts/tables.ts names them.
    maker_hours: { maker: Address; market: number; hour_ms: number } & Record<MakerSum, Amount>;
    taker_days: { taker: Address; market: number; day_ms: number } & Record<TakerSum, Amount>;
    market_hours: { market: number; hour_ms: number } & Record<MarketSum, Amount>;
  }
}
