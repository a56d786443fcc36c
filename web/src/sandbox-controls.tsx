import { useState } from 'react';
import { usePlatform } from './platform.js';

const ACTIONS = [
  ['halt', 'Halt', 'curvebook halt'],
  ['resume', 'Resume', 'curvebook resume'],
  ['restart', 'Restart the server', 'curvebook serve'],
] as const;

/** What a sandbox lets one try from this machine, each beside the command that does the same. */
export function SandboxControls() {
  const { read } = usePlatform();
  const [said, setSaid] = useState('');
  const [busy, setBusy] = useState(false);
  async function press(action: string): Promise<void> {
    setBusy(true);
    try {
      const reply = await fetch(`${read.url}/sandbox/${action}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      });
      const body = (await reply.json()) as { error?: { message: string } };
      setSaid(body.error?.message ?? `done: ${action}`);
    } catch (failure) {
      setSaid(failure instanceof Error ? failure.message : String(failure));
    } finally {
      setBusy(false);
    }
  }
  return (
    <section className="controls" aria-label="Try it">
      {ACTIONS.map(([action, name, command]) => (
        <span key={action}>
          <button type="button" disabled={busy} onClick={() => void press(action)}>
            {name}
          </button>
          <code>{command}</code>
        </span>
      ))}
      <span role="status">{said}</span>
    </section>
  );
}
