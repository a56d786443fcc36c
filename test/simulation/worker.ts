/** Runs simulations for another process, one after the other: each has the clock and the timers of its process to itself. */
import type { Answer } from './crew.js';
import { simulate, type RunOptions } from './run.js';

if (process.send === undefined) throw new Error('a worker of the simulation is started by test/simulation/crew.ts');
const send = process.send.bind(process);
const answer = (said: Answer): void => void send(said);
process.on('message', (options: RunOptions) => {
  void simulate(options).then(answer, (error: unknown) => answer({ failed: String(error) }));
});
// Whoever started it is gone.
process.on('disconnect', () => process.exit());
