/**
 * The sandbox's chain: Hardhat's simulated network behind HTTP and WebSocket JSON-RPC, a process of its own so that it outlives
 * every role of the server. Run with `--port`, `--host`, `--block-time-ms`; prints one line of JSON, `{"rpcUrl": "…"}`, when it
 * listens, and stops on SIGTERM or SIGINT.
 */
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { createHardhatRuntimeEnvironment } from 'hardhat/hre';
import { SANDBOX_CHAIN_ID, SANDBOX_MNEMONIC } from './accounts.js';
import { assertPortFree } from './ports.js';
import { connect } from '../transactions.js';

export interface ChainOptions {
  host: string;
  /** 0 takes a free one. */
  port: number;
  /** Time between two blocks. */
  blockTimeMs: number;
}

export interface RunningChain {
  rpcUrl: string;
  close(): Promise<void>;
}

/**
 * Starts the chain in this process. No project configuration is loaded, which makes it listen within a second. Blocks may share
 * a timestamp, so that chain time follows the wall clock at any block time and whatever is mined in between.
 */
export async function startChain({ host, port, blockTimeMs }: ChainOptions): Promise<RunningChain> {
  await assertPortFree(host, port, 'RPC_PORT');
  const hre = await createHardhatRuntimeEnvironment({
    networks: {
      node: {
        type: 'edr-simulated',
        chainType: 'generic',
        chainId: SANDBOX_CHAIN_ID,
        hardfork: 'prague',
        accounts: { mnemonic: SANDBOX_MNEMONIC },
        allowBlocksWithSameTimestamp: true,
        mining: { auto: false, interval: blockTimeMs },
      },
    },
  });
  const server = await hre.network.createServer('node', host, port);
  const listening = await server.listen();
  const rpcUrl = `http://${host}:${listening.port}`;
  await setClock(rpcUrl);
  return { rpcUrl, close: () => server.close() };
}

/** The chain's clock lags behind by what its start took, for good unless it is set. */
async function setClock(rpcUrl: string): Promise<void> {
  const connection = connect(rpcUrl);
  try {
    await connection.send('evm_setNextBlockTimestamp', [Math.floor(Date.now() / 1000)]);
    await connection.send('evm_mine', []);
  } finally {
    connection.destroy();
  }
}

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

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  try {
    await main();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
}
