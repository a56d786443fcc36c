import type { Address } from '../types.js';

/** Actions as they are signed. The order of the keys is the order of signing; optional keys are absent, never undefined. */

export const TIFS = ['Gtc', 'Alo', 'Ioc', 'FrontendMarket', 'LiquidationMarket'] as const;
export type WireTif = (typeof TIFS)[number];

export type WireOrderType =
  { limit: { tif: WireTif } } | { trigger: { isMarket: boolean; triggerPx: string; tpsl: 'tp' | 'sl' } };

/** a = asset, b = is a buy, p = price, s = size, r = reduce only, t = type, c = client order id. */
export interface WireOrder {
  a: number;
  b: boolean;
  p: string;
  s: string;
  r: boolean;
  t: WireOrderType;
  c?: string;
}

export type WireGrouping = 'na' | 'normalTpsl' | 'positionTpsl' | { p: number };

export interface OrderAction {
  type: 'order';
  orders: WireOrder[];
  grouping: WireGrouping;
  /** Older clients sign one; the value is ignored. */
  brokerCode?: number;
  builder?: { b: Address; f: number };
}

export interface ModifyAction {
  type: 'modify';
  oid: number | string;
  order: WireOrder;
  a?: true;
}

export interface BatchModifyAction {
  type: 'batchModify';
  modifies: { oid: number | string; order: WireOrder }[];
  a?: true;
}

export interface CancelAction {
  type: 'cancel';
  cancels: { a: number; o: number }[];
  f?: true;
}

export interface CancelByCloidAction {
  type: 'cancelByCloid';
  cancels: { asset: number; cloid: string }[];
  f?: true;
}

export interface ScheduleCancelAction {
  type: 'scheduleCancel';
  /** Absolute milliseconds; absent clears. */
  time?: number;
}

export interface NoopAction {
  type: 'noop';
}

interface SetReferrerAction {
  type: 'setReferrer';
  code: string;
}

interface EvmUserModifyAction {
  type: 'evmUserModify';
  usingBigBlocks: boolean;
}

export type WireAction =
  | OrderAction
  | ModifyAction
  | BatchModifyAction
  | CancelAction
  | CancelByCloidAction
  | ScheduleCancelAction
  | NoopAction
  | SetReferrerAction
  | EvmUserModifyAction;

export type WireActionType = WireAction['type'];

/** A signature as sent: r and s are hex of 1 to 64 digits, because some clients print them as integers. */
export interface WireSignature {
  r: string;
  s: string;
  v: 27 | 28;
}

/** The letter that stands for the network in a signed action: a = mainnet, b = testnet. */
export type SourceLetter = 'a' | 'b';

/** The envelope of a signed request; `action` is still as it was received. */
export interface SignedRequest {
  action: Readonly<Record<string, unknown>> & { readonly type: string };
  nonce: number;
  signature: WireSignature;
  vaultAddress: Address | null;
  /** Milliseconds; null when the action never expires. */
  expiresAfter: number | null;
}
