import { useState } from 'react';
import type { SnippetSwap } from './snippet-swap.js';
import { SNIPPETS, snippet } from './snippets.js';
import type { SnippetName } from './snippets.js';

interface CopyAsProps {
  /** Null while what is typed is none, or has no price yet that bounds it. */
  swap: SnippetSwap | null;
  /** Whether a price is all that it lacks. */
  waits: boolean;
}

/** The swap as a program, to copy. */
export function CopyAs({ swap, waits }: CopyAsProps) {
  const [name, setName] = useState<SnippetName>('viem');
  const [said, setSaid] = useState('');
  const code = swap === null ? null : snippet(name, swap);
  async function copy(): Promise<void> {
    if (code === null) return;
    try {
      await navigator.clipboard.writeText(code);
      setSaid('copied');
    } catch {
      setSaid('This browser does not let pages copy: select the text instead.');
    }
  }
  return (
    <details className="copyas">
      <summary>Copy as viem, ethers, Solidity or curl</summary>
      <div className="row" role="group" aria-label="Language">
        {SNIPPETS.map((one) => (
          <button type="button" key={one} aria-pressed={one === name} onClick={() => setName(one)}>
            {one}
          </button>
        ))}
        <button type="button" disabled={code === null} onClick={() => void copy()}>
          Copy
        </button>
        <span role="status">{said}</span>
      </div>
      {code === null ? (
        <p role="status">
          {waits ? 'Wait for the price: it says what the program takes at least.' : 'Enter the amounts first.'}
        </p>
      ) : (
        <pre tabIndex={0} aria-label={`The swap as ${name}`}>
          {code}
        </pre>
      )}
    </details>
  );
}
