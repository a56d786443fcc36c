/** The sandbox's chain: Hardhat's simulated network behind HTTP and WebSocket JSON-RPC. */
import { fileURLToPath } from 'node:url';
import { createHardhatRuntimeEnvironment } from 'hardhat/hre';
import { SANDBOX_CHAIN_ID, SANDBOX_MNEMONIC } from './accounts.js';
import { assertPortFree } from './ports.js';
import { connect } from '../transactions.js';

interface ChainOptions {
  host: string;
  /** 0 takes a free one. */
  port: number;
  /** Time between two blocks. */
  blockTimeMs: number;
}

interface RunningChain {
  rpcUrl: string;
  close(): Promise<void>;
}

/**
 * To Hardhat, a chain has no artifacts: it would read all of them at each start, to explain reverts by our sources. Other nodes don't do
 * that either; the data of a revert say the same.
 */
export const NO_ARTIFACTS = { artifacts: fileURLToPath(new URL('no-artifacts', import.meta.url)) };

/**
 * Starts the chain in this process. No project configuration is loaded, which makes it listen within a second. Blocks may share
 * a timestamp, so that chain time follows the wall clock at any block time and whatever is mined in between.
 */
export async function startChain({ host, port, blockTimeMs }: ChainOptions): Promise<RunningChain> {
  await assertPortFree(host, port, 'RPC_PORT');
  const hre = await createHardhatRuntimeEnvironment({
    paths: NO_ARTIFACTS,
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

/** Sets the chain's clock to the wall clock; otherwise it would stay behind by the time that the start took. */
async function setClock(rpcUrl: string): Promise<void> {
  const connection = connect(rpcUrl);
  try {
    await connection.send('evm_setNextBlockTimestamp', [Math.floor(Date.now() / 1000)]);
    await connection.send('evm_mine', []);
  } finally {
    connection.destroy();
  }
}
