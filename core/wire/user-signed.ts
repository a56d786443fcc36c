import type { Address } from '../types.js';
import { approveAgentDigest } from './digest.js';
import { WireError } from './errors.js';
import { asAddress, asObject, asOneOf, asText, asUint, onlyKeys } from './shape.js';

/** An agent approval as read from the wire. */
export interface ApproveAgentAction {
  type: 'approveAgent';
  signatureChainId: bigint;
  hyperliquidChain: 'Mainnet' | 'Testnet';
  /** The zero address removes. */
  agentAddress: Address;
  /** The empty string for the unnamed agent. */
  agentName: string;
  nonce: number;
}

const CHAIN_ID = /^0x[0-9a-fA-F]{1,16}$/;

/** Reads an approveAgent action; an absent, null or empty name is the unnamed agent. Throws WireError. */
export function readApproveAgent(value: unknown): ApproveAgentAction {
  const action = asObject(value, 'action');
  onlyKeys(action, 'action', ['type', 'signatureChainId', 'hyperliquidChain', 'agentAddress', 'agentName', 'nonce']);
  const chainId = asText(action.signatureChainId, 'action.signatureChainId');
  if (!CHAIN_ID.test(chainId)) throw new WireError('action.signatureChainId', 'must be a hex integer');
  return {
    type: asOneOf(action.type, 'action.type', ['approveAgent']),
    signatureChainId: BigInt(chainId),
    hyperliquidChain: asOneOf(action.hyperliquidChain, 'action.hyperliquidChain', ['Mainnet', 'Testnet']),
    agentAddress: asAddress(action.agentAddress, 'action.agentAddress'),
    agentName: asText(action.agentName ?? '', 'action.agentName'),
    nonce: asUint(action.nonce, 'action.nonce'),
  };
}

/** The digest that the master account signed. 32 bytes. */
export function digestOfApproveAgent(action: ApproveAgentAction): Uint8Array {
  return approveAgentDigest(action.signatureChainId, action);
}
