/**
 * Whether one implementation reads what another one stored as what it is. A layout is a valid successor of another one if it only adds to it.
 */
import type { StorageItem, StorageLayout } from '@openzeppelin/upgrades-core';
import { isOnChain, type Context } from '../context.js';
import type { ProxyName } from '../contracts.js';
import { DeployError } from '../errors.js';
import type { DeploymentRecord, ImplementationRecord } from '../record.js';
import { upgradesCore } from './upgrades-core.js';

/** Throws `UNSAFE_UPGRADE`, with `problem` first, when data stored by `live` would be read as something else by `next`. */
export function assertLayoutSafe(problem: string, live: StorageLayout, next: StorageLayout): void {
  const report = reportOf(live, next);
  if (!report.ok) throw new DeployError('UNSAFE_UPGRADE', `${problem}\n${report.explain(false)}`);
}

function reportOf(earlier: StorageLayout, later: StorageLayout): { ok: boolean; explain(color: boolean): string } {
  return upgradesCore.getStorageUpgradeReport(earlier, later, upgradesCore.withValidationDefaults({ kind: 'uups' }));
}

/** The recorded layout of an implementation. Throws `LAYOUT_UNKNOWN`. */
export function recordedLayout({ files }: Context, { contract, address }: ImplementationRecord): StorageLayout {
  const layout = files.readLayouts()[address];
  if (layout === undefined)
    throw new DeployError('LAYOUT_UNKNOWN', `no storage layout of ${contract} at ${address} is recorded`);
  return layout;
}

/**
 * Compares the layout of an implementation at `address`, which is to run, with that of each other one that the record names beside the live one. Those
 * that ran before have left their data, and those that are proposed may run before it or after it. Either may be the one that adds to the
 * other; what is in the way is a place that the two use differently. What the chain does not have has left no data, and can't be upgraded to.
 * Throws `UNSAFE_UPGRADE`, `LAYOUT_UNKNOWN`.
 */
export async function assertRelated(
  context: Context,
  record: DeploymentRecord,
  name: ProxyName,
  { contract, address, layout }: { contract: string; address: string; layout: StorageLayout },
): Promise<void> {
  const others = [
    ...(record.previous[name] ?? []).map((one) => ({ one, how: 'which ran before' })),
    ...(record.proposed[name] ?? []).map((one) => ({ one, how: 'which is proposed' })),
  ];
  const seen = new Set([address, record.implementations[name].address]);
  for (const { one, how } of others) {
    if (seen.has(one.address) || !(await isOnChain(context.provider, one))) continue;
    seen.add(one.address);
    const conflict = conflictOf(recordedLayout(context, one), layout);
    if (conflict === null) continue;
    const remedy =
      how === 'which ran before'
        ? 'leave its variables where they are, and put yours behind them'
        : `build on it, or, once the owner has discarded it for good, take it out of "proposed" in ${context.files.path}`;
    throw new DeployError(
      'UNSAFE_UPGRADE',
      `${contract} uses storage otherwise than ${one.contract} of ${one.commit} at ${one.address}, ${how}: ${remedy}\n${conflict}`,
    );
  }
}

/** What keeps each of two layouts from being a valid successor of the other; null if, in every place of storage, one of them is. */
function conflictOf(one: StorageLayout, other: StorageLayout): string | null {
  for (const place of [null, ...Object.keys(one.namespaces ?? {})]) {
    const [a, b] = [partOf(one, place), partOf(other, place)];
    if (a === null || b === null) continue;
    const report = reportOf(a, b);
    if (!report.ok && !reportOf(b, a).ok) return report.explain(false);
  }
  return null;
}

/** One ERC-7201 namespace of a layout, or what is in none. No two of these places overlap. Null if the layout does not have it. */
function partOf(layout: StorageLayout, namespace: string | null): StorageLayout | null {
  if (namespace === null) return { ...layout, namespaces: {} };
  const items = layout.namespaces?.[namespace];
  return items === undefined ? null : { ...layout, storage: [], namespaces: { [namespace]: items } };
}

/** What is in one layout only, as `- …` and `+ …`. */
export function layoutDifference(live: StorageLayout, next: StorageLayout): string[] {
  const [old, young] = [layoutLines(live), layoutLines(next)];
  return [
    ...old.filter((line) => !young.includes(line)).map((line) => `- ${line}`),
    ...young.filter((line) => !old.includes(line)).map((line) => `+ ${line}`),
  ];
}

/** One line per variable and per member of a struct. */
export function layoutLines({ storage, types, namespaces = {} }: StorageLayout): string[] {
  const line = (
    where: string,
    { label, type, slot, offset }: Pick<StorageItem, 'label' | 'type' | 'slot' | 'offset'>,
  ) => `${where} slot ${slot} offset ${offset}: ${types[type]?.label ?? type} ${label}`;
  const members = Object.values(types).flatMap(({ label, members: all = [] }) =>
    all.flatMap((member) => (typeof member === 'string' ? [] : [line(label, member)])),
  );
  const spaces = Object.entries(namespaces).flatMap(([name, items]) => items.map((item) => line(name, item)));
  return [...storage.map((item) => line('storage', item)), ...spaces, ...members];
}
