/** Why a call or a transaction failed, in one line for people. */
import { Interface } from 'ethers';
import { CurveBook__factory } from '../typechain-types/factories/CurveBook__factory.js';
import { Custodian__factory } from '../typechain-types/factories/Custodian__factory.js';
import { Entrypoint__factory } from '../typechain-types/factories/Entrypoint__factory.js';
import { OrderSettler__factory } from '../typechain-types/factories/OrderSettler__factory.js';

const INTERFACES = [
  new Interface(['error Error(string reason)', 'error Panic(uint256 code)']),
  CurveBook__factory.createInterface(),
  Custodian__factory.createInterface(),
  Entrypoint__factory.createInterface(),
  OrderSettler__factory.createInterface(),
];

/** Most causes of an error that are searched. */
const CAUSES_MAX = 6;
const LENGTH_MAX = 300;

/**
 * One line: the name and arguments of the error that a contract reverted with; else the node's answer; else the error's own message. It never
 * contains the payload of a request, which ethers appends to its messages.
 */
export function reasonOf(error: unknown): string {
  const chain = causesOf(error);
  for (const one of chain) {
    const data = (one as { data?: unknown }).data;
    if (typeof data === 'string' && /^0x([0-9a-f]{2})+$/i.test(data)) return `reverted with ${describeRevert(data)}`;
  }
  const messages = chain.map(messageOf).filter((message) => message !== '');
  return oneLine(messages.at(-1) ?? String(error));
}

/** Data of a revert: `UnknownMarket(0x…)`, or the text of a plain one. */
function describeRevert(data: string): string {
  for (const abi of INTERFACES) {
    const parsed = abi.parseError(data);
    if (parsed === null) continue;
    if (parsed.name === 'Error') return oneLine(String(parsed.args[0]));
    return `${parsed.name}(${parsed.args.toArray().map(String).join(', ')})`;
  }
  return `an error that is not of these contracts (${data.slice(0, 10)})`;
}

/** The error and its causes, outermost first. ethers keeps the node's answer in `error` or `info.error`. */
function causesOf(error: unknown): object[] {
  const chain: object[] = [];
  let next: unknown = error;
  while (typeof next === 'object' && next !== null && chain.length < CAUSES_MAX) {
    chain.push(next);
    const {
      error: inner,
      info,
      cause,
    } = next as { error?: unknown; info?: { error?: unknown } | null; cause?: unknown };
    next = inner ?? info?.error ?? cause;
  }
  return chain;
}

function messageOf(error: object): string {
  const { shortMessage, message, errors } = error as { shortMessage?: unknown; message?: unknown; errors?: unknown[] };
  if (typeof shortMessage === 'string') return shortMessage;
  // If no address of a host accepts the connection, the error's own message is empty and the reasons are in its parts.
  if (Array.isArray(errors) && (message === '' || message === undefined)) return errors.map(reasonOf).join('; ');
  return typeof message === 'string' ? message : '';
}

function oneLine(text: string): string {
  const line = text.split('\n', 1)[0] ?? '';
  return line.length > LENGTH_MAX ? `${line.slice(0, LENGTH_MAX)}…` : line;
}
