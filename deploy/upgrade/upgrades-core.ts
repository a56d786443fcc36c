/** OpenZeppelin's checks, loaded by `require`: the package is CommonJS, and the result of a default import depends on the loader. */
import { createRequire } from 'node:module';
import type * as Core from '@openzeppelin/upgrades-core';

export const upgradesCore = createRequire(import.meta.url)('@openzeppelin/upgrades-core') as typeof Core;
