/**
 * The console on a sandbox without bots, where nothing happens by itself: what each page shows while nothing is known, and while there is nothing; then a
 * quote and a swap by keys alone, and a wallet of the old kind.
 */
import { expect } from 'chai';
import type { Locator, Page, Route } from 'playwright-core';
import { hasBrowser, inAllLooks, withConsole, type ConsoleInBrowser } from '../../support/console/console-browser.js';
import { walletStandIn } from '../../support/console/wallet-stand-in.js';

/** More stops than any page has on the way to what is looked for. */
const MOST_TABS = 120;

if (hasBrowser()) {
  describe('the console where nothing happens by itself', function () {
    this.timeout(240_000);
    let opened: ConsoleInBrowser;
    let page: Page;
    let url: string;

    withConsole(
      (now) => {
        opened = now;
        ({ page, url } = now);
      },
      {},
      '--no-demo',
    );

    it('says that it loads while nothing is known, on each page, and shows no number', async () => {
      const held: Route[] = [];
      await page.route('**/{v0,api}/**', (route) =>
        route.request().url().endsWith('/v0/deployment') ? route.continue() : void held.push(route),
      );
      let isHeld = true;
      await page.routeWebSocket(/\/ws$/, (socket) => void (isHeld || socket.connectToServer()));
      const pill = page.getByRole('status').filter({ hasText: '… connecting' });
      for (const [path, says] of Object.entries({
        '/': 'Loading fills …',
        '/market/WETH-USDC': 'Loading the book …',
        '/operator': 'Loading',
      })) {
        await page.goto(url + path);
        await pill.waitFor();
        await page.getByText(says).first().waitFor();
        expect(await page.getByRole('cell').count(), path).to.equal(0);
      }
      await page.unrouteAll({ behavior: 'ignoreErrors' });
      await page.route('**/v0/deployment', (route) => void held.push(route));
      await page.goto(url);
      await page.getByText('Asking the server …').waitFor();
      isHeld = false;
      await page.unrouteAll({ behavior: 'ignoreErrors' });
    });

    it('says what there is not, on each page, in words that tell what would change it', async () => {
      const found: Record<string, object> = {};
      for (const [name, path, ...says] of [
        ['empty-overview', '/', 'No fill yet: nobody has swapped in this market.'],
        ['empty-market', '/market/WETH-USDC', 'The book is empty', 'No trade yet', 'No fill yet'],
        ['empty-operator', '/operator', 'Nothing was ever halted', 'The chain has taken nothing back'],
      ] as const) {
        await page.goto(url + path);
        for (const text of says) await page.getByText(text).first().waitFor();
        Object.assign(found, await inAllLooks(opened, name));
      }
      await page.goto(`${url}/swap`);
      await page.getByLabel('Act as').selectOption('taker1');
      for (const text of ['No gasless order of this address.', 'No swap of this address on the chain.'])
        await page.getByText(text).waitFor();
      await page.getByRole('radio', { name: /^Direct/ }).check();
      await page.getByRole('alert').filter({ hasText: 'The curve quotes nothing for this amount now' }).waitFor();
      Object.assign(found, await inAllLooks(opened, 'empty-swap'));
      await page.goto(`${url}/maker`);
      await page.getByLabel('Act as').selectOption('maker3');
      await page.getByText('No open order').waitFor();
      Object.assign(found, await inAllLooks(opened, 'empty-maker'));
      expect(found).to.deep.equal({});
      await page.setViewportSize({ width: 1_440, height: 900 });
      await page.getByLabel('Act as').selectOption('');
      // Prices are refused while nobody quotes, which the browser notes.
      expect(opened.problems().filter((problem) => !/status of 400.*\/api\/v1\/price/.test(problem))).to.deep.equal([]);
    });

    const isFocused = async (what: Locator): Promise<boolean> => (await what.and(page.locator(':focus')).count()) > 0;

    /** Goes there by Tab, as far as it takes. */
    async function tabTo(what: Locator): Promise<void> {
      await what.waitFor();
      for (let tabs = 0; tabs < MOST_TABS; tabs += 1) {
        if (await isFocused(what)) return;
        await page.keyboard.press('Tab');
      }
      throw new Error(`no way by Tab to ${String(what)}`);
    }

    async function press(name: string | RegExp): Promise<void> {
      const button = page.getByRole('button', { name });
      await tabTo(button);
      // A button that is off takes no focus: whoever gets there may press it.
      await page.keyboard.press('Enter');
    }

    it('lets a maker begin and quote by keys alone', async () => {
      await page.goto(`${url}/maker`);
      const skip = page.getByRole('link', { name: 'To the content' });
      await skip.waitFor();
      await page.keyboard.press('Tab');
      expect(await isFocused(skip)).to.equal(true);
      await press('Act as maker3');
      await press('Approve, as the operator');
      await page.locator('.checklist li.good').filter({ hasText: 'Approved' }).waitFor();
      const custody = page.getByRole('region', { name: 'Custody' });
      await tabTo(custody.getByLabel('Amount'));
      await page.keyboard.type('8');
      await tabTo(custody.getByRole('button', { name: 'Deposit' }));
      await page.keyboard.press('Enter');
      await page.locator('.checklist li.good').filter({ hasText: 'Credited' }).waitFor();
      await page.reload();
      const ticket = page.getByRole('form', { name: 'Order' });
      for (const [field, value] of [
        [/^Price/, '2500'],
        [/^Size/, '5'],
      ] as const) {
        await tabTo(ticket.getByLabel(field));
        await page.keyboard.type(value);
      }
      await page.keyboard.press('Enter');
      await ticket.getByText(/order \d+ rests/).waitFor();
    });

    it('lets a taker swap by keys alone, and names everything that it stops at', async () => {
      await page.goto(`${url}/swap`);
      await tabTo(page.getByLabel('Act as'));
      await page.keyboard.type('taker1');
      await tabTo(page.getByRole('button', { name: 'Sell what is bought' }));
      await page.keyboard.press('Enter');
      const sold = page.getByLabel('You sell', { exact: true });
      await page.keyboard.press('Shift+Tab');
      await tabTo(sold);
      await page.keyboard.press('ControlOrMeta+a');
      await page.keyboard.type('1000');
      await tabTo(page.getByRole('radio', { name: /^Gasless/ }));
      await page.keyboard.press('ArrowDown');
      expect(await page.getByRole('radio', { name: /^Direct/ }).isChecked()).to.equal(true);
      await press(/^Swap 1000 USDC$/);
      await page.getByRole('region', { name: 'Receipt' }).getByText('Gave 1,000 USDC, got').waitFor();
      const unnamed = await page.evaluate<string[]>(`(() => {
        const named = (one) => one.getAttribute('aria-label') ?? one.textContent.trim();
        return [...document.querySelectorAll('a[href], button, summary')].filter((one) => !named(one)).map(({ outerHTML }) => outerHTML);
      })()`);
      expect(unnamed).to.deep.equal([]);
    });

    it('says of a role without gas that it does nothing, and what it needs', async () => {
      const accounts = (await (await fetch(`${url}/sandbox/accounts`)).json()) as { role: string; address: string }[];
      const { rpc_url: rpcUrl } = (await (await fetch(`${url}/v0/deployment`)).json()) as { rpc_url: string };
      const params = [accounts.find(({ role }) => role === 'executor')?.address, '0x0'];
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'hardhat_setBalance', params });
      await fetch(rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
      await page.goto(`${url}/operator`);
      const tile = page.getByRole('region', { name: 'Tiles' }).getByRole('listitem').filter({ hasText: 'executor' });
      await tile.filter({ hasText: '■ out of gas: send ETH to its key' }).waitFor();
    });

    it('connects a wallet that announces nothing', async () => {
      const accounts = (await (await fetch(`${url}/sandbox/accounts`)).json()) as { role: string; address: string }[];
      const { rpc_url: rpcUrl } = (await (await fetch(`${url}/v0/deployment`)).json()) as { rpc_url: string };
      const addresses = accounts.filter(({ role }) => role === 'taker2').map(({ address }) => address);
      // The transpiler names functions by a helper that pages don't have.
      await page.addInitScript('globalThis.__name = (named) => named');
      await page.addInitScript(walletStandIn, { addresses, rpcUrl, isInjected: true });
      await page.goto(`${url}/swap`);
      await page.getByRole('button', { name: 'Connect Browser wallet' }).click();
      const short = addresses[0]?.slice(0, 6).toLowerCase() ?? '';
      await page.locator('.account code').filter({ hasText: short }).waitFor();
      await page.getByRole('button', { name: 'Disconnect' }).click();
      await page.getByText('Nobody acts yet').waitFor();
    });
  });
}
