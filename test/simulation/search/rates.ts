/** Faults that strike more or less often than usual: a defect that needs two of a rare kind shows in few runs when there are many of it. */
import type { FaultRates } from '../world.js';

/**
 * The rates with those that `text` names in their place: `name=rate`, parted by commas, each rate from 0 to 1. Throws RangeError for a name that no
 * fault has, and for any other rate.
 */
export function withRates(faults: FaultRates, text: string): FaultRates {
  const named = text.split(',').map((part) => {
    const [name = '', rate = ''] = part.split('=').map((one) => one.trim());
    if (name === 'lies' || !(name in faults)) throw new RangeError(`${name || part} is no fault with a rate`);
    const value = /^(?:0|1|0?\.\d+)$/.test(rate) ? Number.parseFloat(rate) : Number.NaN;
    if (Number.isNaN(value)) throw new RangeError(`the rate of ${name} is from 0 to 1, not ${rate || 'missing'}`);
    return [name, value] as const;
  });
  return { ...faults, ...Object.fromEntries(named) };
}
