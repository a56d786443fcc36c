import { useState } from 'react';
import type { MakerClient } from '../../../sdk/src/maker.js';
import { formatUnits } from '../../../core/amounts.js';
import { useShown } from '../market-context.js';
import { shown } from '../numbers.js';
import { useNowMs } from '../platform.js';
import { isOld, Outdated } from '../states.js';
import { entered } from '../swap/terms.js';
import { TransactionLink } from '../swap/receipt.js';
import { useBalance } from '../wallet/balance.js';
import type { Act } from '../wallet/pending.js';
import { PendingList, useOnce } from '../wallet/pending-view.js';
import type { Session } from '../wallet/session.js';
import { Said, useActing } from './acting.js';
import { whenReady } from './when-ready.js';
import type { Withdrawals } from './steps.js';

interface CustodyProps {
  session: Session;
  custody: MakerClient;
  withdrawals: Withdrawals | null;
  onRequested(token: string, hash: string): void;
}

/** Brings tokens into the custodian and out of it again. Withdrawals are never off. */
export function Custody({ session, custody, withdrawals, onRequested }: CustodyProps) {
  const { deployment } = useShown();
  const [address, setAddress] = useState(deployment.tokens[0]?.address ?? '');
  const [text, setText] = useState('');
  const acting = useActing();
  const token = deployment.tokens.find((one) => one.address === address) ?? deployment.tokens[0];
  const balance = useBalance(session, { address });
  const once = useOnce(session.address, `${address}/${text}`, move);
  if (token === undefined) return null;
  const amount = entered(text, token);

  /** Moves what is typed now. */
  function move(act: Act): void {
    if (token === undefined) return;
    const { units } = entered(text, token);
    if (units === null) return;
    const plain = formatUnits(units, token.decimals);
    acting.act(async (signal) => {
      if (act === 'deposit') await custody.deposit(token.symbol, plain, signal);
      else onRequested(token.symbol, await custody.requestWithdraw(token.symbol, plain));
      setText('');
      const name = act === 'deposit' ? 'the deposit' : 'the request';
      return `${name} of ${plain} ${token.symbol} is on the chain; the ledger reads it with its block`;
    });
  }

  return (
    <section aria-label="Custody" id="custody">
      <div className="ticket">
        <h2>Deposit and withdraw</h2>
        <div className="pairfields">
          <label className="field">
            Token
            <select value={token.address} onChange={({ target }) => setAddress(target.value)}>
              {deployment.tokens.map((one) => (
                <option key={one.address} value={one.address}>
                  {one.symbol}
                </option>
              ))}
            </select>
          </label>
          <label className="field">
            Amount
            <input
              value={text}
              onChange={({ target }) => setText(target.value)}
              inputMode="decimal"
              autoComplete="off"
              aria-invalid={amount.problem !== null}
            />
          </label>
        </div>
        {amount.problem !== null && (
          <p role="alert" className="bad">
            {amount.problem}
          </p>
        )}
        <Outdated what="Your wallet" of={balance} />
        {balance.data !== null && (
          <p className={isOld(balance) ? 'caption old' : 'caption'}>
            In your wallet: {shown(formatUnits(balance.data, token.decimals))} {token.symbol}
          </p>
        )}
        <div className="row">
          <button
            type="button"
            disabled={amount.units === null || acting.busy}
            onClick={() => once.ask('deposit', token.symbol)}
          >
            Deposit
          </button>
          <button
            type="button"
            disabled={amount.units === null || acting.busy}
            onClick={() => once.ask('requestWithdraw', token.symbol)}
          >
            Request a withdrawal
          </button>
        </div>
        {once.question}
        <PendingList session={session} />
        <Said acting={acting} />
      </div>
      <Timeline {...{ session, custody, withdrawals }} />
      {withdrawals !== null && <Events withdrawals={withdrawals} />}
    </section>
  );
}

type Withdrawal = Withdrawals['withdrawals'][number];

/** What is on its way out of custody, each with its steps. */
function Timeline({ session, custody, withdrawals }: Omit<CustodyProps, 'onRequested'>) {
  if (withdrawals === null) return <p role="status">Loading withdrawals …</p>;
  const under = withdrawals.withdrawals.filter(({ state }) => state !== 'none');
  if (under.length === 0) return <p role="status">No withdrawal is under way.</p>;
  return (
    <ul className="timeline" aria-label="Withdrawals under way">
      {under.map((one) => (
        <li key={one.token}>
          <Steps {...{ session, custody }} withdrawal={one} />
        </li>
      ))}
    </ul>
  );
}

function Steps({
  session,
  withdrawal,
  custody,
}: Pick<CustodyProps, 'session' | 'custody'> & { withdrawal: Withdrawal }) {
  const { token, state, outstanding, claim, ready_at_sec: readyAtSec, settles_from_ms: settlesFromMs } = withdrawal;
  const { requests_short: requestsShort } = withdrawal;
  const nowMs = useNowMs();
  const acting = useActing();
  const once = useOnce(session.address, token, () =>
    acting.act(async (signal) => {
      await whenReady(() => custody.executeWithdraw(token), signal);
      return `${claim} ${token} are in your wallet`;
    }),
  );
  const leftSec = readyAtSec === null ? null : Math.max(0, readyAtSec - Math.floor(nowMs / 1_000));
  const settlesInSec = settlesFromMs === null ? 0 : Math.max(0, Math.ceil((settlesFromMs - nowMs) / 1_000));
  const isReady = state === 'settled' && leftSec === 0;
  return (
    <>
      <strong>
        {shown(outstanding)} {token}
      </strong>
      <ol className="row">
        <li className="good">✓ requested</li>
        <li className={state === 'settled' ? 'good' : ''}>
          {state === 'settled'
            ? `✓ settled: ${shown(claim)} ${token}`
            : `… the operator settles it${settlesInSec > 0 ? ` from ${settlesInSec} s on` : ''}`}
        </li>
        <li className={isReady ? 'good' : ''}>
          {state !== 'settled' || leftSec === null
            ? '· delay'
            : leftSec > 0
              ? `… to be had in ${leftSec} s`
              : '✓ to be had'}
        </li>
        <li>
          <button type="button" disabled={!isReady || acting.busy} onClick={() => once.ask('executeWithdraw', token)}>
            Execute
          </button>
        </li>
      </ol>
      {once.question}
      {requestsShort > 0 && (
        <p className="caption">
          What you asked for last is settled beside other withdrawals, once the claim that stands is executed, or after{' '}
          {requestsShort} more {requestsShort === 1 ? 'request' : 'requests'}.
        </p>
      )}
      <Said acting={acting} />
    </>
  );
}

function Events({ withdrawals: { events } }: { withdrawals: Withdrawals }) {
  if (events.length === 0) return null;
  return (
    <details>
      <summary>Deposits and withdrawals so far ({events.length === 100 ? 'the newest 100' : events.length})</summary>
      <div className="scroll" tabIndex={0} role="region" aria-label="Custody events">
        <table>
          <thead>
            <tr>
              <th scope="col">What</th>
              <th scope="col" className="number">
                Amount
              </th>
              <th scope="col">Block</th>
              <th scope="col">Transaction</th>
            </tr>
          </thead>
          <tbody>
            {events.map((event, i) => (
              <tr key={i}>
                <td>{event.event}</td>
                <td className="number">
                  {shown(event.amount)} {event.token}
                </td>
                <td>{event.block_number}</td>
                <td>
                  <TransactionLink hash={event.tx_hash} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
