import { useState } from 'react';
import { useShown } from '../market-context.js';
import { useNowMs, useStreamState } from '../platform.js';
import { tradingOff } from '../states.js';
import { BalanceProof, Balances } from '../maker/balances.js';
import { Checklist } from '../maker/checklist.js';
import { Custody } from '../maker/custody.js';
import { mayAgentSign } from '../maker/agent.js';
import type { Edited } from '../maker/edit.js';
import { useMakerFacts, useTabAgent } from '../maker/facts.js';
import { useOpenOrders } from '../maker/open-orders.js';
import { Orders, ScheduledCancel } from '../maker/orders.js';
import { MakerFills, Performance } from '../maker/results.js';
import type { Requested } from '../maker/requested.js';
import { Ticket } from '../maker/ticket.js';
import { NobodyActs } from '../wallet/account-menu.js';
import { useMaker } from '../wallet/clients.js';
import { useWallets } from '../wallet/session.js';
import type { Session } from '../wallet/session.js';

/** A maker's work: from the approval to quotes, fills and the way out again. */
export function MakerPage() {
  const { session } = useWallets();
  const { deployment } = useShown();
  return (
    <>
      <h1>Maker</h1>
      {session === null ? (
        <NobodyActs role="maker3" />
      ) : (
        <Desk key={`${deployment.deployment_id}/${session.address}`} session={session} />
      )}
    </>
  );
}

function Desk({ session }: { session: Session }) {
  const { deployment, status } = useShown();
  const nowMs = useNowMs();
  const off = tradingOff(status, useStreamState(), nowMs);
  const facts = useMakerFacts(session, deployment);
  const [agent, adopt] = useTabAgent(deployment.deployment_id, session.address);
  const isAgent = mayAgentSign(agent, facts.account, nowMs);
  const [edited, setEdited] = useState<Edited | null>(null);
  const live = useOpenOrders(session.address);
  const [requested, setRequested] = useState<Requested>(new Map());
  const onRequested = (token: string, hash: string): void => setRequested((all) => new Map(all).set(token, hash));
  // Cancels do not wait for what the account says of the key.
  const { custody, orders } = useMaker(isAgent === false ? null : (agent?.key ?? null));
  const withdrawals = facts.withdrawals.data;
  const failed = facts.account.error ?? facts.limits.error ?? facts.withdrawals.error ?? facts.allowances.error;
  return (
    <>
      {failed !== null && (
        <p role="alert" className="bad">
          {failed}
        </p>
      )}
      {custody !== null && <Checklist {...{ session, facts, custody, isAgent }} onAgent={adopt} />}
      <div className="desk">
        <Ticket {...{ address: session.address, orders, live, edited, off }} onEnd={() => setEdited(null)} />
        {custody !== null && <Custody {...{ session, custody, onRequested }} withdrawals={withdrawals} />}
      </div>
      <Balances {...{ address: session.address, limits: facts.limits, withdrawals, custody, requested, onRequested }} />
      <Orders state={live} client={orders} onEdit={setEdited} />
      <ScheduledCancel account={facts.account.data} client={orders} />
      <MakerFills address={session.address} />
      <Performance address={session.address} />
      <BalanceProof address={session.address} />
    </>
  );
}
