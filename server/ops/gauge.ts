/** Gauges that are computed at each scrape. */
import { Gauge, type Registry } from 'prom-client';
import { maxBig, minBig, powerOfTen, toSafeInt } from '../../core/amounts.js';

export type Labels = Record<string, string>;

/** A gauge that is computed at each scrape, from scratch. */
export function gauge(
  registry: Registry,
  [name, help, ...labelNames]: [name: string, help: string, ...labels: string[]],
  values: () => Iterable<[Labels, number]> | Promise<Iterable<[Labels, number]>>,
): void {
  new Gauge({
    name: `curvebook_${name}`,
    help,
    labelNames,
    registers: [registry],
    async collect() {
      this.reset();
      // A gauge without labels would report zero after a reset, which would be false, so it is removed.
      if (labelNames.length === 0) this.remove();
      for (const [labels, value] of await values()) this.set(labels, value);
    },
  });
}

/** The value of a gauge without labels; no sample when it is unknown. */
export const one = (value: number | null | undefined): [Labels, number][] =>
  value === null || value === undefined ? [] : [[{}, value]];

/** Prometheus has doubles only; values beyond their exact range are capped, which does not matter to an alarm. */
export function saturated(units: bigint): number {
  const limit = BigInt(Number.MAX_SAFE_INTEGER);
  return toSafeInt(maxBig(minBig(units, limit), -limit));
}

/** Digits after the point of amounts in whole tokens. */
const TOKEN_DIGITS = 6;

/**
 * An amount in whole tokens, with six digits: in the smallest units, amounts of tokens with many decimals would exceed the exact range of
 * doubles.
 */
export function inTokens(units: bigint, decimals: number): number {
  const scaled = (units * powerOfTen(TOKEN_DIGITS)) / powerOfTen(decimals);
  return saturated(scaled) / toSafeInt(powerOfTen(TOKEN_DIGITS));
}
