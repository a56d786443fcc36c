/**
 * What a proposal of the owner's would change: each call decoded by the ABIs that the page has, beside what the chain has now. What the file says of itself
 * is not shown: a signer compares calls, and not words about them.
 */
import type { Address } from '../../../core/types.js';
import { formatUnits } from '../../../core/amounts.js';
import { CurvebookError } from '../../../sdk/src/index.js';
import { keccak256, keccakText, hexToBytes } from '../../../sdk/src/hash.js';
import { callData } from '../../../sdk/src/wallet.js';
import type { Deployment } from '../market-context.js';
import { onChain } from '../wallet/provider.js';
import type { Provider } from '../wallet/provider.js';
import { IMPLEMENTATION_SLOT } from './chain.js';

interface ProposedCall {
  to: string;
  value: string;
  data: string;
}

/** Calls of one file; more than any command proposes. */
const MOST_CALLS = 200;

/** Throws Error with a sentence for whoever pasted it. */
export function parseProposal(text: string, chainId: number): ProposedCall[] {
  let file: { chainId?: unknown; transactions?: unknown };
  try {
    file = JSON.parse(text) as typeof file;
  } catch {
    throw new Error('This is no JSON: paste the whole file that --propose wrote.');
  }
  const calls = typeof file === 'object' && file !== null ? file.transactions : null;
  if (!Array.isArray(calls) || calls.length === 0 || calls.length > MOST_CALLS)
    throw new Error(`A proposal has a list of 1 to ${MOST_CALLS} transactions.`);
  if (String(file.chainId) !== String(chainId))
    throw new Error(
      `The proposal is for chain ${String(file.chainId).slice(0, 20)}, this deployment is on ${chainId}.`,
    );
  return calls.map((call: Partial<Record<keyof ProposedCall, unknown>>, i) => {
    const { to, value = '0', data } = call ?? {};
    if (typeof to !== 'string' || !/^0x[0-9a-fA-F]{40}$/.test(to)) throw new Error(`Call ${i + 1} names no address.`);
    if (typeof data !== 'string' || !/^0x(?:[0-9a-fA-F]{2})*$/.test(data))
      throw new Error(`Call ${i + 1} has no call data in hex.`);
    return { to: to.toLowerCase(), value: String(value), data: data.toLowerCase() };
  });
}

/** One call for people. `problem`: why it should not be signed before somebody has explained it. */
export interface Change {
  contract: string;
  call: string;
  before: string;
  after: string;
  problem: string | null;
}

interface AbiFunction {
  name: string;
  inputs: readonly { name: string; type: string }[];
}

/** The call's function and its arguments, decoded strictly: what is left over, or does not fit its type, makes it unreadable. Null then. */
export function decodeCall(abi: unknown, data: string): { name: string; args: Record<string, string> } | null {
  const functions = (abi as readonly { type: string; name?: string; inputs?: AbiFunction['inputs'] }[]).flatMap(
    ({ type, name, inputs = [] }): AbiFunction[] =>
      type === 'function' && name !== undefined ? [{ name, inputs }] : [],
  );
  const known = functions.find(({ name, inputs }) =>
    data.startsWith(keccakText(`${name}(${inputs.map(({ type }) => type).join()})`).slice(0, 10)),
  );
  if (known === undefined) return null;
  const body = data.slice(10);
  const word = (i: number): string => body.slice(64 * i, 64 * (i + 1));
  const args: Record<string, string> = {};
  let used = known.inputs.length;
  for (const [i, { name, type }] of known.inputs.entries()) {
    if (word(i).length !== 64) return null;
    const value = type === 'bytes' ? bytesAt(body, i, used) : staticValue(type, word(i));
    if (value === null) return null;
    args[name] = value;
    if (type === 'bytes') used += 1 + Math.ceil((value.length - 2) / 64);
  }
  return body.length === 64 * used ? { name: known.name, args } : null;
}

function staticValue(type: string, word: string): string | null {
  const value = BigInt(`0x${word}`);
  if (type === 'bytes32') return `0x${word}`;
  if (type === 'address') return value >> 160n === 0n ? `0x${word.slice(24)}` : null;
  if (type === 'bool') return value > 1n ? null : String(value === 1n);
  const bits = /^uint(\d+)$/.exec(type)?.[1];
  return bits === undefined || value >> BigInt(bits) !== 0n ? null : String(value);
}

