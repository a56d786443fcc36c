import type { Address } from '../../../core/types.js';
import type { WireAction, NoopAction } from '../../../core/wire/types.js';
import type { ApproveAgentAction } from '../../../core/wire/user-signed.js';
import { REFUSALS, refuse } from '../refusals.js';
import type { ActionOutcome, AdmissionView, ActionHandler } from '../types.js';
import { approveAgent } from './approve-agent.js';
import { cancelByCloid, cancel } from './cancel.js';
import { batchModify, modify } from './modify.js';
import { order } from './order.js';
import { scheduleCancel } from './schedule-cancel.js';

/** Action types that the wire knows and this venue refuses by name, without looking at their signature. */
const REFUSED_TYPES: ReadonlySet<string> = new Set([
  'agentEnableDexAbstraction',
  'agentSendAsset',
  'agentSetAbstraction',
  'approveBuilderFee',
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
  'multiSig',
  'perpDeploy',
  'registerReferrer',
  'reserveRequestWeight',
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

/** Every action that may be admitted: those of the wire's action hash, and the one that a master signs by itself. */
export type AdmittedAction = WireAction | ApproveAgentAction;

/** Judges an admitted action by its type. */
export function judgeAction(action: AdmittedAction, maker: Address, view: AdmissionView): ActionOutcome {
  switch (action.type) {
    case 'order':
      return order(action, maker, view);
    case 'cancel':
      return cancel(action, maker, view);
    case 'cancelByCloid':
      return cancelByCloid(action, maker, view);
    case 'modify':
      return modify(action, maker, view);
    case 'batchModify':
      return batchModify(action, maker, view);
    case 'scheduleCancel':
      return scheduleCancel(action, maker, view);
    case 'approveAgent':
      return approveAgent(action, maker, view);
    case 'noop':
      return noop(action, maker, view);
    default:
      return { effects: [], reply: refuse(REFUSALS.unsupportedAction(action.type)) };
  }
}

/** Only uses up a nonce, which invalidates a request with the same nonce that has not arrived yet. */
const noop: ActionHandler<NoopAction> = () => ({
  effects: [],
  reply: { status: 'ok', response: { type: 'default' } },
});
