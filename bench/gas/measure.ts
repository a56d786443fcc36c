/** Measures every row in one process, on one chain. */
import { createVenue, measureCurvebook } from './curvebook.js';
import { measureGasless } from './gasless.js';
import { measureRoutes } from './routes.js';
import type { Row } from './rows.js';
import { measureFloor, measureV2, measureV3, measureV4 } from './uniswap.js';
import { createWorld, DEPLOYER } from './world.js';

/** All rows, in the order of the table. Takes about ten seconds; gas does not vary from run to run. */
export async function measureAll(): Promise<Row[]> {
  const world = await createWorld();
  const { chain, compiled } = world;
  try {
    const meter = await chain.deploy(chain.signers[DEPLOYER]!, compiled.GasMeter.abi, compiled.GasMeter.bytecode);
    const rows: Row[] = [];
    // After each venue the tokens' balances are as before it, so that no venue's figures depend on another venue.
    for (const measure of [measureFloor, measureV2, measureV3, measureV4]) {
      rows.push(...(await chain.undo(() => measure(world))));
    }
    const venue = await createVenue(world);
    const ours = await measureCurvebook(venue, meter);
    for (const pair of world.pairs) ours.push(...(await measureGasless(venue, pair)));
    for (const pair of world.pairs) ours.push(...(await chain.undo(() => measureRoutes(venue, pair))));
    return [...ours, ...rows];
  } finally {
    await chain.close();
  }
}
