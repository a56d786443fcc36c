import { formatUnits } from '../../../core/amounts.js';
import { useShown } from '../market-context.js';
import type { Status } from '../market-context.js';
import { exact, shortHex, shown } from '../numbers.js';
import { useRead } from '../platform.js';
import { Age, Outdated } from '../states.js';
import { TransactionLink } from '../swap/receipt.js';
import { onChain } from '../wallet/provider.js';
import { balancesOf } from './chain.js';
import { useChain } from './on-chain.js';

type Keeper = Status['keepers'][number];

/** One tile per role: whether it runs, by which key, for how long its gas lasts, and what it did last. */
export function Tiles({ status }: { status: Status }) {
  const { deployment } = useShown();
  const chain = useChain();
  const signers = status.keepers.flatMap(({ gas }) => (gas?.signer ? [gas.signer] : []));
  const balances = useRead(
    chain === null ? null : `balances/${chain.source}/${signers.join()}`,
    async () =>
      chain === null ? {} : onChain(chain.provider, deployment.chain_id, () => balancesOf(chain.provider, signers)),
    10_000,
  );
  return (
    <section aria-label="Tiles">
      <Outdated what="Gas of the keys" of={balances} />
      <ul className="way tiles">
        {status.keepers.map((keeper) => (
          <li key={keeper.role}>
            <h2>{keeper.role}</h2>
            <State keeper={keeper} balances={balances.data ?? {}} />
            <p className="why">
              last act {keeper.last_act_ms === null ? 'none yet' : <Age sinceMs={keeper.last_act_ms} />}
              {keeper.last_act_ms !== null && ' ago'}
              {keeper.waiting > 0 && ` · ${keeper.waiting} waiting`}
            </p>
            {keeper.gas !== null && <Gas gas={keeper.gas} balances={balances.data ?? {}} status={status} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

const ETH_PLACES = 6;
const MOST_HOURS = 1_000n;
const FEW_HOURS = 24n;

/** What stands first: a role without gas runs, and does nothing. */
function State({ keeper: { running, gas }, balances }: { keeper: Keeper; balances: Readonly<Record<string, bigint>> }) {
  const balance = gas?.signer ? balances[gas.signer] : undefined;
  const hours = balance === undefined || gas === null ? null : hoursLeft(balance, gas.spent_last_hour);
  // A reader does not know it.
  if (running === null) return <p className="value">? not known here</p>;
  if (!running) return <p className="value bad">■ does not run</p>;
  if (hours === 0n) return <p className="value bad">■ out of gas: send ETH to its key</p>;
  return <p className="value good">● runs</p>;
}

/** For how many hours a balance lasts at the pace of the last hour, cut off; null where nothing was spent of it. */
function hoursLeft(wei: bigint, spentLastHour: string): bigint | null {
  const { digits, scale } = exact(spentLastHour);
  if (wei === 0n) return 0n;
  return digits === 0n ? null : (wei * 10n ** BigInt(scale)) / (digits * 10n ** 18n);
}

function Gas({
  gas: { signer, spent_last_hour: spent, budget_per_hour: budget },
  balances,
  status,
}: {
  gas: NonNullable<Keeper['gas']>;
  balances: Readonly<Record<string, bigint>>;
  status: Status;
}) {
  if (signer === null) return <p className="why">no key yet</p>;
  const balance = balances[signer];
  const sent = status.transactions.find((one) => one.signer === signer);
  const revert = sent?.last_revert ?? null;
  return (
    <>
      <p className="why">
        key <code title={signer}>{shortHex(signer)}</code>
      </p>
      <p className="why">{balance === undefined ? 'gas: the chain is not asked' : lasting(balance, spent)}</p>
      <p className="why">
        spent {shown(spent, ETH_PLACES)} ETH in the last hour
        {budget !== null && ` of ${shown(budget, ETH_PLACES)} that it may`}
      </p>
      <p className="why">
        {revert === null ? (
          'no revert'
        ) : (
          <>
            reverted <Age sinceMs={revert.time_ms} /> ago:{' '}
            <strong>{revert.reason ?? 'for no reason that an endpoint names'}</strong>{' '}
            <TransactionLink hash={revert.hash} />
          </>
        )}
      </p>
    </>
  );
}

/** For how long a balance lasts at the pace of the last hour. */
function lasting(wei: bigint, spentLastHour: string) {
  const eth = `${shown(formatUnits(wei, 18), ETH_PLACES)} ETH`;
  const hours = hoursLeft(wei, spentLastHour);
  if (hours === null) return `${eth} for gas, none spent in the last hour`;
  const text = hours > MOST_HOURS ? `more than ${shown(`${MOST_HOURS}`)} hours` : `${hours} hours`;
  return (
    <>
      gas for <strong className={hours < FEW_HOURS ? 'bad' : undefined}>{text}</strong> ({eth})
    </>
  );
}
