/** OpenZeppelin's checks. The package is CommonJS, and how a default import of it comes out depends on who loads it. */
import { createRequire } from 'node:module';
import type * as Core from '@openzeppelin/upgrades-core';

export const upgradesCore = createRequire(import.meta.url)('@openzeppelin/upgrades-core') as typeof Core;
