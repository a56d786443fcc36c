/** What a maker's wallet signs, by the published wire: an action's hash under the exchange domain, or an agent's approval in full. */
import { encode } from '@msgpack/msgpack';
import { bytesToHex, keccak256Bytes } from '../../core/hash.js';
import type { Address } from '../../core/types.js';
import type { SourceLetter, WireAction } from '../../core/wire/types.js';
import type { TypedData } from './wallet.js';

const ZERO_ADDRESS = `0x${'0'.repeat(40)}`;

/** keccak256 of the action's MessagePack, its nonce, and a byte that says that no vault acts. */
function connectionIdOf(action: WireAction, nonce: number): Uint8Array {
  const packed = encode(action);
  const bytes = new Uint8Array(packed.length + 9);
  bytes.set(packed);
  new DataView(bytes.buffer).setBigUint64(packed.length, BigInt(nonce));
  return keccak256Bytes(bytes);
}

/** Typed data of an action. The wire fixes the chain id to a constant that browser wallets refuse; use an agent's key with them. */
export function actionTypedData(action: WireAction, nonce: number, source: SourceLetter): TypedData {
  return {
    domain: { name: 'Exchange', version: '1', chainId: 1337, verifyingContract: ZERO_ADDRESS },
    types: {
      Agent: [
        { name: 'source', type: 'string' },
        { name: 'connectionId', type: 'bytes32' },
      ],
    },
    primaryType: 'Agent',
    message: { source, connectionId: bytesToHex(connectionIdOf(action, nonce)) },
  };
}

const APPROVE_AGENT = 'HyperliquidTransaction:ApproveAgent';

/** An agent's approval, and what is signed for it. */
export function agentTypedData(approval: { agent: Address; name: string; nonce: number; chainId: number }): {
  action: object;
  data: TypedData;
} {
  const { agent, name, nonce, chainId } = approval;
  const message = { hyperliquidChain: 'Mainnet', agentAddress: agent, agentName: name, nonce };
  return {
    action: { type: 'approveAgent', signatureChainId: `0x${chainId.toString(16)}`, ...message },
    data: {
      domain: { name: 'HyperliquidSignTransaction', version: '1', chainId, verifyingContract: ZERO_ADDRESS },
      types: {
        [APPROVE_AGENT]: [
          { name: 'hyperliquidChain', type: 'string' },
          { name: 'agentAddress', type: 'address' },
          { name: 'agentName', type: 'string' },
          { name: 'nonce', type: 'uint64' },
        ],
      },
      primaryType: APPROVE_AGENT,
      message,
    },
  };
}
