import { toSafeInt } from '../../../core/amounts.js';
import type { Address, OrderEffect } from '../../../core/types.js';
import type { ApproveAgentAction } from '../../../core/wire/user-signed.js';
import { AGENT_DEFAULT_MS, AGENT_MAX_MS, MAX_AGENT_NAME, MAX_NAMED_AGENTS } from '../limits.js';
import { REFUSALS, refuse } from '../refusals.js';
import type { ActionHandler, AdmissionView } from '../types.js';

const NO_ADDRESS: Address = `0x${'0'.repeat(40)}`;
const SUFFIX = /^(?:(.*?) )?valid_until (\d{1,15})$/s;

/**
 * Approves an agent under a name, replacing an earlier one of that name; the zero address removes it. Actions that the agent signed before
 * the approval stay refused.
 */
export const approveAgent: ActionHandler<ApproveAgentAction> = (action, maker, view) => {
  const { name, validUntilMs } = readName(action.agentName, view.nowMs);
  const refused =
    action.agentAddress === NO_ADDRESS
      ? refuseRemoval(name, maker, view)
      : refuseApproval(action.agentAddress, name, validUntilMs, maker, view);
  if (refused !== null) return { effects: [], reply: refuse(refused) };
  const effect: OrderEffect =
    action.agentAddress === NO_ADDRESS
      ? { type: 'agent', name, agent: null, sinceMs: view.nowMs, validUntilMs: view.nowMs }
      : {
          type: 'agent',
          name,
          agent: action.agentAddress,
          // Nonces come from the client's clock, which may be behind ours; the agent's next actions must be accepted all the same.
          sinceMs: Math.min(view.nowMs, action.nonce),
          validUntilMs,
        };
  return { effects: [effect], reply: { status: 'ok', response: { type: 'default' } } };
};

/** A name may end with ` valid_until <ms>`, which is not part of it. */
function readName(text: string, nowMs: number): { name: string; validUntilMs: number } {
  const match = SUFFIX.exec(text);
  if (match === null) return { name: text, validUntilMs: nowMs + AGENT_DEFAULT_MS };
  return { name: match[1] ?? '', validUntilMs: toSafeInt(BigInt(match[2] ?? '0')) };
}

function refuseRemoval(name: string, maker: Address, { agents }: AdmissionView): string | null {
  return agents.ofMaster(maker).some((agent) => agent.name === name) ? null : REFUSALS.agentNotFound();
}

function refuseApproval(
  address: Address,
  name: string,
  validUntilMs: number,
  maker: Address,
  { agents, isAccount, nowMs }: AdmissionView,
): string | null {
  if (name.length > MAX_AGENT_NAME) return REFUSALS.agentName();
  if (validUntilMs <= nowMs || validUntilMs > nowMs + AGENT_MAX_MS) return REFUSALS.agentExpiry();
  if (address === maker || isAccount(address) || agents.wasAgent(address)) return REFUSALS.agentUsed();
  const others = agents
    .ofMaster(maker)
    .filter((agent) => agent.name !== '' && agent.name !== name && agent.validUntilMs > nowMs);
  return name !== '' && others.length >= MAX_NAMED_AGENTS ? REFUSALS.agentSlots(MAX_NAMED_AGENTS) : null;
}
