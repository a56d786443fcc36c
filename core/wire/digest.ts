/** EIP-712 digests, written out by hand: the two domains and three structures of the wire never change. */
import { wordOf } from '../amounts.js';
import { hexToBytes, keccak256Bytes } from '../hash.js';
import type { Address } from '../types.js';
import type { SourceLetter } from './types.js';

const utf8 = new TextEncoder();
const ZERO = new Uint8Array(32);

const hashText = (text: string): Uint8Array => keccak256Bytes(utf8.encode(text));

function joined(...words: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(words.length * 32);
  words.forEach((word, index) => bytes.set(word, index * 32));
  return bytes;
}

const hashWords = (...words: readonly Uint8Array[]): Uint8Array => keccak256Bytes(joined(...words));

/** An unsigned integer or an address as a 32-byte word. */
function word(value: bigint): Uint8Array {
  return hexToBytes(`0x${wordOf(value)}`);
}

const DOMAIN_TYPE = hashText('EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)');
const AGENT_TYPE = hashText('Agent(string source,bytes32 connectionId)');
const APPROVE_AGENT_TYPE = hashText(
  'HyperliquidTransaction:ApproveAgent(string hyperliquidChain,address agentAddress,string agentName,uint64 nonce)',
);
const APPROVE_BUILDER_FEE_TYPE = hashText(
  'HyperliquidTransaction:ApproveBuilderFee(string hyperliquidChain,string maxFeeRate,address builder,uint64 nonce)',
);
const VERSION = hashText('1');
const USER_DOMAIN_NAME = hashText('HyperliquidSignTransaction');
const ACTION_DOMAIN = hashWords(DOMAIN_TYPE, hashText('Exchange'), VERSION, word(1337n), ZERO);
const SOURCES: Readonly<Record<SourceLetter, Uint8Array>> = { a: hashText('a'), b: hashText('b') };

/**
 * The encoded structure of an action's signature, in which only the connection id changes; hashing is synchronous, so one buffer is enough.
 */
const AGENT_WORDS: Readonly<Record<SourceLetter, Uint8Array>> = {
  a: joined(AGENT_TYPE, SOURCES.a, ZERO),
  b: joined(AGENT_TYPE, SOURCES.b, ZERO),
};

/** The bytes of a typed digest; hashing is synchronous, so one buffer is enough. */
const TYPED = new Uint8Array(66);
TYPED.set([0x19, 0x01]);

function typedDigest(domain: Uint8Array, structHash: Uint8Array): Uint8Array {
  TYPED.set(domain, 2);
  TYPED.set(structHash, 34);
  return keccak256Bytes(TYPED);
}

function userDigest(chainId: bigint, structHash: Uint8Array): Uint8Array {
  return typedDigest(hashWords(DOMAIN_TYPE, USER_DOMAIN_NAME, VERSION, word(chainId), ZERO), structHash);
}

/** Digest that signs an action: its connection id under one source letter. 32 bytes. */
export function agentDigest(source: SourceLetter, connectionId: Uint8Array): Uint8Array {
  const words = AGENT_WORDS[source];
  words.set(connectionId, 64);
  return typedDigest(ACTION_DOMAIN, keccak256Bytes(words));
}

interface ApproveAgentMessage {
  hyperliquidChain: string;
  agentAddress: Address;
  /** The empty string for the unnamed agent, however it was sent. */
  agentName: string;
  nonce: number;
}

/** Digest of an agent approval, signed for the chain that the action names. 32 bytes. */
export function approveAgentDigest(chainId: bigint, message: ApproveAgentMessage): Uint8Array {
  const { hyperliquidChain, agentAddress, agentName, nonce } = message;
  const struct = hashWords(
    APPROVE_AGENT_TYPE,
    hashText(hyperliquidChain),
    word(BigInt(agentAddress)),
    hashText(agentName),
    word(BigInt(nonce)),
  );
  return userDigest(chainId, struct);
}

interface ApproveBuilderFeeMessage {
  hyperliquidChain: string;
  maxFeeRate: string;
  builder: Address;
  nonce: number;
}

/** Digest of a builder-fee approval, which clients send and this venue always refuses. 32 bytes. */
export function approveBuilderFeeDigest(chainId: bigint, message: ApproveBuilderFeeMessage): Uint8Array {
  const { hyperliquidChain, maxFeeRate, builder, nonce } = message;
  const struct = hashWords(
    APPROVE_BUILDER_FEE_TYPE,
    hashText(hyperliquidChain),
    hashText(maxFeeRate),
    word(BigInt(builder)),
    word(BigInt(nonce)),
  );
  return userDigest(chainId, struct);
}