/** Bytes that stand right after the words before them, as every encoder writes them. */
function bytesAt(body: string, i: number, from: number): string | null {
  if (BigInt(`0x${body.slice(64 * i, 64 * (i + 1))}`) !== 32n * BigInt(from)) return null;
  const length = body.slice(64 * from, 64 * (from + 1));
  const bytes = length.length === 64 ? BigInt(`0x${length}`) : null;
  if (bytes === null || bytes * 2n > BigInt(body.length)) return null;
  const start = 64 * (from + 1);
  const digits = parseInt(bytes.toString(), 10) * 2;
  const padding = body.slice(start + digits, 64 * Math.ceil((start + digits) / 64));
  return /^0*$/.test(padding) && body.length >= start + digits ? `0x${body.slice(start, start + digits)}` : null;
}

/**
 * What each call would change, in the order of the file; each beside the chain as it is before the first of them. A call that an upgrade makes follows
 * the upgrade. Throws CurvebookError `WRONG_CHAIN` where the provider is on another chain, and `NO_CONTRACT` where a contract does not answer as it should.
 */
export function changesOf(
  provider: Provider,
  deployment: Deployment,
  calls: readonly ProposedCall[],
): Promise<Change[]> {
  const look = createLook(provider);
  return onChain(provider, deployment.chain_id, async () =>
    (await Promise.all(calls.map((call) => changesBy(look, deployment, call)))).flat(),
  );
}

/** Reads of the chain at its newest block. */
interface Look {
  /** Words that a view function returns; at least one. */
  words(to: string, signature: string, ...args: (Address | bigint)[]): Promise<[bigint, ...bigint[]]>;
  slot(address: string, slot: string): Promise<bigint>;
  /** Null where there is no code. */
  codeHash(address: string): Promise<string | null>;
}

function createLook(provider: Provider): Look {
  return {
    async words(to, signature, ...args) {
      const call = { to, data: callData(signature, args) };
      const answer = (await provider.request({ method: 'eth_call', params: [call, 'latest'] })) as string;
      const [first, ...rest] = (answer.slice(2).match(/.{64}/g) ?? []).map((word) => BigInt(`0x${word}`));
      if (first === undefined) throw new CurvebookError('NO_CONTRACT', `${to} does not answer ${signature}`);
      return [first, ...rest];
    },
    slot: async (address, slot) =>
      BigInt((await provider.request({ method: 'eth_getStorageAt', params: [address, slot, 'latest'] })) as string),
    async codeHash(address) {
      const code = (await provider.request({ method: 'eth_getCode', params: [address, 'latest'] })) as string;
      return code === '0x' ? null : keccak256(hexToBytes(code));
    },
  };
}

function unread(contract: string, data: string, problem: string): Change {
  return { contract, call: data.length > 74 ? `${data.slice(0, 74)}…` : data, before: '–', after: '–', problem };
}

async function changesBy(look: Look, deployment: Deployment, { to, value, data }: ProposedCall): Promise<Change[]> {
  const found = Object.entries(deployment.contracts).find(([, { address }]) => address === to);
  if (found === undefined) return [unread(to, data, 'this address is no contract of the deployment')];
  const [name, contract] = found;
  if (value !== '0') return [unread(name, data, `it sends ${value} wei, and no call of the owner does`)];
  const asked = { look, deployment, ...contract };
  const change = await changeOf(name, data, asked);
  const upgrade = decodeCall(contract.abi, data);
  const { data: inner = '0x' } = upgrade?.name === UPGRADE ? upgrade.args : {};
  if (inner === '0x') return [change];
  // The proxy makes it as the owner, right after: whatever the owner may do, it may do.
  const within = `${name}, by the upgrade`;
  const isUpgrade = decodeCall(contract.abi, inner)?.name === UPGRADE;
  return [
    change,
    isUpgrade ? unread(within, inner, 'an upgrade within an upgrade') : await changeOf(within, inner, asked),
  ];
}

/** What one call to a contract would change. */
async function changeOf(
  name: string,
  data: string,
  { abi, ...asked }: Omit<Asked, 'args'> & { abi: unknown },
): Promise<Change> {
  const call = decodeCall(abi, data);
  if (call === null) return unread(name, data, 'these data are no call that the contract has, or not encoded as usual');
  const text = `${call.name}(${Object.values(call.args).join(', ')})`;
  const reader = CHANGES[call.name];
  if (reader === undefined) {
    const problem = 'this function is no setting that the owner changes by a command';
    return { contract: name, call: text, before: '–', after: '–', problem };
  }
  return { contract: name, call: text, problem: null, ...(await reader({ ...asked, args: call.args })) };
}

interface Asked {
  look: Look;
  deployment: Deployment;
  /** Of the contract that is called. */
  address: string;
  args: Readonly<Record<string, string>>;
}

type Reader = (asked: Asked) => Promise<Pick<Change, 'before' | 'after'> & Partial<Pick<Change, 'problem'>>>;

