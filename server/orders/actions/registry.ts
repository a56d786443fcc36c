import type { Address } from '../../../core/types.js';
import type { WireAction } from '../../../core/wire/types.js';
import { REFUSALS, refuse } from '../refusals.js';
import type { ActionOutcome, AdmissionView } from '../types.js';
import { cancelByCloid } from './cancel-by-cloid.js';
import { cancel } from './cancel.js';
import { noop } from './noop.js';
import { order } from './order.js';

/** Action types that the wire knows and this venue refuses by name, without looking at their signature. */
const REFUSED_TYPES: ReadonlySet<string> = new Set([
  'agentEnableDexAbstraction',
  'agentSendAsset',
  'agentSetAbstraction',
  'approveAgent',
  'approveBuilderFee',
  'batchModify',
  'borrowLend',
  'cDeposit',
  'cWithdraw',
  'claimRewards',
  'convertToMultiSigUser',
  'createSubAccount',
  'createVault',
  'CSignerAction',
  'CValidatorAction',
  'evmUserModify',
  'linkStakingUser',
  'modify',
  'multiSig',
  'perpDeploy',
  'registerReferrer',
  'reserveRequestWeight',
  'scheduleCancel',
  'sendAsset',
  'sendToEvmWithData',
  'setDisplayName',
  'setReferrer',
  'spotDeploy',
  'spotSend',
  'spotUser',
  'subAccountModify',
  'subAccountSpotTransfer',
  'subAccountTransfer',
  'tokenDelegate',
  'topUpIsolatedOnlyMargin',
  'twapCancel',
  'twapOrder',
  'updateIsolatedMargin',
  'updateLeverage',
  'usdClassTransfer',
  'usdSend',
  'userDexAbstraction',
  'userOutcome',
  'userPortfolioMargin',
  'userSetAbstraction',
  'validatorL1Stream',
  'vaultDistribute',
  'vaultModify',
  'vaultTransfer',
  'vaultWithdraw',
  'withdraw3',
]);

/** Whether the type is known but refused here. */
export const isRefusedType = (type: string): boolean => REFUSED_TYPES.has(type);

/** Judges an admitted action by its type. */
export function judgeAction(action: WireAction, maker: Address, view: AdmissionView): ActionOutcome {
  switch (action.type) {
    case 'order':
      return order(action, maker, view);
    case 'cancel':
      return cancel(action, maker, view);
    case 'cancelByCloid':
      return cancelByCloid(action, maker, view);
    case 'noop':
      return noop(action, maker, view);
    default:
      return { effects: [], reply: refuse(REFUSALS.unsupportedAction(action.type)) };
  }
}
