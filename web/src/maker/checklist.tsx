import { useState } from 'react';
import type { MakerClient } from '../../../sdk/src/maker.js';
import { CurvebookError } from '../../../sdk/src/index.js';
import { useShown } from '../market-context.js';
import { usePlatform } from '../platform.js';
import { agentAddress, newAgentKey, storeAgent, storedAgent } from '../wallet/agents.js';
import type { Session } from '../wallet/session.js';
import { Said, useActing } from './acting.js';
import { AGENT_NAME, approveKept } from './agent.js';
import { stepsOf } from './steps.js';
import type { MakerFacts } from './steps.js';

interface ChecklistProps {
  session: Session;
  facts: MakerFacts;
  custody: MakerClient;
  /** Whether the key of this tab signs for the maker; null while that is not known. */
  isAgent: boolean | null;
  onAgent(key: string): void;
}

/** What a maker has done, and what is to do next; it ticks itself. */
export function Checklist({ session, facts, custody, isAgent, onAgent }: ChecklistProps) {
  const { deployment } = useShown();
  const { read } = usePlatform();
  const acting = useActing();
  const [isOpen, setOpen] = useState(true);
  const steps = stepsOf(facts, session.kind === 'sandbox', isAgent);
  const approve = async (): Promise<string> => {
    const reply = await fetch(`${read.url}/sandbox/approve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ maker: session.address }),
    });
    const body = (await reply.json()) as { error?: { code: string; message: string } };
    if (body.error !== undefined) throw new CurvebookError(body.error.code, body.error.message);
    return 'approved, as the operator does it';
  };
  const makeAgent = async (): Promise<string> => {
    const { deployment_id: id } = deployment;
    const { address: maker } = session;
    const key = newAgentKey();
    const address = await agentAddress(key);
    await approveKept(key, {
      former: storedAgent(id, maker),
      store: (kept) => storeAgent(id, maker, kept),
      adopt: onAgent,
      approve: () => custody.approveAgent(address, AGENT_NAME),
    });
    return 'this tab signs orders from now on; the key is gone with the tab';
  };
  const done = steps.filter(({ isDone }) => isDone === true).length;
  return (
    <section aria-label="Checklist">
      <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          {done} of {steps.length} steps done
        </summary>
        <ul className="checklist">
          {steps.map(({ name, isDone, text }) => (
            <li key={name} className={isDone === true ? 'good' : ''}>
              <span aria-hidden="true">{isDone === null ? '…' : isDone ? '☑' : '☐'}</span>
              <strong>
                {name}
                <span className="unseen">{isDone === null ? ': not known yet' : isDone ? ': done' : ': to do'}</span>
              </strong>
              <span className="why">{text}</span>
              {name === 'Approved' && isDone === false && (
                <span>
                  {deployment.sandbox && (
                    <button type="button" disabled={acting.busy} onClick={() => acting.act(approve)}>
                      Approve, as the operator
                    </button>
                  )}{' '}
                  <code>curvebook maker approve {session.address}</code>
                </span>
              )}
              {name === 'Deposited' && isDone === false && <a href="#custody">Deposit here</a>}
              {name === 'Agent' && isDone === false && (
                <button type="button" disabled={acting.busy} onClick={() => acting.act(makeAgent)}>
                  Make an agent for this tab
                </button>
              )}
            </li>
          ))}
        </ul>
        <Said acting={acting} />
      </details>
    </section>
  );
}
