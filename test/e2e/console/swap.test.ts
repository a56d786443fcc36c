/** The swap page in a real browser, from the click to the chain; and what it says when a wallet or the platform stands in the way. */
import { expect } from 'chai';
import type { Locator, Page } from 'playwright-core';
import { hasBrowser, inAllLooks, withConsole, type ConsoleInBrowser } from '../../support/console/console-browser.js';
import { until } from '../../support/stack.js';
import { pressUntilDone } from '../../support/console/person.js';
import { walletStandIn } from '../../support/console/wallet-stand-in.js';

if (hasBrowser()) {
  describe('the swap page in a browser', function () {
    this.timeout(240_000);
    let opened: ConsoleInBrowser;
    let page: Page;
    let url: string;

    withConsole((now) => {
      opened = now;
      ({ page, url } = now);
    });

    const swapButton = (): ReturnType<Page['getByRole']> =>
      page.getByRole('button', { name: /^(?:Sign and swap|Swap) [\d.]+ / });

    const fact = (name: string): Locator =>
      page
        .locator('.facts div')
        .filter({ has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) })
        .locator('dd');

    /** Presses the button of the swap until there is a receipt of it. */
    async function pressUntilSwapped(sold: string): Promise<Locator> {
      const receipt = page.getByRole('region', { name: 'Receipt' });
      const progress = page.getByRole('region', { name: 'Progress' });
      const failed = progress.getByRole('alert');
      const close = async (): Promise<void> => {
        if (await failed.isVisible()) await failed.getByRole('button', { name: 'Close' }).click();
      };
      await close();
      const done = receipt.getByText(`Gave ${sold}, got`);
      await pressUntilDone(swapButton(), { taken: progress, done, failed, again: close });
      return receipt;
    }

    async function swapped(role: string, amount: string, mode: RegExp): Promise<void> {
      await page.goto(`${url}/swap`);
      await page.getByLabel('Act as').selectOption(role);
      await page.getByLabel('You sell', { exact: true }).fill(amount);
      await page.getByRole('radio', { name: mode }).check();
      const receipt = await pressUntilSwapped(`${amount} WETH`);
      // A gasless order may find a better price over pools alone; a direct one has makers always.
      const makers = receipt.getByText('✓ computed in this browser');
      await (role === 'taker3' ? makers.or(receipt.getByText('over pools alone')) : makers).first().waitFor();
    }

    it('swaps gasless: an account, an amount, one click; the receipt names the makers and adds up', async () => {
      await swapped('taker3', '3', /^Gasless/);
      const history = page.getByRole('region', { name: 'Gasless orders' });
      await history.getByRole('cell', { name: 'filled' }).first().waitFor();
    });

    it('swaps directly, and finds the swap in the history of the address', async () => {
      // No bot trades as this one.
      await swapped('maker3', '0.25', /^Direct/);
      const swaps = page.getByRole('region', { name: 'Swaps' });
      await swaps.getByRole('row').filter({ hasText: '0.25 WETH' }).first().waitFor();
    });

    it('allows a token by a signature, too, where the token takes one: no transaction of the account', async () => {
      const { rpc_url: rpcUrl } = (await (await fetch(`${url}/v0/deployment`)).json()) as { rpc_url: string };
      const accounts = (await (await fetch(`${url}/sandbox/accounts`)).json()) as { role: string; address: string }[];
      const params = [accounts.find(({ role }) => role === 'maker3')?.address, 'latest'];
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getTransactionCount', params });
      const count = async (): Promise<unknown> =>
        (await fetch(rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body })).json();
      const before = await count();
      await page.getByRole('button', { name: 'Sell what is bought' }).click();
      await page.getByLabel('You sell', { exact: true }).fill('700');
      await page.getByRole('radio', { name: /^Gasless/ }).check();
      const receipt = await pressUntilSwapped('700 USDC');
      await page.getByText('Allowed to Permit2 by a signature of its own').waitFor();
      await receipt.getByText('Gave 700 USDC, got').waitFor();
      expect(await count()).to.deep.equal(before);
      const signed = page.getByText(/^Signed for at least/);
      const minimum = await signed.innerText();
      expect(minimum).to.match(/^Signed for at least 0\.\d+ WETH\./);
      await page.getByRole('button', { name: 'Sell what is bought' }).click();
      await page.getByRole('button', { name: /WETH$/ }).waitFor();
      expect(await signed.innerText()).to.equal(minimum);
    });

    it('signs nothing where nothing may be paid for gas, and takes that for no bound in another token', async () => {
      await page.getByLabel('You sell', { exact: true }).fill('0.3');
      await page.getByText('Bounds', { exact: true }).click();
      const most = page.getByLabel(/^Most for gas/);
      await most.fill('0');
      await swapButton().click();
      const alert = page.getByRole('region', { name: 'Progress' }).getByRole('alert');
      await alert.filter({ hasText: 'FEE_TOO_HIGH' }).waitFor();
      await page.getByRole('button', { name: 'Sell what is bought' }).click();
      expect(await most.inputValue()).to.equal('');
    });

    it('finds an order in the history of the address that was on its way when the page was loaded again', async () => {
      await page.reload();
      await page.getByLabel('You sell', { exact: true }).fill('0.31');
      const progress = page.getByRole('region', { name: 'Progress' });
      const signed = progress.locator('li.good').filter({ hasText: 'Your signature' });
      const close = progress.getByRole('button', { name: 'Close' });
      // Wrapped ether takes no approval by signature: a transaction comes first.
      await pressUntilDone(swapButton(), {
        taken: progress,
        done: signed,
        failed: progress.getByRole('alert'),
        again: async () => {
          if (await close.isVisible()) await close.click();
        },
      });
      await page.reload();
      const orders = page.getByRole('region', { name: 'Gasless orders' });
      await orders.getByRole('row').filter({ hasText: '0.31 WETH' }).filter({ hasText: 'filled' }).waitFor();
    });

    it('lets an order wait for a price, says why, and cancels it by a signature', async () => {
      await page.getByLabel('You sell', { exact: true }).fill('0.2');
      // The price of the market is there to begin with.
      await fact('Route').filter({ hasText: '%' }).waitFor();
      await page.getByRole('radio', { name: /^Limit/ }).check();
      const least = page.getByLabel('You get at least', { exact: true });
      const suggests = (digits: number): Promise<void> =>
        until('the price of now to begin with', async () =>
          new RegExp(`^\\d{${digits}}(?:\\.\\d+)?$`).test(await least.inputValue()),
        );
      await suggests(3);
      await page.getByLabel('You sell', { exact: true }).fill('2');
      await suggests(4);
      await page.getByLabel('You sell', { exact: true }).fill('0.2');
      await suggests(3);
      await least.fill('1000');
      // Twice the price of now, which moves a little.
      await fact('Away')
        .filter({ hasText: /^(?:9|10)\d(?:\.\d+)? %$/ })
        .waitFor();
      await page.getByLabel('Waits at most').selectOption({ label: '30 days' });
      await page.getByRole('button', { name: 'Sign and place 0.2 WETH' }).click();
      const progress = page.getByRole('region', { name: 'Progress' });
      await progress.locator('li.good').filter({ hasText: 'It waits for its price' }).waitFor();
      const waiting = page
        .getByRole('region', { name: 'Gasless orders' })
        .getByRole('row')
        .filter({ hasText: '≥ 1,000 USDC' });
      await waiting
        .filter({ hasText: 'waits' })
        .filter({ hasText: 'LIMIT_NOT_REACHED' })
        .filter({ hasText: '29 d' })
        .waitFor();
      await waiting.getByRole('button', { name: /^Cancel order/ }).click();
      await waiting.filter({ hasText: 'CANCELLED' }).waitFor();
      expect(await waiting.getByRole('button').count()).to.equal(0);
    });

    it('fills a limit order once the market is there, on the chain', async () => {
      const least = page.getByLabel('You get at least', { exact: true });
      await page.getByLabel('You sell', { exact: true }).fill('0.21');
      await least.fill('100');
      await page.getByText('it is filled at once').waitFor();
      await page.getByRole('button', { name: 'Sign and place 0.21 WETH' }).click();
      await page
        .getByRole('region', { name: 'Gasless orders' })
        .getByRole('row')
        .filter({ hasText: '0.21 WETH' })
        .filter({ hasText: 'filled' })
        .waitFor();
      await page.getByRole('radio', { name: /^Gasless/ }).check();
    });

    it('goes on as the same account after a reload', async () => {
      await page.reload();
      await swapButton().waitFor();
      expect(await page.getByLabel('Act as').inputValue()).to.equal('maker3');
    });

    it('shows price, impact, route and the least before anybody acts, and refuses what is no amount', async () => {
      await page.getByLabel('Act as').selectOption('nobody');
      for (const [term, value] of Object.entries({
        Price: /^1 WETH = [\d,.]+ USDC$/,
        Impact: /^-?\d+ bps$|^not known$/,
      })) {
        await fact(term).filter({ hasText: value }).waitFor();
      }
      await fact('Route').filter({ hasText: '%' }).waitFor();
      const field = page.getByLabel('You sell', { exact: true });
      for (const [text, problem] of Object.entries({
        '1,5': 'Digits and one point',
        '-1': 'Digits and one point',
        '0.1234567890123456789': '18 places',
      })) {
        await field.fill(text);
        await page.getByRole('alert').filter({ hasText: problem }).waitFor();
      }
    });

    // They are run as they are by a test of their own.
    it('gives a swap, and a limit order, as a program in four languages', async () => {
      const shows = async (languages: Record<string, string>): Promise<void> => {
        for (const [language, says] of Object.entries(languages)) {
          await page.getByRole('button', { name: language, exact: true }).click();
          await page.locator('pre').filter({ hasText: says }).waitFor();
        }
      };
      await page.goto(`${url}/swap`);
      await page.getByLabel('You sell', { exact: true }).fill('0.75');
      await page.getByText('Copy as viem').click();
      await shows({
        viem: "amount: '0.75'",
        ethers: "amount: '0.75'",
        Solidity: 'contract SwapOnCurvebook',
        curl: '"sellAmountBeforeFee":"750000000000000000"',
      });
      await page.getByRole('button', { name: 'viem', exact: true }).click();
      await page
        .locator('pre')
        .filter({ hasText: /minBuy: '1\d{3}[.']/ })
        .waitFor();
      await page.getByRole('radio', { name: /^Limit/ }).check();
      await page.getByLabel('You get at least', { exact: true }).fill('3000');
      await shows({
        viem: "minBuy: '3000', validForSec: 86400",
        ethers: 'taker.placeLimit(',
        Solidity: 'contract LimitOrderOnCurvebook',
        curl: '"minBuyAmount":"3000000000"',
      });
      await page.getByRole('radio', { name: /^Gasless/ }).check();
    });

    it('says what a wallet refused, and what to do on another chain and as another account', async () => {
      const accounts = (await (await fetch(`${url}/sandbox/accounts`)).json()) as { role: string; address: string }[];
      const { rpc_url: rpcUrl } = (await (await fetch(`${url}/v0/deployment`)).json()) as { rpc_url: string };
      const addresses = ['taker2', 'maker3'].map((role) => accounts.find((one) => one.role === role)?.address ?? '');
      // The transpiler names functions by a helper that pages don't have.
      await page.addInitScript('globalThis.__name = (named) => named');
      await page.addInitScript(walletStandIn, { addresses, rpcUrl });
      await page.goto(`${url}/swap`);
      await page.getByRole('button', { name: 'Connect Stand-in' }).click();
      await page
        .locator('.account code')
        .filter({ hasText: addresses[0]?.slice(0, 6).toLowerCase() })
        .waitFor();
      await page.getByLabel('You sell', { exact: true }).fill('0.1');
      await page.getByRole('radio', { name: /^Direct/ }).check();
      await page.evaluate("standIn.does('refuse')");
      await swapButton().click();
      await page.getByRole('alert').filter({ hasText: 'refused in the wallet: nothing was signed or sent' }).waitFor();

      await page.evaluate("standIn.goesTo('0x1')");
      await page.getByRole('alert').filter({ hasText: 'Another chain.' }).waitFor();
      await swapButton().click();
      await page.getByRole('alert').filter({ hasText: 'WRONG_CHAIN' }).waitFor();
      await page.getByRole('button', { name: /^Switch to chain/ }).click();
      await page.getByRole('alert').filter({ hasText: 'Another chain.' }).waitFor({ state: 'detached' });

      await page.evaluate("standIn.does('obey')");
      await page.evaluate('standIn.becomes(1)');
      await page
        .locator('.account code')
        .filter({ hasText: addresses[1]?.slice(0, 6).toLowerCase() })
        .waitFor();
      const receipt = await pressUntilSwapped('0.1 WETH');
      const swaps = (await (await fetch(`${url}/v0/takers/${addresses[1]}/swaps?limit=50`)).json()) as {
        swaps: { amount_in: string }[];
      };
      expect(swaps.swaps.map(({ amount_in }) => amount_in)).to.include('0.1');
      await page.evaluate('standIn.becomes(null)');
      await page.getByText('Nobody acts yet').waitFor();
      // The receipt is that of whoever swapped, and stays.
      await receipt.getByText('Gave 0.1 WETH, got').waitFor();
    });

    it('keeps what is not mined yet over a reload, looks for it, and sends no second one unasked', async () => {
      await page.goto(`${url}/swap`);
      await page.getByRole('button', { name: 'Connect Stand-in' }).click();
      const prepared = async (): Promise<void> => {
        await page.getByLabel('You sell', { exact: true }).fill('0.11');
        await page.getByRole('radio', { name: /^Direct/ }).check();
      };
      await prepared();
      await page.evaluate("standIn.does('hold')");
      const progress = page.getByRole('region', { name: 'Progress' });
      const waiting = page.getByRole('list', { name: 'Transactions that wait' });
      // The allowance comes first, unless the account has given one that is larger.
      const waits = waiting.getByText(/(?:allowance|swap) of 0\.11 WETH waits to be mined: 0x/);
      const close = progress.getByRole('button', { name: 'Close' });
      await pressUntilDone(swapButton(), {
        ...{ taken: progress, done: waits, failed: progress.getByRole('alert') },
        again: async () => {
          if (await close.isVisible()) await close.click();
        },
      });
      await page.reload();
      await waits.waitFor();
      await prepared();
      const asks = page.getByRole('alert').filter({ hasText: 'still waits to be mined' });
      await swapButton().click();
      await asks.waitFor();
      await page.getByRole('button', { name: 'Send nothing' }).click();
      await asks.waitFor({ state: 'detached' });
      expect(await progress.count()).to.equal(0);
      await page.evaluate("standIn.does('obey')");
      await waiting.getByText('is on the chain').waitFor();
      await waiting.getByRole('button', { name: 'Close' }).click();
      await waiting.waitFor({ state: 'detached' });
    });

    it('swaps nothing while the platform is halted, and says so', async () => {
      await page.goto(url);
      await page.getByRole('button', { name: 'Halt' }).click();
      await page.getByRole('alert').filter({ hasText: 'Halted by the operator' }).waitFor();
      await page.getByRole('link', { name: 'Swap', exact: true }).click();
      await page.getByLabel('Act as').selectOption('taker1');
      await page.getByText('Trading is halted.').waitFor();
      expect(await swapButton().isDisabled()).to.equal(true);
      await page.getByRole('link', { name: 'What happens' }).click();
      await page.getByRole('button', { name: 'Resume' }).click();
      await page.getByRole('alert').filter({ hasText: 'Halted' }).waitFor({ state: 'detached' });
      // Prices are refused meanwhile, which the browser notes.
      expect(opened.problems().filter((problem) => !/status of 400.*\/api\/v1\/price/.test(problem))).to.deep.equal([]);
    });

    it('has no serious fault of accessibility, in both themes, on a phone and on a screen', async () => {
      await page.goto(`${url}/swap`);
      await page.getByLabel('Act as').selectOption('taker3');
      await page.getByRole('region', { name: 'Gasless orders' }).waitFor();
      await fact('Route').filter({ hasText: '%' }).waitFor();
      expect(await inAllLooks(opened, 'swap')).to.deep.equal({});
    });
  });
}
