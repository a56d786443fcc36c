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

Read from the environment once, at the start; a command's option of the same meaning wins. Absent means the default; present but invalid
stops the start, with all problems listed at once. This page is made from the schema that checks them: \`npm run docs:settings\`.

| setting | default | values | |
|---|---|---|---|
`;

/** The whole page as Markdown. */
export function settingsDoc(): string {
  const { properties } = z.toJSONSchema(settingsSchema, { io: 'input', unrepresentable: 'any' }) as {
    properties: Record<string, Shape>;
  };
  const rows = Object.entries(settingsSchema.shape).map(([name, field]) => {
    const shape = properties[name] ?? {};
    const fallback = shape.default === undefined ? '–' : `\`${String(shape.default)}\``;
    return `| \`${name}\` | ${fallback} | ${valuesOf(shape)} | ${(field.description ?? '').replaceAll('|', '\\|')} |`;
  });
  return `${HEADER}${rows.join('\n')}\n`;
}

function valuesOf(shape: Shape): string {
  if (shape.enum !== undefined) return shape.enum.join(', ');
  if (shape.anyOf !== undefined) return shape.anyOf.map((one) => String(one.const)).join(', ');
  if (shape.minimum !== undefined || shape.maximum !== undefined) return `${shape.minimum} to ${shape.maximum}`;
  return shape.type === 'string' ? 'text' : '';
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(SETTINGS_DOC, settingsDoc());
