import { adapterAbi } from './abi/adapter.js';
import { curveBookAbi } from './abi/curveBook.js';
import { custodianAbi } from './abi/custodian.js';
import { entrypointAbi } from './abi/entrypoint.js';
import { erc20Abi } from './abi/erc20.js';
import { lensAbi } from './abi/lens.js';
import { orderSettlerAbi } from './abi/orderSettler.js';
import { permit2Abi } from './abi/permit2.js';

export { adapterAbi, curveBookAbi, custodianAbi, entrypointAbi, erc20Abi, lensAbi, orderSettlerAbi, permit2Abi };

/** The contracts of a deployment, by the names that `GET /v0/deployment` uses. */
export const CONTRACT_ABIS = {
  custodian: custodianAbi,
  curveBook: curveBookAbi,
  entrypoint: entrypointAbi,
  orderSettler: orderSettlerAbi,
  lens: lensAbi,
  adapter: adapterAbi,
  permit2: permit2Abi,
} as const;

export type ContractName = keyof typeof CONTRACT_ABIS;
