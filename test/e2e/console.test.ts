/** The console in a real browser, on the sandbox: from an order to the legs of a fill, and what it shows when something is wrong. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { chromium, type Browser, type Page } from 'playwright-core';
import { openReader, type Reader, type Running } from '../support/reader.js';

const BROWSERS = [process.env.CHROMIUM ?? '', '/usr/bin/chromium'];
const executablePath = BROWSERS.find((path) => path !== '' && existsSync(path));
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
/** Pictures of every page, for people to look at. */
const PICTURES = fileURLToPath(new URL('../../cache/console/', import.meta.url));
/** A bound, not an expectation: machines that run tests are busy. */
const SOON_MS = 60_000;

if (executablePath === undefined) {
  console.log('skipped: the console in a browser, since there is no Chromium; Debian has it as the package chromium');
} else {
  describe('the console in a browser', function () {
    this.timeout(240_000);
    let reader: Reader;
    let sandbox: Running;
    let browser: Browser;
    let page: Page;
    let url: string;
    const problems: string[] = [];

    before(async () => {
      reader = openReader({ PORT: '0', RPC_PORT: '0', BLOCK_TIME_MS: '500' });
      sandbox = reader.start(`SANDBOX_DIR=${reader.folder}/.curvebook npm start`);
      const said = await sandbox.line((line) => line.includes('server at http'));
      url = /server at (http:\S+);/.exec(said)?.[1] ?? '';
      mkdirSync(PICTURES, { recursive: true });
      browser = await chromium.launch({
        executablePath,
        args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
      });
      page = await browser.newPage();
      page.setDefaultTimeout(SOON_MS);
      page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
      page.on('console', (said) => {
        if (said.type() === 'error' && !said.text().includes('ERR_CONNECTION_REFUSED')) problems.push(said.text());
      });
      page.on('request', (request) => {
        const { protocol, host } = new URL(request.url());
        if (protocol !== 'data:' && host !== new URL(url).host) problems.push(`asked ${request.url()}`);
      });
    });
    after(async () => {
      await browser?.close();
      await reader?.close();
    });
    afterEach(() => expect(problems.splice(0)).to.deep.equal([]));

    it('shows the way of an order, and each fill adding up', async () => {
      await page.goto(url);
      await page.getByText('live', { exact: false }).first().waitFor();
      await page.getByRole('cell', { name: '✓ yes' }).first().waitFor();
      for (const step of ['Orders', 'Book', 'Curve', 'Swap', 'Legs', 'Ledger']) {
        const place = page
          .locator('.way li')
          .filter({ has: page.getByRole('heading', { name: new RegExp(`^${step}`) }) });
        await place.locator('.value').filter({ hasText: /\d/ }).waitFor();
      }
    });

    it('opens a fill as a picture of its legs, the sum of which it computes itself', async () => {
      await page.goto(url);
      await page.getByRole('row').filter({ hasText: '✓ yes' }).first().getByRole('link').click();
      await page.getByText('✓ computed in this browser').waitFor();
      const legs = await page.locator('svg.picture g > rect[stroke]').count();
      expect(legs).to.be.greaterThan(0);
      expect(await page.getByRole('region', { name: 'Legs' }).getByRole('row').count()).to.equal(legs + 2);
      await page.locator('svg.picture .piece').first().waitFor({ state: 'attached' });
    });

    it('says so when the numbers of a fill do not add up', async () => {
      await page.route('**/decomposition*', async (route) => {
        const answer = await route.fetch();
        const body = (await answer.json()) as { residual: string };
        await route.fulfill({ response: answer, json: { ...body, residual: '12345' } });
      });
      await page.goto(url);
      await page.getByText('✗', { exact: false }).first().waitFor();
      await page.unrouteAll({ behavior: 'ignoreErrors' });
    });

    it('draws the book as it is, and the curve over it', async () => {
      await page.goto(`${url}/market/WETH-USDC`);
      await page.locator('.chart canvas').waitFor();
      const bids = page.getByRole('table', { name: 'Bids' });
      await bids.getByRole('row').nth(1).waitFor();
      expect(await bids.getByRole('row').count()).to.be.greaterThan(2);
      const isDrawn = await page.locator('.chart canvas').evaluate((canvas) => {
        const { width, height } = canvas as unknown as { width: number; height: number };
        const context = (
          canvas as unknown as {
            getContext(kind: '2d'): { getImageData: (...box: number[]) => { data: Uint8ClampedArray } };
          }
        ).getContext('2d');
        const colours = new Set<string>();
        const { data } = context.getImageData(0, 0, width, height);
        for (let i = 0; i < data.length; i += 4) colours.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
        return colours.size > 8;
      });
      expect(isDrawn).to.equal(true);
    });

    it('shows a halt with its reason, and its end', async () => {
      await page.goto(url);
      await page.getByRole('button', { name: 'Halt' }).click();
      await page.getByRole('alert').filter({ hasText: 'Halted by the operator' }).waitFor();
      await page.getByRole('button', { name: 'Resume' }).click();
      await page.getByRole('alert').waitFor({ state: 'detached' });
    });

    it('keeps what it knows while the stream is gone, says so, and goes on by itself', async () => {
      await page.goto(url);
      await page.getByRole('cell', { name: '✓ yes' }).first().waitFor();
      await page.getByRole('button', { name: 'Restart the server' }).click();
      await page.getByRole('alert').filter({ hasText: 'Offline' }).waitFor();
      expect(await page.getByRole('cell', { name: '✓ yes' }).count()).to.be.greaterThan(0);
      await page.getByRole('alert').filter({ hasText: 'Offline' }).waitFor({ state: 'detached' });
      problems.length = 0;
    });

    for (const theme of ['light', 'dark'] as const) {
      for (const width of [390, 1_440]) {
        it(`has no serious fault of accessibility, ${theme}, ${width} pixels wide`, async () => {
          await page.setViewportSize({ width, height: 900 });
          await page.emulateMedia({ colorScheme: theme });
          await page.goto(url);
          const link = await page
            .getByRole('row')
            .filter({ hasText: '✓ yes' })
            .first()
            .getByRole('link')
            .getAttribute('href');
          for (const [name, path] of Object.entries({ overview: '/', market: '/market/WETH-USDC', fill: link ?? '' })) {
            await page.goto(url + path);
            await page.getByRole('table').first().waitFor();
            await page.screenshot({ path: join(PICTURES, `${name}-${theme}-${width}.png`), fullPage: true });
            const wide = await page.evaluate(
              'document.documentElement.scrollWidth - document.documentElement.clientWidth',
            );
            expect(wide, `${name} is wider than the window`).to.equal(0);
            // Put in by the browser's own door, which the policy of the page does not bar.
            await page.evaluate(readFileSync(AXE, 'utf8'));
            const { violations } = await page.evaluate<{ violations: { id: string; impact: string }[] }>('axe.run()');
            const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
            expect(
              serious.map(({ id }) => id),
              name,
            ).to.deep.equal([]);
          }
        });
      }
    }
  });
}
