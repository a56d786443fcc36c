import { useEffect, useState } from 'react';
import { formatUnits } from '../../../core/amounts.js';
import { useShown } from '../market-context.js';
import { LIST_PLACES, shown } from '../numbers.js';
import { useNowMs, useRead, useSettled, useStreamState } from '../platform.js';
import { isOld, Outdated, tradingOff } from '../states.js';
import { CopyAs } from '../swap/copy-as.js';
import { History } from '../swap/history.js';
import { limitText, NO_LIMIT, suggestedFor, withAmount } from '../swap/limit.js';
import { LimitTerms, WAITS } from '../swap/limit-terms.js';
import { useOrderOnce } from '../swap/order-once.js';
import { Progress } from '../swap/progress.js';
import { Receipt } from '../swap/receipt.js';
import { useRun } from '../swap/run.js';
import { TermsList } from '../swap/terms-list.js';
import { boundOf, entered, minBuyOf, offerOf } from '../swap/terms.js';
import type { Mode, Token } from '../swap/terms.js';
import { TokenField } from '../swap/token-field.js';
import { NobodyActs } from '../wallet/account-menu.js';
import { useBalance } from '../wallet/balance.js';
import { useTaker } from '../wallet/clients.js';
import { PendingList, useOnce } from '../wallet/pending-view.js';
import { useWallets } from '../wallet/session.js';

/** What the main button does. */
const NAMES: Readonly<Record<Mode, string>> = { gasless: 'Sign and swap', direct: 'Swap', limit: 'Sign and place' };

const SLIPPAGES_BPS = [10, 50, 100, 300] as const;

