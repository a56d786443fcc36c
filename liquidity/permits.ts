/**
 * Approvals by signature: which tokens take them, and what a given one would do. Both are found by simulation, not from what the token
 * claims.
 */
import { AbiCoder, Interface, Signature, TypedDataEncoder, Wallet, toQuantity } from 'ethers';
import {
  PERMIT_VALUE,
  permitTypedData,
  type PermitStyle,
  type PermitTerms,
  type TokenDomain,
} from '../core/swap/typed-data.js';
import { wordOf } from '../core/amounts.js';
import type { Address, Hex } from '../core/types.js';
import { PermitProbe__factory } from '../typechain-types/factories/periphery/PermitProbe__factory.js';
import { bytesOf, isFailedCall, onOne, type EthReader } from './eth.js';
import type { JoinedReads } from './joined-reads.js';
import { createSettlerCode } from './settler-code.js';

const TOKEN = new Interface([
  'function allowance(address, address) view returns (uint256)',
  'function nonces(address) view returns (uint256)',
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function eip712Domain() view returns (bytes1, string name, string version, uint256 chainId, address verifyingContract, bytes32, uint256[])',
]);
/** Of the two calls that each quote makes, whose arguments are words already. */
const [ALLOWANCE, NONCES] = ['allowance', 'nonces'].map((name) => TOKEN.getFunction(name)!.selector) as [
  string,
  string,
];
/** The first word that a token answers; 0 for less than one, which is the token's fault and not the endpoint's. */
const wordIn = (answer: Hex): bigint => (answer.length < 66 ? 0n : BigInt(answer.slice(0, 66)));
const PERMITS: Record<PermitStyle, Interface> = {
  eip2612: new Interface(['function permit(address, address, uint256, uint256, uint8, bytes32, bytes32)']),
  dai: new Interface(['function permit(address, address, uint256, uint256, bool, uint8, bytes32, bytes32)']),
};

/** How long a result about a token is reused; a proxy's code may change. */
const KEEP_MS = 10 * 60_000;
/** Most gas of a call to a token. */
const CALL_GAS = 300_000n;
/** Most gas of a simulated permit, with what running the probe takes. */
const PROBE_GAS = 1_000_000n;
/** A name or version that is longer is none. */
const MAX_TEXT = 200;
const FAR_SEC = 2 ** 40;

/** How a token takes permits. */
export interface PermitSupport {
  style: PermitStyle;
  domain: TokenDomain;
}

export interface Permits {
  /** How a token takes permits; null for one that takes none, and where the settler can't bring any. Asked of the chain once in a while. */
  supportOf(token: Address): Promise<PermitSupport | null>;
  /** What Permit2 may take of the owner's, and the owner's nonce at a token that takes permits. */
  stateOf(
    token: Address,
    owner: Address,
    support: PermitSupport | null,
  ): Promise<{ allowanceUnits: bigint; nonce: bigint }>;
  /** What Permit2 may take once `data` was called, by a simulation; null where that takes too much gas, or the token answers with nonsense. */
  allowanceAfter(token: Address, owner: Address, data: Hex): Promise<bigint | null>;
}

interface PermitsDeps {
  eth: EthReader;
  joined: JoinedReads;
  chainId: number;
  permit2: Address;
  settler: Address;
  nowMs(): number;
}

/** The token's call that a signature of 65 bytes, or 64 in the compact form, makes good. Throws for what is no signature. */
export function permitCall(
  style: PermitStyle,
  { owner, spender, nonce, deadlineSec }: PermitTerms,
  signature: Hex,
): Hex {
  const { v, r, s } = Signature.from(signature);
  const terms = style === 'eip2612' ? [PERMIT_VALUE, deadlineSec] : [nonce, deadlineSec, true];
  return PERMITS[style].encodeFunctionData('permit', [owner, spender, ...terms, v, r, s]) as Hex;
}

