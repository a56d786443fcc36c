/** Storage layouts in a form that stays equal unless the layout itself changes. */
import type { StorageItem, StorageLayout, TypeItem } from '@openzeppelin/upgrades-core';
import { DeployError } from '../errors.js';

/**
 * The layout without line numbers, without the compiler's running numbers in the names of types, and with types in alphabetical order.
 * Throws when two types would get the same name.
 */
export function normalizeLayout(layout: StorageLayout): StorageLayout {
  const types: Record<string, TypeItem> = {};
  for (const [id, item] of Object.entries(layout.types).sort(([a], [b]) => (stable(a) < stable(b) ? -1 : 1))) {
    const name = stable(id);
    if (types[name] !== undefined && types[name].label !== item.label) {
      throw new DeployError('NOT_BUILT', `two types are called ${name}: ${types[name].label} and ${item.label}`);
    }
    const members = item.members?.map((member) =>
      typeof member === 'string' ? member : { ...member, type: stable(member.type) },
    ) as TypeItem['members'];
    types[name] = {
      ...item,
      ...(members === undefined ? {} : { members }),
      ...(item.underlying === undefined ? {} : { underlying: stable(item.underlying) }),
    };
  }
  const namespaces = Object.entries(layout.namespaces ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    ...(layout.solcVersion === undefined ? {} : { solcVersion: layout.solcVersion }),
    storage: layout.storage.map(normalizeItem),
    types,
    namespaces: Object.fromEntries(namespaces.map(([name, items]) => [name, items.map(normalizeItem)])),
  };
}

function normalizeItem({ contract, label, type, src, offset, slot }: StorageItem): StorageItem {
  return { contract, label, type: stable(type), src: src.replace(/:\d+$/, ''), offset, slot };
}

/** `t_struct(Market)123_storage` is `t_struct(Market)0_storage`. */
function stable(type: string): string {
  return type.replace(/\)\d+/g, ')0');
}
