/** What a prepared call does, in the words of its call data, for those who compare it with what they are asked to sign. */
import type { Interface } from 'ethers';
import { CurveBook__factory } from '../../typechain-types/factories/CurveBook__factory.js';
import type { Action } from '../actions.js';
import type { Build } from '../build.js';

const CURVE_BOOK = CurveBook__factory.createInterface();

/** Adds to the summary of a listing which tokens it lists: for good, whatever a configuration calls them. */
export function withTokens(action: Action): Action {
  if (action.contract !== 'curveBook') return action;
  const call = CURVE_BOOK.parseTransaction({ data: action.data });
  if (call?.name !== 'listMarket') return action;
  const [base, quote] = call.args.toArray().map(String);
  return { ...action, summary: `${action.summary}, base ${base}, quote ${quote}` };
}

/** The function and arguments of call data; null where it fits no function of the interface. */
function decoded(abi: Interface, data: string): string | null {
  try {
    const call = abi.parseTransaction({ data });
    return call === null ? null : `${call.name}(${call.args.toArray().map(String).join(', ')})`;
  } catch {
    return null;
  }
}

/** The end of an upgrade's summary: the call that the proxy runs on its new implementation. Empty for none, or for one that is not known. */
export function thenCalls(build: Build, contract: string, call: string | undefined): string {
  if (call === undefined || call === '0x') return '';
  const text = decodedBy(build, contract, call);
  return `, then calls ${text === null ? call : `${text} (${call})`}`;
}

/** Null where the sources at hand do not have the contract, too. */
function decodedBy(build: Build, contract: string, call: string): string | null {
  try {
    return decoded(build.contract(contract).interface, call);
  } catch {
    return null;
  }
}
