import { BrowserProvider, type Signer } from 'ethers';
import { createHardhatRuntimeEnvironment } from 'hardhat/hre';
import { NO_ARTIFACTS } from '../../deploy/sandbox/chain.js';

/** A chain inside the test process that mines each transaction at once. */
export interface TestChain {
  provider: BrowserProvider;
  /** Hardhat's development accounts. */
  signers: Signer[];
  close(): Promise<void>;
}

/** Starts a chain with the rules of the sandbox's, and with a limit on the gas of one transaction when it is given. No project configuration is loaded and nothing is compiled. */
export async function startTestChain({ transactionGasCap }: { transactionGasCap?: bigint } = {}): Promise<TestChain> {
  const hre = await createHardhatRuntimeEnvironment({
    paths: NO_ARTIFACTS,
    networks: {
      test: {
        type: 'edr-simulated',
        chainType: 'generic',
        chainId: 8453,
        hardfork: 'prague',
        ...(transactionGasCap === undefined ? {} : { transactionGasCap }),
      },
    },
  });
  const connection = await hre.network.create('test');
  // ethers keeps an answer for a while by default; a test wants the chain as it is.
  const provider = new BrowserProvider(connection.provider, undefined, { cacheTimeout: -1 });
  const addresses = (await provider.send('eth_accounts', [])) as string[];
  return {
    provider,
    signers: await Promise.all(addresses.map((address) => provider.getSigner(address))),
    close: async () => {
      provider.destroy();
      await connection.close();
    },
  };
}
