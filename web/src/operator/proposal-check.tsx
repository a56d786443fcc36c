import { useState } from 'react';
import { Said, useActing } from '../maker/acting.js';
import { useShown } from '../market-context.js';
import { changesOf, parseProposal } from './proposal.js';
import type { Change } from './proposal.js';
import { NO_CHAIN, useChain } from './on-chain.js';

/** For signers: what a proposal would change, decoded here and compared with the chain. */
export function ProposalCheck() {
  const { deployment } = useShown();
  const chain = useChain();
  const acting = useActing();
  const [changes, setChanges] = useState<readonly Change[]>([]);

  function check(text: string): void {
    acting.act(async () => {
      setChanges([]);
      if (chain === null) throw new Error(NO_CHAIN);
      const found = await changesOf(chain.provider, deployment, parseProposal(text, deployment.chain_id));
      setChanges(found);
      const bad = found.filter(({ problem }) => problem !== null).length;
      if (bad > 0) throw new Error(`${bad} of ${found.length} calls are not to be signed as they are`);
      return `${found.length} ${found.length === 1 ? 'call' : 'calls'}, decoded in this browser; the chain is as it was before the first`;
    });
  }

  return (
    <section aria-label="Proposal">
      <h2>What a proposal would change</h2>
      <p className="caption">
        A file that <code>npm run deploy -- configure --propose FILE</code> or <code>upgrade --propose FILE</code>{' '}
        wrote. Compare the code hashes with those of a build of your own.
      </p>
      <label className="field">
        Proposal
        <input
          type="file"
          accept="application/json,.json"
          disabled={acting.busy}
          onChange={({ target }) => {
            const [file] = target.files ?? [];
            if (file !== undefined) void file.text().then(check);
          }}
        />
      </label>
      <Said acting={acting} />
      {changes.length > 0 && (
        <div className="scroll" tabIndex={0} role="region" aria-label="Calls of the proposal">
          <table>
            <thead>
              <tr>
                <th scope="col">Contract</th>
                <th scope="col">Call</th>
                <th scope="col">Now</th>
                <th scope="col">Then</th>
              </tr>
            </thead>
            <tbody>
              {changes.map(({ contract, call, before, after, problem }, i) => (
                <tr key={i}>
                  <td className="wide">{contract}</td>
                  <td className="wide">
                    <code>{call}</code>
                    {problem !== null && <p className="bad">✗ {problem}</p>}
                  </td>
                  <td className="wide">{before}</td>
                  <td className="wide">{after}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