const asAddress = (word: bigint): string => `0x${word.toString(16).padStart(40, '0')}`;

const right =
  (getter: string, argument: string): Reader =>
  async ({ look, address, args }) => {
    const [has] = await look.words(address, `${getter}(address)`, args[argument] as Address);
    const word = (is: boolean): string => (is ? 'allowed' : 'not allowed');
    return { before: word(has === 1n), after: word(args.allowed === 'true') };
  };

/** Places of the fields in the words of marketState. */
const STATE = { base: 0, quote: 1, maxTtlSec: 5, seq: 12, chargesFees: 13 } as const;

const marketSetting =
  (field: keyof typeof STATE, argument: string, say: (value: string) => string): Reader =>
  async ({ look, deployment, address, args }) => {
    const words = await look.words(address, 'marketState(bytes32)', BigInt(args.market ?? '0x0'));
    const wordAt = (place: number): bigint => {
      const word = words[place];
      if (word === undefined) throw new CurvebookError('NO_CONTRACT', `${address} does not answer marketState whole`);
      return word;
    };
    const symbol = (place: number): string => {
      const token = asAddress(wordAt(place));
      return deployment.tokens.find((one) => one.address === token)?.symbol ?? token;
    };
    const pair = `${symbol(STATE.base)}-${symbol(STATE.quote)}`;
    const now = wordAt(STATE[field]).toString();
    const next = args[argument] ?? '';
    const flag: Readonly<Record<string, string>> = { true: '1', false: '0' };
    return { before: `${pair}: ${say(now)}`, after: `${pair}: ${say(flag[next] ?? next)}` };
  };

const PPM_PLACES = 4;
const percent = (ppm: bigint): string => `${formatUnits(ppm, PPM_PLACES)} %`;

/** The one function that carries another call. */
const UPGRADE = 'upgradeToAndCall';

/** By the names of the owner's functions; what each sets now, and would set. */
const CHANGES: Readonly<Record<string, Reader>> = {
  setPoster: right('isPoster', 'poster'),
  setExecutor: right('isExecutor', 'executor'),
  setTarget: right('isTarget', 'target'),
  async setWithdrawDelay({ look, address, args }) {
    const [now] = await look.words(address, 'withdrawDelay()');
    return { before: `${now} s`, after: `${args.delaySec} s` };
  },
  async setTakerFee({ look, address, args }) {
    const [now] = await look.words(address, 'takerFee(address)', args.taker as Address);
    return { before: percent(now), after: percent(BigInt(args.ratePpm ?? '0')) };
  },
  setMaxTtl: marketSetting('maxTtlSec', 'maxTtlSec', (sec) => `longest life of a curve ${sec} s`),
  setTakerFees: marketSetting('chargesFees', 'charged', (is) => `fees of takers ${is === '1' ? 'on' : 'off'}`),
  setSeq: marketSetting('seq', 'seq', (seq) => `next curve after #${seq}`),
  async listMarket({ deployment, args }) {
    const symbol = (address: string): string =>
      deployment.tokens.find((one) => one.address === address)?.symbol ?? address;
    const pair = `${symbol(args.base ?? '')}-${symbol(args.quote ?? '')}`;
    const grid = `lot 10^${args.lotExponent}, tick per lot ${args.tickLotMantissa} × 10^${args.tickLotExponent} units`;
    return { before: 'not listed', after: `${pair} for good: ${grid}, longest life ${args.maxTtlSec} s` };
  },
  async transferOwnership({ look, address, args }) {
    const [now] = await look.words(address, 'owner()');
    return { before: `owner ${asAddress(now)}`, after: `offered to ${args.newOwner}; it has to accept` };
  },
  async acceptOwnership({ look, address }) {
    const [now] = await look.words(address, 'owner()');
    const [next] = await look.words(address, 'pendingOwner()');
    const problem = next === 0n ? 'the ownership is offered to nobody' : null;
    return { before: `owner ${asAddress(now)}`, after: `owner ${asAddress(next)}`, problem };
  },
  async [UPGRADE]({ look, address, args }) {
    const now = asAddress(await look.slot(address, IMPLEMENTATION_SLOT));
    const next = args.newImplementation ?? '';
    const [before, after] = await Promise.all([look.codeHash(now), look.codeHash(next)]);
    const then = args.data === '0x' ? 'then calls nothing' : 'then makes the call below';
    return {
      before: `code at ${now}, hash ${before ?? 'none'}`,
      after: `code at ${next}, hash ${after ?? 'none'}; ${then}`,
      problem: after === null ? 'there is no code at the new address' : null,
    };
  },
};
