/**
 * The sandbox's chain as a process of its own, so that it outlives every role of the server. Run with `--port`, `--host`,
 * `--block-time-ms`; prints one line of JSON, `{"rpcUrl": "…"}`, when it listens, and stops on SIGTERM or SIGINT.
 */
import { parseArgs } from 'node:util';
import { startChain } from './chain.js';

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: '8545' },
      'block-time-ms': { type: 'string', default: '2000' },
    },
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(0));
  const { rpcUrl } = await startChain({
    host: values.host,
    port: integer('--port', values.port, 0, 65_535),
    blockTimeMs: integer('--block-time-ms', values['block-time-ms'], 10, 60_000),
  });
  console.log(JSON.stringify({ rpcUrl }));
}

function integer(option: string, text: string, minimum: number, maximum: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  if (!(value >= minimum && value <= maximum)) throw new Error(`${option}: ${text} is not ${minimum}..${maximum}`);
  return value;
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
