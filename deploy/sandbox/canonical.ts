/** Contracts that a real chain has at well-known addresses, put there on a local one. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import {
  Contract,
  concat,
  encodeBytes32String,
  hexlify,
  keccak256,
  toBeHex,
  type JsonRpcProvider,
  type Signer,
} from 'ethers';
import { mined } from '../transactions.js';
import { SandboxGasPriceOracle__factory } from '../../typechain-types/factories/mocks/SandboxGasPriceOracle__factory.js';

export const PERMIT2_ADDRESS = '0x000000000022D473030F116dDEE9F6B43aC78BA3';
export const GAS_PRICE_ORACLE_ADDRESS = '0x420000000000000000000000000000000000000F';
/** The data fee for an L1 base fee of one gwei and a blob base fee of one wei: 2269 and 1055762 are the rollup's scalars for them, 16 the gas per byte. */
const SCALED_FEE = 2_269n * 16n * 10n ** 9n + 1_055_762n;
export const WETH_ADDRESS = '0x4200000000000000000000000000000000000006';

/** The CREATE2 deployer that most chains share: its call data is a salt and the init code. */
const CREATE2_DEPLOYER = '0x4e59b44847b379578588920cA78FbF26c0B4956C';
const CREATE2_DEPLOYER_CODE =
  '0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3';
const PERMIT2_SALT = '0x0000000000000000000000000000000000000000d3af2663da51c10215000000';
const PERMIT2_INIT_CODE_HASH = '0xe2be1e05eedf35dacd66c65c862f8150ff9ab4b6b24b9bbe62be71b6b16cf0f8';

const require = createRequire(import.meta.url);

/** Deploys Permit2's published init code at its canonical address, unless it is there. */
export async function placePermit2(provider: JsonRpcProvider, payer: Signer): Promise<void> {
  if ((await provider.getCode(PERMIT2_ADDRESS)) !== '0x') return;
  const initCode = hexlify(readFileSync(require.resolve(`hardhat-predeploy/bin/${PERMIT2_ADDRESS}.bytecode`)));
  if (keccak256(initCode) !== PERMIT2_INIT_CODE_HASH) throw new Error("Permit2's init code is not the canonical one");
  await provider.send('hardhat_setCode', [CREATE2_DEPLOYER, CREATE2_DEPLOYER_CODE]);
  await mined(payer.sendTransaction({ to: CREATE2_DEPLOYER, data: concat([PERMIT2_SALT, initCode]) }));
  if ((await provider.getCode(PERMIT2_ADDRESS)) === '0x') throw new Error('Permit2 did not end up at its address');
}

/** Places `SandboxGasPriceOracle` at the address at which rollups have their gas price oracle. */
export async function placeGasPriceOracle(provider: JsonRpcProvider, deployer: Signer): Promise<void> {
  const standIn = await new SandboxGasPriceOracle__factory(deployer).deploy();
  await standIn.waitForDeployment();
  const code = await provider.getCode(await standIn.getAddress());
  await provider.send('hardhat_setCode', [GAS_PRICE_ORACLE_ADDRESS, code]);
  await mined(SandboxGasPriceOracle__factory.connect(GAS_PRICE_ORACLE_ADDRESS, deployer).set(SCALED_FEE, 0n, 0n));
}

/** Puts WETH9 where the chain has it as a predeploy. Its constructor never runs, so the storage it would set is set here. */
export async function placeWeth(provider: JsonRpcProvider): Promise<void> {
  const { deployedBytecode } = require('canonical-weth/build/contracts/WETH9.json') as { deployedBytecode: string };
  await provider.send('hardhat_setCode', [WETH_ADDRESS, deployedBytecode]);
  const words = [shortString('Wrapped Ether'), shortString('WETH'), toBeHex(18, 32)];
  for (const [slot, word] of words.entries()) {
    await provider.send('hardhat_setStorageAt', [WETH_ADDRESS, `0x${slot.toString(16)}`, word]);
  }
  const weth = new Contract(WETH_ADDRESS, ['function decimals() view returns (uint8)'], provider);
  if ((await weth.getFunction('decimals').staticCall()) !== 18n) throw new Error('WETH has no decimals');
}

/** How Solidity stores a string of up to 31 bytes: the bytes, and twice their number in the last one. */
function shortString(text: string): string {
  return toBeHex(BigInt(encodeBytes32String(text)) | BigInt(text.length * 2), 32);
}
