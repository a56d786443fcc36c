/** Writes the ABIs of the package from what the contracts compiled to. `npm run docs:api` runs it, and a test fails when they are stale. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CurveBook__factory } from '../typechain-types/factories/CurveBook__factory.js';
import { Custodian__factory } from '../typechain-types/factories/Custodian__factory.js';
import { Entrypoint__factory } from '../typechain-types/factories/Entrypoint__factory.js';
import { OrderSettler__factory } from '../typechain-types/factories/OrderSettler__factory.js';
import { IPermit2__factory } from '../typechain-types/factories/interfaces/IPermit2__factory.js';
import { CurveLens__factory } from '../typechain-types/factories/periphery/CurveLens__factory.js';
import { PropAmmAdapter__factory } from '../typechain-types/factories/periphery/PropAmmAdapter__factory.js';

const ABIS: Readonly<Record<string, readonly object[]>> = {
  custodian: Custodian__factory.abi,
  curveBook: CurveBook__factory.abi,
  entrypoint: Entrypoint__factory.abi,
  orderSettler: OrderSettler__factory.abi,
  lens: CurveLens__factory.abi,
  adapter: PropAmmAdapter__factory.abi,
  permit2: IPermit2__factory.abi,
};

/** Path within the package, and contents, of each generated file. */
export function abiFiles(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(ABIS).map(([name, abi]) => {
      // Who calls a contract never constructs it.
      const items = abi.filter((item) => (item as { type: string }).type !== 'constructor');
      const rows = items.map((item) => `  ${JSON.stringify(item)},\n`).join('');
      return [
        `src/abi/${name}.ts`,
        `/** Generated: npm run docs:api. */\nexport const ${name}Abi = [\n${rows}] as const;\n`,
      ];
    }),
  );
}

/** The package's folder. */
export const PACKAGE_ROOT = fileURLToPath(new URL('.', import.meta.url));

/** Writes each of them. */
export function writeAbiFiles(): void {
  for (const [path, text] of Object.entries(abiFiles())) {
    mkdirSync(dirname(PACKAGE_ROOT + path), { recursive: true });
    writeFileSync(PACKAGE_ROOT + path, text);
  }
}
