/**
 * The storage layout and the interface of each contract as small texts, which are committed so that an accidental change shows in review.
 * `npm run snapshots` writes them.
 */
import { EventFragment, FunctionFragment, type Fragment } from 'ethers';
import type { Build } from '../build.js';
import { layoutLines } from '../upgrade/storage.js';

/** All contracts that are deployed. */
export const SNAPSHOT_CONTRACTS = [
  'Custodian',
  'CurveBook',
  'Entrypoint',
  'OrderSettler',
  'CurveLens',
  'PropAmmAdapter',
  'UniswapV4Router',
] as const;

/** Within the project. */
export const SNAPSHOT_FOLDER = 'snapshots/contracts';

/** Structs of ERC-7201 namespaces: left out, since their members are listed under the namespace. */
const NAMESPACE_STRUCT = /^struct \S+Storage slot /;

/** One text per contract: storage, functions, events and errors, each line with its slot, selector or topic. */
export function contractSnapshot(build: Build, name: string): string {
  const { interface: abi } = build.contract(name);
  const section = (title: string, lines: readonly string[]): string[] => [`[${title}]`, ...lines, ''];
  const ofType = (type: string): string[] =>
    abi.fragments
      .filter((fragment) => fragment.type === type)
      .map((fragment) => `${idOf(fragment)} ${fragment.format('full')}`)
      .sort((a, b) => (nameIn(a) < nameIn(b) ? -1 : 1));
  return [
    ...section(
      'storage',
      layoutLines(build.layout(name)).filter((line) => !NAMESPACE_STRUCT.test(line)),
    ),
    ...section('functions', ofType('function')),
    ...section('events', ofType('event')),
    ...section('errors', ofType('error')),
  ]
    .join('\n')
    .trimEnd()
    .concat('\n');
}

/** `0x12345678 error Name(…)` by what follows the id. */
const nameIn = (line: string): string => line.slice(line.indexOf(' ') + 1);

/** The selector of a function or an error, the topic of an event. */
export function idOf(fragment: Fragment): string {
  if (EventFragment.isFragment(fragment)) return fragment.topicHash;
  if (FunctionFragment.isFragment(fragment)) return fragment.selector;
  return 'selector' in fragment ? String(fragment.selector) : '';
}
