/**
 * How many clicks the task of each page takes, counted in the browser: none may take more than it did. A field that is typed into is one, a list that is
 * chosen from two. A press that the market took away is pressed again, and is not counted twice.
 */
import { expect } from 'chai';
import type { Locator, Page } from 'playwright-core';
import { countClicks } from '../../support/console/clicks.js';
import { hasBrowser, withConsole } from '../../support/console/console-browser.js';
import { pressUntilDone } from '../../support/console/person.js';

if (hasBrowser()) {
  describe('clicks that tasks take', function () {
    this.timeout(240_000);
    let page: Page;
    let url: string;
    let clicks: () => Promise<number>;
    const table: string[] = ['| task | clicks |', '|---|---|'];

    withConsole(
      (now) => {
        ({ page, url } = now);
      },
      { CHECKPOINT_INTERVAL_SEC: '5' },
    );
    before(async () => {
      await page.goto(url);
      clicks = await countClicks(page);
    });
    after(() => console.log(table.join('\n')));

    /** Of those since the last call, `again` were of presses that the market took away. */
    async function takes(task: string, most: number, again = 0): Promise<void> {
      const count = (await clicks()) - again;
      table.push(`| ${task} | ${count} |`);
      expect(count, task).to.be.within(0, most);
    }

    async function press(button: Locator, parts: Omit<Parameters<typeof pressUntilDone>[1], 'again'>): Promise<number> {
      let again = 0;
      const close = page.getByRole('region', { name: 'Progress' }).getByRole('button', { name: 'Close' });
      await pressUntilDone(button, {
        ...parts,
        again: async () => {
          again += 1;
          if (!(await close.isVisible())) return;
          await close.click();
          again += 1;
        },
      });
      return again;
    }

    const ticket = (): Locator => page.getByRole('form', { name: 'Order' });
    const orders = (): Locator => page.getByRole('region', { name: 'Orders', exact: true }).getByRole('row');

    async function cancelAll(): Promise<void> {
      await page.getByRole('button', { name: /^Cancel all/ }).click();
      await page.getByText('No open order').waitFor();
    }

    async function open(path: string): Promise<void> {
      await page.goto(url + path);
      await clicks();
    }

    it('of the front page: a swap, and the picture of its legs', async () => {
      await open('/');
      const tries = page.getByRole('region', { name: 'Try it' });
      const done = tries.getByText('✓ computed in this browser');
      const name = 'Swap 1 WETH as taker2';
      const taken = tries.getByText(`${name} …`).or(done);
      const again = await press(page.getByRole('button', { name }), { taken, done, failed: tries.getByRole('alert') });
      await takes('front page: swap, and see the legs of the fill', 1, again);
    });

    it('of the maker page: from nothing to a quote, a change, a cancel, the proof and the way out', async () => {
      await open('/maker');
      await page.getByRole('button', { name: 'Act as maker3' }).click();
      await page.getByRole('button', { name: 'Approve, as the operator' }).click();
      const custody = page.getByRole('region', { name: 'Custody' });
      await custody.getByLabel('Amount').fill('8');
      await custody.getByRole('button', { name: 'Deposit' }).click();
      await page.locator('.checklist li.good').filter({ hasText: 'Credited' }).waitFor();
      expect(
        await ticket()
          .getByLabel(/^Price/)
          .inputValue(),
      ).to.match(/^[\d.]+$/);
      await ticket().getByLabel(/^Size/).fill('1');
      await ticket().getByRole('button', { name: 'Sign and place' }).click();
      await orders().nth(1).waitFor();
      await takes('maker: approved, deposited, quoted', 6);
      await ticket()
        .getByLabel(/^Price/)
        .fill('4990');
      await ticket().getByRole('button', { name: 'Sign and place' }).click();
      await orders().filter({ hasText: '4,990' }).waitFor();
      await clicks();
      await orders()
        .filter({ hasText: '4,990' })
        .getByRole('button', { name: /^Change order/ })
        .click();
      await ticket().getByLabel(/^Size/).fill('0.6');
      await ticket().getByRole('button', { name: 'Sign and change' }).click();
      await orders().filter({ hasText: '0.6' }).waitFor();
      await takes('maker: change an order', 3);
      await cancelAll();
      await takes('maker: cancel all orders', 1);
      await page.reload();
      await page.getByRole('region', { name: 'Proof' }).getByText('computed in this browser').waitFor();
      await takes('maker: see the proof of the balance', 0);
      await page.getByRole('button', { name: 'Withdraw all WETH that is free' }).click();
      await page.getByText('✓ settled').waitFor();
      // The button that executes it is one more, after the delay.
      await takes('maker: ask for all back', 1);
    });

    it('of the market page: a quote at a price of the book', async () => {
      await open('/market/WETH-USDC');
      await page.getByRole('table', { name: 'Asks' }).getByRole('link').last().click();
      await ticket().getByLabel(/^Size/).fill('0.1');
      await ticket().getByRole('button', { name: 'Sign and place' }).click();
      await ticket()
        .getByText(/order \d+ rests|inventory_exceeded/)
        .waitFor();
      await takes('market: quote at a price of the book', 3);
    });

    it('of the swap page: gasless', async () => {
      await page.getByLabel('Act as').selectOption('');
      await open('/swap');
      await page.getByRole('button', { name: 'Act as taker3' }).click();
      const progress = page.getByRole('region', { name: 'Progress' });
      const again = await press(page.getByRole('button', { name: 'Sign and swap 1 WETH' }), {
        taken: progress,
        done: page.getByRole('region', { name: 'Receipt' }).getByText('Gave 1 WETH'),
        failed: progress.getByRole('alert'),
      });
      await takes('swap: gasless, from nobody to the receipt with its makers', 2, again);
    });

    it('of the operator page: a command', async () => {
      await open('/operator');
      await page.getByRole('button', { name: 'Copy curvebook resume' }).click();
      await takes('operator: copy a command', 1);
    });
  });
}
