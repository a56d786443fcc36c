/**
 * A chain whose gas is the same on every run: addresses come from fixed keys and nonces, and every block that is measured has a
 * timestamp that is set, so that the zero bytes in call data, which cost less, never vary.
 */
import { BrowserProvider, ContractFactory, dataLength, getAddress } from 'ethers';
import type { Interface, InterfaceAbi, JsonRpcProvider, JsonRpcSigner } from 'ethers';
import { createHardhatRuntimeEnvironment } from 'hardhat/hre';
import { toSafeInt } from '../../core/amounts.js';
import type { Hex } from '../../core/types.js';

/** Gas of one whole transaction, 21,000 and refunds included, and the size of its call data. */
export interface Measured {
  gas: number;
  calldataBytes: number;
}

export interface Contract {
  address: string;
  abi: Interface;
}

interface Head {
  number: number;
  hash: Hex;
  timestampSec: number;
}

export interface GasChain {
  provider: JsonRpcProvider;
  /** Accounts of the chain by index. */
  signers: JsonRpcSigner[];
  deploy(signer: JsonRpcSigner, abi: InterfaceAbi, bytecode: string, args?: readonly unknown[]): Promise<Contract>;
  /** Sends and measures. Throws when the transaction reverts. */
  send(from: string, to: string, data: string, value?: bigint): Promise<Measured>;
  /** As `send`, for a function of a contract. */
  call(from: string, to: Contract, method: string, args: readonly unknown[], value?: bigint): Promise<Measured>;
  /** Result of a view, as ethers decodes it. */
  view(contract: Contract, method: string, args: readonly unknown[]): Promise<readonly unknown[]>;
  /** Runs `action`, and takes the chain back to the state before it. */
  undo<T>(action: () => Promise<T>): Promise<T>;
  /** The newest block. None of the first 12 bytes of its hash is zero: a post has them in its call data. */
  head(): Promise<Head>;
  close(): Promise<void>;
}

const GAS_LIMIT = '0x1000000';
/** Timestamps: blocks before the measurements count from `GENESIS_SEC` on, blocks that are measured from `START_SEC` on. */
const GENESIS_SEC = 1_900_000_001;
const START_SEC = GENESIS_SEC + 1_000_000;
/** Chance that 12 bytes hold a zero is 5 %, so one more block nearly always does. */
const MOST_BLOCKS = 40;

/** Starts the chain in this process, with the rules of Base. */
export async function startGasChain(): Promise<GasChain> {
  const hre = await createHardhatRuntimeEnvironment({
    networks: {
      gas: {
        type: 'edr-simulated',
        chainType: 'generic',
        chainId: 8453,
        hardfork: 'prague',
        initialDate: new Date(GENESIS_SEC * 1000),
      },
    },
  });
  const connection = await hre.network.create('gas');
  const provider = new BrowserProvider(connection.provider, undefined, { cacheTimeout: -1 });
  const addresses = (await provider.send('eth_accounts', [])) as string[];
  const signers = await Promise.all(addresses.map((address) => provider.getSigner(address)));

  const newest = async (): Promise<Head> => {
    const block = (await provider.send('eth_getBlockByNumber', ['latest', false])) as Record<string, string>;
    const { number, hash, timestamp } = block as { number: string; hash: Hex; timestamp: string };
    return { number: toSafeInt(BigInt(number)), hash, timestampSec: toSafeInt(BigInt(timestamp)) };
  };
  const setClock = async (): Promise<void> => {
    const { timestampSec } = await newest();
    await provider.send('evm_setNextBlockTimestamp', [Math.max(timestampSec + 1, START_SEC)]);
  };

  const send: GasChain['send'] = async (from, to, data, value = 0n) => {
    await setClock();
    const transaction = { from, to, data, gas: GAS_LIMIT, value: `0x${value.toString(16)}` };
    const hash = (await provider.send('eth_sendTransaction', [transaction])) as string;
    const receipt = (await provider.send('eth_getTransactionReceipt', [hash])) as { gasUsed: string; status: string };
    if (receipt.status !== '0x1') throw new Error(`reverted: ${to} ${data}`);
    return { gas: toSafeInt(BigInt(receipt.gasUsed)), calldataBytes: dataLength(data) };
  };

  return {
    provider: provider as unknown as JsonRpcProvider,
    signers,
    deploy: async (signer, abi, bytecode, args = []) => {
      const contract = await new ContractFactory(abi, bytecode, signer).deploy(...args);
      await contract.waitForDeployment();
      return { address: getAddress(await contract.getAddress()), abi: contract.interface };
    },
    send,
    call: (from, to, method, args, value) => send(from, to.address, to.abi.encodeFunctionData(method, args), value),
    view: async (contract, method, args) => {
      const data = contract.abi.encodeFunctionData(method, args);
      const answer = (await provider.send('eth_call', [{ to: contract.address, data }, 'latest'])) as string;
      return contract.abi.decodeFunctionResult(method, answer);
    },
    undo: async (action) => {
      const snapshot = (await provider.send('evm_snapshot', [])) as string;
      try {
        return await action();
      } finally {
        await provider.send('evm_revert', [snapshot]);
      }
    },
    head: async () => {
      for (let i = 0; i < MOST_BLOCKS; i++) {
        const head = await newest();
        const bytes: readonly string[] = head.hash.slice(2, 26).match(/../g) ?? [];
        if (head.timestampSec >= START_SEC && !bytes.includes('00')) return head;
        await setClock();
        await provider.send('evm_mine', []);
      }
      throw new Error(`${MOST_BLOCKS} blocks in a row had zeroes in their hash`);
    },
    close: async () => {
      provider.destroy();
      await connection.close();
    },
  };
}
