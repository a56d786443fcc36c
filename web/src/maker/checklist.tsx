import { useState } from 'react';
import type { MakerClient } from '../../../sdk/src/maker.js';
import { CurvebookError } from '../../../sdk/src/index.js';
import { useShown } from '../market-context.js';
import { usePlatform } from '../platform.js';
import { agentAddress, newAgentKey, storeAgent } from '../wallet/agents.js';
import type { Session } from '../wallet/session.js';
import { Said, useActing } from './acting.js';
import { stepsOf } from './steps.js';
import type { MakerFacts } from './steps.js';

interface ChecklistProps {
  session: Session;
  facts: MakerFacts;
  custody: MakerClient;
  onAgent(key: string): void;
}

/** What a maker has done, and what is to do next; it ticks itself. */
export function Checklist({ session, facts, custody, onAgent }: ChecklistProps) {
  const { deployment } = useShown();
  const { read } = usePlatform();
  const acting = useActing();
  const [isOpen, setOpen] = useState(true);
  const steps = stepsOf(facts, session.kind === 'sandbox');
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
    const key = newAgentKey();
    await custody.approveAgent(await agentAddress(key), 'console');
    storeAgent(deployment.deployment_id, session.address, key);
    onAgent(key);
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
