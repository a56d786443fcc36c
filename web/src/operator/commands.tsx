import { useState } from 'react';
import { Said, useActing } from '../maker/acting.js';

/** What the operator does, and by which command; the page itself does none of it. */
const COMMANDS = [
  ['curvebook status', 'what this page shows, in a terminal'],
  ['curvebook halt "<why>"', 'stops new orders and posts at once'],
  ['curvebook resume', 'ends a halt, or says what stands in the way'],
  ['curvebook reconcile', 'after a reorganisation or lost rows: shows a plan, and asks'],
  ['curvebook verify', 'derives the whole ledger again and compares'],
  ['curvebook maker list', 'who may quote'],
  ['curvebook maker approve <address>', 'lets an address quote'],
  ['curvebook maker suspend <address>', 'closes its orders; its funds stay withdrawable'],
  ['curvebook market list', 'markets, and those that are delisted'],
  ['curvebook token list', 'what stands against tokens'],
  ['curvebook suspense', 'what the ledger could not give to anybody yet'],
  ['curvebook outbox', 'transactions that are not mined yet'],
] as const;

export function Commands() {
  const acting = useActing();
  const [copied, setCopied] = useState('');
  return (
    <section aria-label="Commands">
      <h2>Commands</h2>
      <ul className="commands">
        {COMMANDS.map(([command, does]) => (
          <li key={command}>
            <button
              type="button"
              aria-label={`Copy ${command}`}
              onClick={() =>
                acting.act(async () => {
                  setCopied(command);
                  await navigator.clipboard.writeText(command);
                  return `copied: ${command}`;
                })
              }
            >
              {copied === command && acting.said?.isGood === true ? 'Copied' : 'Copy'}
            </button>{' '}
            <code>{command}</code> <span className="caption">{does}</span>
          </li>
        ))}
      </ul>
      <Said acting={acting} />
    </section>
  );
}
