/** docs/settings.md, from the schema that validates the settings. `node --import tsx cli/settings-doc.ts` writes it. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { settingsSchema } from './config.js';

interface Shape {
  description?: string;
  default?: string | number | boolean;
  type?: string;
  enum?: string[];
  anyOf?: Shape[];
  const?: string | number;
  minimum?: number;
  maximum?: number;
}

export const SETTINGS_DOC = fileURLToPath(new URL('../docs/settings.md', import.meta.url));

const HEADER = `# Settings

Read from the environment once, at the start; a command's option of the same meaning wins. Absent or blank means the default; present but invalid
stops the start, with all problems listed at once, each with the setting's name. Numbers are decimal digits. Some are judged
together, as far as a role of the process uses them:

- \`TOUCH_BEFORE_SEC\` and \`CUT_BEFORE_BLOCK_MS\` must be less than \`CURVE_TTL_SEC\`; the latter should be less than the time between two blocks, or
  books are cut at once after each, which the poster logs
- \`POLL_INTERVAL_MS\` of a watcher must be less than 5000, the age at which the ledger is stale
- \`FEE_CEILING_GWEI\` must be at least 0.001 where a role sends transactions, and \`POST_BUDGET_GWEI_PER_HOUR\` pay for a post of 60000 gas at it
- \`SWAP_ORDER_TTL_SEC\` must not be less than \`SWAP_QUOTE_TTL_SEC\`, \`SMALL_CLAIM_INTERVAL_SEC\` not less than \`CLAIM_INTERVAL_SEC\`,
  \`MAX_CURVE_ERROR_MILLI_BPS\` not less than \`CURVE_ERROR_MILLI_BPS\`; no two keepers may share a key
- \`METRICS_PORT\` of a gateway must not be its \`PORT\`

Names in \`OPERATOR_FLOORS\`, \`REFERENCE_PRICES\` and \`MIN_ORDER_VALUES\` that no listed market bears are of no effect; the log and \`curvebook status\` say
so. This page is made from the schema that checks them: \`npm run docs:settings\`.

| setting | default | values | |
|---|---|---|---|
`;

/** One setting as people read it. */
interface SettingRow {
  name: string;
  /** Null for one without a default. */
  fallback: string | null;
  values: string;
  description: string;
}

/** Every setting, in the order of the schema. */
export function settingRows(): SettingRow[] {
  const shapes = (io: 'input' | 'output'): Record<string, Shape> =>
    (z.toJSONSchema(settingsSchema, { io, unrepresentable: 'any' }) as { properties: Record<string, Shape> })
      .properties;
  const [inputs, outputs] = [shapes('input'), shapes('output')];
  return Object.entries(settingsSchema.shape).map(([name, field]) => {
    // Numbers are written as digits, of which a schema says nothing: what they are read as has the bounds.
    const written = inputs[name] ?? {};
    const shape = written.type === undefined && written.enum === undefined ? { ...outputs[name], ...written } : written;
    return { name, fallback: fallbackOf(shape, field), values: valuesOf(shape), description: field.description ?? '' };
  });
}

/** The whole page as Markdown. */
export function settingsDoc(): string {
  const rows = settingRows().map(({ name, fallback, values, description }) => {
    const shown = fallback === null ? '–' : `\`${fallback}\``;
    return `| \`${name}\` | ${shown} | ${values} | ${description.replaceAll('|', '\\|')} |`;
  });
  return `${HEADER}${rows.join('\n')}\n`;
}

function fallbackOf(shape: Shape, field: z.ZodType): string | null {
  const { data } = field.safeParse(undefined);
  const value = shape.default ?? (typeof data === 'number' ? data : undefined);
  return value === undefined ? null : String(value);
}

function valuesOf(shape: Shape): string {
  if (shape.enum !== undefined) return shape.enum.join(', ');
  if (shape.anyOf !== undefined) return shape.anyOf.map((one) => String(one.const)).join(', ');
  if (shape.minimum !== undefined || shape.maximum !== undefined) return `${shape.minimum} to ${shape.maximum}`;
  return shape.type === 'string' ? 'text' : '';
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(SETTINGS_DOC, settingsDoc());