export function createPermits({ eth, joined, chainId, permit2, settler, nowMs }: PermitsDeps): Permits {
  /** A random key that signs for itself, so that a token can't distinguish it from an owner. It holds nothing. */
  const nobody = new Wallet(Wallet.createRandom().privateKey);
  const kept = new Map<Address, { atMs: number; support: Promise<PermitSupport | null> }>();
  const settlerCode = createSettlerCode(eth, settler);

  const run = (call: object): Promise<Hex> =>
    onOne(eth, async (one) => bytesOf(await one.call('eth_call', [call, 'latest'])));

  /** Null for a call that fails, and for an answer that is none. */
  async function ask(token: Address, method: string, args: unknown[] = []): Promise<unknown[] | null> {
    const call = { to: token, data: TOKEN.encodeFunctionData(method, args), gas: toQuantity(CALL_GAS) };
    try {
      const answer = await run(call);
      return answer === '0x' ? null : [...TOKEN.decodeFunctionResult(method, answer)];
    } catch (error) {
      if (isFailedCall(error) || (error as { code?: unknown }).code === 'BAD_DATA') return null;
      throw error;
    }
  }

  async function text(token: Address, method: string): Promise<string | null> {
    const said = await ask(token, method);
    return typeof said?.[0] === 'string' && said[0].length <= MAX_TEXT ? said[0] : null;
  }

  /** The domain whose separator the token names: of EIP-5267, or of its name and a usual version, on this chain and of this contract. */
  async function domainOf(token: Address): Promise<TokenDomain | null> {
    const separator = (await ask(token, 'DOMAIN_SEPARATOR'))?.[0];
    if (typeof separator !== 'string') return null;
    const [name, version, own] = await Promise.all([
      text(token, 'name'),
      text(token, 'version'),
      ask(token, 'eip712Domain'),
    ]);
    const place = { chainId, verifyingContract: token };
    const names = [own?.[1], name].filter((one) => typeof one === 'string' && one.length <= MAX_TEXT) as string[];
    const versions = [own?.[2], version, '1', '2'].filter((one) => typeof one === 'string' && one.length <= MAX_TEXT);
    const candidates = names.flatMap((one) => [
      ...(versions as string[]).map((other) => ({ name: one, version: other, ...place })),
      { name: one, ...place },
    ]);
    return candidates.find((domain) => TypedDataEncoder.hashDomain(domain) === separator) ?? null;
  }

  async function probe(token: Address, owner: Address, data: Hex): Promise<[before: bigint, after: bigint]> {
    const program =
      PermitProbe__factory.bytecode +
      AbiCoder.defaultAbiCoder()
        .encode(['address', 'address', 'address', 'bytes'], [token, owner, permit2, data])
        .slice(2);
    const answer = await run({ data: program, gas: toQuantity(PROBE_GAS) });
    const [before, after] = AbiCoder.defaultAbiCoder().decode(['uint256', 'uint256'], answer) as unknown as [
      bigint,
      bigint,
    ];
    return [before, after];
  }

  /** Whether a permit of somebody who is not known anywhere gives an allowance. */
  async function works(token: Address, style: PermitStyle, domain: TokenDomain): Promise<boolean> {
    const owner = nobody.address.toLowerCase() as Address;
    const nonce = (await ask(token, 'nonces', [owner]))?.[0];
    if (typeof nonce !== 'bigint') return false;
    const terms = { owner, spender: permit2, nonce, deadlineSec: FAR_SEC };
    const { types, message } = permitTypedData(style, domain, terms);
    const { EIP712Domain: _, ...rest } = types;
    const signature = (await nobody.signTypedData(domain, rest, message)) as Hex;
    try {
      const [before, after] = await probe(token, owner, permitCall(style, terms, signature));
      return after > before;
    } catch (error) {
      if (isFailedCall(error)) return false;
      throw error;
    }
  }

  async function findOut(token: Address): Promise<PermitSupport | null> {
    const domain = await domainOf(token);
    if (domain === null) return null;
    for (const style of ['eip2612', 'dai'] as const) if (await works(token, style, domain)) return { style, domain };
    return null;
  }

  return {
    async supportOf(token) {
      if (!(await settlerCode.has('fillWithPermit'))) return null;
      const known = kept.get(token);
      if (known !== undefined && Math.abs(nowMs() - known.atMs) < KEEP_MS) return known.support;
      const support = findOut(token);
      kept.set(token, { atMs: nowMs(), support });
      // A failure is not cached.
      support.catch(() => kept.delete(token));
      return support;
    },
    async stateOf(token, owner, support) {
      const call = (selector: string, ...accounts: Address[]) => ({
        method: 'eth_call',
        params: [{ to: token, data: selector + accounts.map(wordOf).join(''), gas: toQuantity(CALL_GAS) }, 'latest'],
      });
      const calls = [call(ALLOWANCE, owner, permit2), ...(support === null ? [] : [call(NONCES, owner)])];
      try {
        return await joined(calls, (answers) => {
          const [allowanceUnits = 0n, nonce = 0n] = answers.map((answer) => wordIn(bytesOf(answer)));
          return { allowanceUnits, nonce };
        });
      } catch (error) {
        if (isFailedCall(error)) return { allowanceUnits: 0n, nonce: 0n };
        throw error;
      }
    },
    async allowanceAfter(token, owner, data) {
      try {
        return (await probe(token, owner, data))[1];
      } catch (error) {
        if (isFailedCall(error)) return null;
        throw error;
      }
    },
  };
}
