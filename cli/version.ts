import { readFileSync } from 'node:fs';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };

/** The version of this release. */
export const VERSION: string = manifest.version;

/** How the HTTP interface introduces itself. */
export const API_TITLE = 'Curvebook';
export const API_DESCRIPTION =
  'Maker liquidity platform: read API under /v0, gasless swaps under /api/v1. Amounts under /v0 are exact decimal strings in token ' +
  'units, those under /api/v1 are base units. The order interface (/exchange, /info, /ws) is described in docs/orders.md of the repository, its messages on /ws in /asyncapi.json.';
