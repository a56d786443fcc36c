import { lazy, Suspense, useState } from 'react';
import { Link, Redirect, Route, Switch, useLocation } from 'wouter';
import { ShownContext, symbolOf } from './market-context.js';
import type { Deployment, Status } from './market-context.js';
import { useRead, useSame, useStream, useStreamState } from './platform.js';
import { StateBanner, StatePill } from './states.js';
import { applyTheme, nextTheme, storedTheme } from './theme.js';
import { AccountMenu, WalletBanner } from './wallet/account-menu.js';
import { WalletsProvider } from './wallet/session.js';
import { OverviewPage } from './pages/overview.js';

const MarketPage = lazy(async () => ({ default: (await import('./pages/market.js')).MarketPage }));
const SwapPage = lazy(async () => ({ default: (await import('./pages/swap.js')).SwapPage }));
const MakerPage = lazy(async () => ({ default: (await import('./pages/maker.js')).MakerPage }));
const OperatorPage = lazy(async () => ({ default: (await import('./pages/operator.js')).OperatorPage }));
const FillPage = lazy(async () => ({ default: (await import('./pages/fill.js')).FillPage }));

/** The console: the frame around each page, and what all pages need to know. */
export function App() {
  const deployment = useRead('deployment', (read) => read.deployment(), 30_000);
  // Clients and wallets are made anew when it changes, which it hardly ever does.
  const known = useSame(deployment.data);
  if (known === null) {
    return (
      <main className="page">
        <StateBanner status={null} failed={deployment.error} />
        {deployment.error === null && <p role="status">Asking the server …</p>}
      </main>
    );
  }
  return (
    <WalletsProvider deployment={known}>
      <Frame deployment={known} />
    </WalletsProvider>
  );
}

const PAGES = [
  ['/', 'What happens'],
  ['/market', 'Market'],
  ['/swap', 'Swap'],
  ['/maker', 'Maker'],
  ['/operator', 'Operator'],
] as const;

function Frame({ deployment }: { deployment: Deployment }) {
  const [place, go] = useLocation();
  const stream = useStreamState();
  const status = useStream({ type: 'status' }, (_state: Status | null, data) => data);
  const [, page = '', named = '', ...rest] = place.split('/');
  const market = deployment.markets.find(({ pair }) => pair === decodeURIComponent(named)) ?? deployment.markets[0];
  const at = (path: string, pair: string): string => `${path}/${encodeURIComponent(pair)}`;
  return (
    <>
      <a className="skip" href="#content">
        To the content
      </a>
      <header className="top">
        <strong className="brand">Curvebook</strong>
        <nav aria-label="Pages">
          {PAGES.map(([path, name]) => (
            <Link
              key={path}
              href={path === '/market' ? at(path, market?.pair ?? '') : path}
              aria-current={(path === '/' ? place === '/' : place.startsWith(path)) ? 'page' : undefined}
            >
              {name}
            </Link>
          ))}
          <a href="/docs">Docs</a>
        </nav>
        {deployment.markets.length > 1 && market !== undefined && (
          <label>
            <span className="unseen">Market</span>
            <select value={market.pair} onChange={(event) => go(`/market/${encodeURIComponent(event.target.value)}`)}>
              {deployment.markets.map(({ pair }) => (
                <option key={pair}>{pair}</option>
              ))}
            </select>
          </label>
        )}
        <StatePill status={status} stream={stream} />
        <ThemeButton />
        <AccountMenu />
      </header>
      <WalletBanner deployment={deployment} />
      <StateBanner status={status} failed={stream === 'open' || status.data === null ? null : 'connection lost'} />
      <main id="content" className="page" key={`${page}/${market?.pair}/${rest.join('/')}`}>
        {market === undefined ? (
          <p role="status">
            No market is listed yet. The owner lists one with <code>npm run deploy -- configure</code>.
          </p>
        ) : (
          <ShownContext
            value={{
              deployment,
              market,
              base: symbolOf(deployment, market.base),
              quote: symbolOf(deployment, market.quote),
              status,
            }}
          >
            <Suspense fallback={<p role="status">Loading …</p>}>
              <Switch>
                <Route path="/" component={OverviewPage} />
                <Route path="/market/:pair?" component={MarketPage} />
                <Route path="/swap" component={SwapPage} />
                <Route path="/maker/:pair?" component={MakerPage} />
                <Route path="/operator" component={OperatorPage} />
                <Route path="/fills/:pair/:seq">{({ seq }) => <FillPage fillSeq={seq} />}</Route>
                <Route>
                  <Redirect to="/" />
                </Route>
              </Switch>
            </Suspense>
          </ShownContext>
        )}
      </main>
      <footer className="foot">
        chain {deployment.chain_id} · deployment {deployment.deployment_id} · version {deployment.version}
        {deployment.sandbox && ' · sandbox: money without value'}
      </footer>
    </>
  );
}

function ThemeButton() {
  const [theme, setTheme] = useState(storedTheme);
  return (
    <button
      type="button"
      aria-label={`Theme: ${theme}`}
      onClick={() => {
        const next = nextTheme(theme);
        applyTheme(next);
        setTheme(next);
      }}
    >
      <span className="wide-only">Theme: </span>
      {theme}
    </button>
  );
}
