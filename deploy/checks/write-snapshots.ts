/** `npm run snapshots`: writes the texts that `snapshots.ts` makes of the contracts as they are now. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readBuild } from '../build.js';
import { SNAPSHOT_CONTRACTS, SNAPSHOT_FOLDER, contractSnapshot } from './snapshots.js';

const build = readBuild();
mkdirSync(SNAPSHOT_FOLDER, { recursive: true });
for (const name of SNAPSHOT_CONTRACTS)
  writeFileSync(join(SNAPSHOT_FOLDER, `${name}.txt`), contractSnapshot(build, name));
console.log(`${SNAPSHOT_CONTRACTS.length} contracts are described in ${SNAPSHOT_FOLDER}/`);
