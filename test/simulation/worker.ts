/** Runs simulations for another thread, one after the other: each has the clock and the timers of its thread to itself. */
import { parentPort } from 'node:worker_threads';
import { simulate, type RunOptions } from './run.js';

const port = parentPort;
if (port === null) throw new Error('a worker of the simulation is started by test/simulation/crew.ts');
port.on('message', (options: RunOptions) => {
  void simulate(options).then(
    (result) => port.postMessage(result),
    (error: unknown) => port.postMessage({ failed: String(error) }),
  );
});
