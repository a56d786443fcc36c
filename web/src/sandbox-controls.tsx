import { lazy, Suspense, useState } from 'react';
import { Link } from 'wouter';
import { explained } from './explained.js';
import { useShown } from './market-context.js';
import { usePlatform } from './platform.js';
import type { Done } from './sandbox-acts.js';
import { useWallets } from './wallet/session.js';

const FillPage = lazy(async () => ({ default: (await import('./pages/fill.js')).FillPage }));

/** In base tokens, of each market's own worth. */
const SWAPPED: Readonly<Record<string, string>> = { cbBTC: '0.05' };

/** Buttons whose request is one of the server's own, each beside the command that does the same. */
const CONTROLS = [
  ['restart', 'Kill and restart the server', 'curvebook serve'],
  ['halt', 'Halt', 'curvebook halt'],
  ['resume', 'Resume', 'curvebook resume'],
] as const;

/** What a sandbox lets one try from this machine, each beside the command or request that does the same; below it what was done. */
export function SandboxControls() {
  const { read } = usePlatform();
  const { deployment, market, base, quote, status } = useShown();
  const { accounts } = useWallets();
  const [done, setDone] = useState<readonly Done[]>([]);
  const [failure, setFailure] = useState<string | null>(null);
  const [busy, setBusy] = useState<string | null>(null);

  async function control(action: string, body: object = {}): Promise<string> {
    const reply = await fetch(`${read.url}/sandbox/${action}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const said = (await reply.json()) as { error?: { message: string }; command?: string };
    if (said.error !== undefined) throw new Error(said.error.message);
    return said.command ?? '';
  }

  async function press(name: string, job: (tell: (one: Done) => void) => Promise<void>): Promise<void> {
    setBusy(name);
    setDone([]);
    setFailure(null);
    try {
      await job((one) => setDone((before) => [...before, one]));
    } catch (error) {
      setFailure(explained(error));
    } finally {
      setBusy(null);
    }
  }

  const names = { read, deployment, base, quote, pair: market.pair, accounts };
  const amount = SWAPPED[base] ?? '1';
  const fillSeq = done.find((one) => one.fillSeq !== undefined)?.fillSeq;
  const acts = [
    {
      name: `Swap ${amount} ${base} as taker2`,
      shown: `entrypoint.swap(${base}, ${quote}, ${amount}, …)`,
      run: async (tell: (one: Done) => void) =>
        (await import('./sandbox-acts.js')).swapAsTaker2({ ...names, tell }, amount),
    },
    {
      name: 'Place an order as maker3',
      shown: 'POST /exchange {"type": "order", …}',
      run: async (tell: (one: Done) => void) =>
        (await import('./sandbox-acts.js')).orderAsMaker3({ ...names, tell }, (maker) => control('approve', { maker })),
    },
    // What makes no sense now is not there to be pressed.
    ...CONTROLS.filter(([action]) => action !== ((status.data?.halt ?? null) === null ? 'resume' : 'halt')).map(
      ([action, name, shown]) => ({
        ...{ name, shown },
        run: async (tell: (one: Done) => void) => tell({ request: await control(action), answer: `done: ${action}` }),
      }),
    ),
  ];
  return (
    <section className="controls" aria-label="Try it">
      <h2>Try it</h2>
      <p className="caption">Each button does what stands below it, here in the sandbox, with money without value.</p>
      <ul>
        {acts.map(({ name, shown, run }) => (
          <li key={name}>
            <button
              type="button"
              disabled={busy !== null || accounts.length === 0}
              onClick={() => void press(name, run)}
            >
              {name}
            </button>
            <code>{shown}</code>
          </li>
        ))}
      </ul>
      {/* Controls and accounts are served to this machine alone. */}
      <div role="status">
        {busy !== null && <p>{busy} …</p>}
        {done.length > 0 && (
          <ol>
            {done.map(({ request, answer, place }) => (
              <li key={request}>
                <code>{request}</code> → {place === undefined ? answer : <Link href={place}>{answer}</Link>}
              </li>
            ))}
          </ol>
        )}
      </div>
      {fillSeq !== undefined && (
        <Suspense fallback={<p role="status">Loading the fill …</p>}>
          <FillPage key={fillSeq} fillSeq={`${fillSeq}`} isPart />
        </Suspense>
      )}
      {failure !== null && (
        <p role="alert" className="bad">
          {failure}
        </p>
      )}
    </section>
  );
}