/** Sells one token for another: gasless by one signature, or directly by a transaction. */
export function SwapPage() {
  const { deployment, market, status } = useShown();
  const { session } = useWallets();
  const off = tradingOff(status, useStreamState(), useNowMs());
  const [sellAddress, setSell] = useState(market.base);
  const [buyAddress, setBuy] = useState(market.quote);
  const [text, setText] = useState('1');
  const hasGasless = deployment.contracts.orderSettler !== undefined && deployment.contracts.permit2 !== undefined;
  const [mode, setMode] = useState<Mode>(hasGasless ? 'gasless' : 'direct');
  const [slippageBps, setSlippage] = useState<number>(50);
  const [maxFeeText, setMaxFee] = useState('');
  const [limit, setLimit] = useState(NO_LIMIT);
  const [validForSec, setValidFor] = useState<number>(WAITS[1][0]);
  const taker = useTaker(deployment);
  const { run, start, forget } = useRun(taker, session?.address ?? null);
  const sell = tokenAt(deployment.tokens, sellAddress);
  const buy = tokenAt(deployment.tokens, buyAddress);
  const amount = entered(text, sell);
  const maxFee = entered(maxFeeText, sell, 'bound');
  const limitOf = amount.units === null ? null : `${sell.address}/${buy.address}/${amount.units}`;
  const leastText = limitText(limit, limitOf);
  const limitLeast = entered(leastText, buy);
  // Amount and token settle together: base units of one token are no amount of another.
  const typed = `${sell.address}/${amount.units}`;
  const units = useSettled(typed) === typed ? amount.units : null;
  const balance = useBalance(session, sell);
  const price = useRead(
    units === null || !hasGasless || sell === buy
      ? null
      : `price/${sell.address}/${buy.address}/${units}/${slippageBps}`,
    (read) =>
      read.get('/api/v1/price', {
        query: {
          chainId: `${deployment.chain_id}`,
          sellToken: sell.address,
          buyToken: buy.address,
          kind: 'sell',
          sellAmountBeforeFee: `${units}`,
          slippageBps: `${slippageBps}`,
        },
      }),
    2_000,
  );
  const direct = useRead(
    units === null || taker === null || sell === buy
      ? null
      : `direct/${session?.address}/${sell.address}/${buy.address}/${units}`,
    async () =>
      (await taker?.price({ sell: sell.symbol, buy: buy.symbol, amount: formatUnits(units ?? 0n, sell.decimals) })) ??
      0n,
    2_000,
  );
  const { gaslessUnits, buyUnits, least } = offerOf({
    ...{ mode, units: amount.units, pricedUnits: units, direct: direct.data, slippageBps },
    gasless: price.data === null ? null : BigInt(price.data.buyAmount),
  });
  const bound = boundOf(mode, limitLeast.units, least);
  // From the price of now one changes a digit; once it is there, it stays as it is.
  const suggestion =
    mode === 'limit' && gaslessUnits !== null && gaslessUnits > 0n ? formatUnits(gaslessUnits, buy.decimals) : null;
  useEffect(() => {
    if (suggestion !== null && limitOf !== null) setLimit((old) => suggestedFor(old, limitOf, suggestion));
  }, [suggestion === null, limitOf]);
  // An old balance stands in nobody's way: what is signed or sent without the tokens is refused.
  const isShort = !isOld(balance) && balance.data !== null && amount.units !== null && amount.units > balance.data;
  const isBusy = run !== null && run.stage !== 'done' && run.stage !== 'failed';
  const problem =
    sell === buy
      ? 'Choose two different tokens.'
      : (amount.problem ??
        (mode === 'limit' ? null : maxFee.problem) ??
        (isShort
          ? `The account holds ${shown(formatUnits(balance.data ?? 0n, sell.decimals))} ${sell.symbol}.`
          : null));
  const isSwap = amount.units !== null && sell !== buy;
  const canSwap = session !== null && off === null && !isBusy && problem === null && isSwap && bound !== null;

  /** What was typed for one token is no bound in another, nor for another. */
  function sellOther(address: string): void {
    setSell(address);
    setMaxFee('');
    setLimit(NO_LIMIT);
  }

  function buyOther(address: string): void {
    setBuy(address);
    setLimit(NO_LIMIT);
  }

  function setAmount(typed: string): void {
    setText(typed);
    setLimit(withAmount);
  }

  const account = session?.address ?? null;
  const about = `${sell.address}/${buy.address}/${text}`;
  const orderOnce = useOrderOnce(account, `${account}/${mode}/${about}`, () => {
    if (canSwap) swap();
  });
  const once = useOnce(account, about, () => orderOnce.ask(sell));

  function flip(): void {
    sellOther(buy.address);
    buyOther(sell.address);
    if (buyUnits !== null && buyUnits > 0n) setText(formatUnits(buyUnits, buy.decimals));
  }

  function swap(): void {
    if (amount.units === null || bound === null) return;
    const sold = {
      ...{ sell: sell.symbol, buy: buy.symbol, amount: formatUnits(amount.units, sell.decimals) },
      minBuy: formatUnits(minBuyOf(mode, bound, buyUnits), buy.decimals),
    };
    if (mode === 'limit') return start({ mode, buy, swap: { ...sold, validForSec } });
    const bounds = {
      slippageBps,
      ...(maxFee.units === null ? {} : { maxFee: formatUnits(maxFee.units, sell.decimals) }),
    };
    start({ mode, buy, swap: { ...sold, ...bounds } });
  }

  return (
    <>
      <h1>Swap</h1>
      <form
        className="swap"
        onSubmit={(event) => {
          event.preventDefault();
          if (canSwap && !orderOnce.isAsking) once.ask('swap', sell.symbol);
        }}
      >
        <div className="pairfields">
          <TokenField
            label="You sell"
            tokens={deployment.tokens}
            token={sell}
            onToken={sellOther}
            value={text}
            onValue={setAmount}
            problem={problem}
          />
          <button type="button" className="flip" onClick={flip} aria-label="Sell what is bought">
            ⇅
          </button>
          <TokenField
            label={mode === 'limit' ? 'You get at least' : 'You get'}
            tokens={deployment.tokens}
            token={buy}
            onToken={buyOther}
            {...(mode === 'limit' && {
              onValue: (typed) => setLimit((old) => ({ ...old, typed })),
              problem: limitLeast.problem,
            })}
            value={mode === 'limit' ? leastText : buyUnits === null ? '' : shown(formatUnits(buyUnits, buy.decimals))}
          />
        </div>
        <Outdated what="Your balance" of={balance} />
        {balance.data !== null && (
          <p className={isOld(balance) ? 'caption old' : 'caption'} title={formatUnits(balance.data, sell.decimals)}>
            You hold {shown(formatUnits(balance.data, sell.decimals), LIST_PLACES)} {sell.symbol}.{' '}
            <button type="button" onClick={() => setAmount(formatUnits(balance.data ?? 0n, sell.decimals))}>
              Sell all
            </button>
          </p>
        )}
        <fieldset className="row">
          <legend>How</legend>
          <label>
            <input
              type="radio"
              name="mode"
              checked={mode === 'gasless'}
              disabled={!hasGasless}
              onChange={() => setMode('gasless')}
            />{' '}
            Gasless: one signature, the service pays the gas
          </label>
          <label>
            <input type="radio" name="mode" checked={mode === 'direct'} onChange={() => setMode('direct')} /> Direct: a
            transaction of yours, against the curve alone
          </label>
          <label>
            <input
              type="radio"
              name="mode"
              checked={mode === 'limit'}
              disabled={!hasGasless}
              onChange={() => setMode('limit')}
            />{' '}
            Limit: one signature that waits for your price
          </label>
        </fieldset>
        {mode === 'limit' ? (
          <label className="field">
            Waits at most
            <select
              value={validForSec}
              onChange={({ target }) => setValidFor(WAITS[target.selectedIndex]?.[0] ?? WAITS[1][0])}
            >
              {WAITS.map(([sec, name]) => (
                <option key={sec} value={sec}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        ) : (
          <details>
            <summary>Bounds</summary>
            <div className="row">
              <label className="field">
                Slippage
                <select
                  value={slippageBps}
                  onChange={({ target }) => setSlippage(SLIPPAGES_BPS[target.selectedIndex] ?? 50)}
                >
                  {SLIPPAGES_BPS.map((bps) => (
                    <option key={bps} value={bps}>
                      {shown(formatUnits(BigInt(bps), 2))} %
                    </option>
                  ))}
                </select>
              </label>
              <label className="field">
                Most for gas, in {sell.symbol} (gasless)
                <input
                  value={maxFeeText}
                  onChange={({ target }) => setMaxFee(target.value)}
                  inputMode="decimal"
                  autoComplete="off"
                  placeholder="1 % of the amount"
                />
              </label>
            </div>
          </details>
        )}
        {mode === 'limit' ? (
          <LimitTerms {...{ sell, buy, units: amount.units, leastUnits: limitLeast.units, nowUnits: gaslessUnits }} />
        ) : (
          <TermsList
            {...{ mode, sell, buy, price, direct, buyUnits, least }}
            units={amount.units}
            hasReader={taker !== null}
            isOff={off !== null}
          />
        )}
        {off !== null && (
          <p role="status" className="bad">
            {off}
          </p>
        )}
        {session === null ? (
          <NobodyActs role="taker3" />
        ) : (
          <button type="submit" className="main" disabled={!canSwap || orderOnce.isAsking}>
            {NAMES[mode]} {amount.units === null ? '' : `${text.trim()} ${sell.symbol}`}
          </button>
        )}
        {once.question}
        {orderOnce.question}
      </form>
      {session !== null && <PendingList session={session} />}
      {run !== null && <Progress run={run} onForget={forget} />}
      {run?.stage === 'done' && run.txHash !== null && <Receipt taker={run.taker} txHash={run.txHash} />}
      <CopyAs
        swap={
          !isSwap || bound === null
            ? null
            : {
                ...{ deployment, sell, buy, units: amount.units, slippageBps, validForSec, mode, minBuyUnits: bound },
                url: window.location.origin,
              }
        }
        waits={isSwap && mode !== 'limit'}
      />
      <History address={session?.address ?? null} taker={session === null ? null : taker} />
    </>
  );
}

const tokenAt = (tokens: readonly Token[], address: string): Token => {
  const token = tokens.find((one) => one.address === address) ?? tokens[0];
  if (token === undefined) throw new Error('a deployment with a market has tokens');
  return token;
};
