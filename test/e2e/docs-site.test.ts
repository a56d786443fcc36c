/** The docs in a real browser: every page and anchor is walked, the search finds, and requests are tried against the server. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { until } from '../support/stack.js';
import { hasBrowser, inAllLooks, withConsole, type ConsoleInBrowser } from '../support/console/console-browser.js';

/** What one page of the walk is: its anchors and where its links lead. */
interface Walked {
  ids: string[];
  links: string[];
}

/** Pages of codes and of sources: each was made as its siblings were, and differs from them in its text alone. */
const ALIKE = /^\/docs\/(?:errors|source)\//;
/** Of those, the ones that are drawn and judged as all others are: codes of each kind, a folder and a file. */
const DRAWN = /^\/docs\/(?:errors\/a|source\/(?:contracts\/types|examples\/taker\.ts)$)/i;

/** A page as its text says it; the server sends these whole. */
function parsePage(html: string): Walked {
  const valuesOf = (attribute: RegExp): string[] =>
    [...html.matchAll(attribute)].map(([, value = '']) =>
      value
        .replace(/&#39;/g, "'")
        .replace(/&quot;/g, '"')
        .replace(/&amp;/g, '&'),
    );
  return {
    ids: valuesOf(/<[a-z][^<>]*?\sid="([^"]*)"/g),
    links: valuesOf(/<a\s(?:[^<>]*?\s)?href="([^"]*)"/g),
  };
}

function expectOwnPolicy(policy: string | null | undefined, path: string): void {
  expect(policy, path)
    .to.include("default-src 'none'")
    .and.not.to.match(/unsafe/);
}

if (hasBrowser()) {
  describe('the docs in a browser', function () {
    this.timeout(600_000);
    let opened: ConsoleInBrowser;
    let page: Page;
    let url: string;
    const walked = new Map<string, Walked>();

    withConsole((now) => {
      opened = now;
      ({ page, url } = now);
    });

    async function fetchPage(path: string): Promise<Walked> {
      const reply = await fetch(url + path);
      expect(reply.status, path).to.equal(200);
      expectOwnPolicy(reply.headers.get('content-security-policy'), path);
      return parsePage(await reply.text());
    }

    /** The same in the browser, which judges it; faults go to `faulty`. */
    async function drawPage(path: string, faulty: Record<string, string[]>): Promise<Walked> {
      const reply = await page.goto(url + path);
      expect(reply?.status(), path).to.equal(200);
      expectOwnPolicy(reply?.headers()['content-security-policy'], path);
      if (path === '/docs/api') await page.locator('.opblock').first().waitFor();
      if (path === '/docs/exchange') await page.getByRole('heading', { name: 'POST /info' }).waitFor();
      const drawn = await page.evaluate<Walked>(`({
        ids: [...document.querySelectorAll('[id]')].map(({ id }) => id),
        links: [...document.querySelectorAll('a[href]')].map((link) => link.getAttribute('href')),
      })`);
      if (ALIKE.test(path)) expect(await fetchPage(path), `${path}, read from its text`).to.deep.equal(drawn);
      const faults = await opened.faults();
      if (faults.length > 0) faulty[path] = faults;
      return drawn;
    }

    it('leads from its front page to every page, each of which is there and has no serious fault', async () => {
      const faulty: Record<string, string[]> = {};
      const waiting = ['/docs'];
      for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
        if (walked.has(path)) continue;
        const found = await (ALIKE.test(path) && !DRAWN.test(path) ? fetchPage(path) : drawPage(path, faulty));
        walked.set(path, found);
        for (const link of found.links) {
          const to = link.split('#')[0] ?? '';
          if (to.startsWith('/docs') && !walked.has(to)) waiting.push(to);
        }
      }
      expect(faulty).to.deep.equal({});
      const some = [
        'makers',
        'settings',
        'errors/off_tick',
        'errors/CurveExpired',
        'source/contracts/types',
        'source/examples/taker.ts',
      ];
      for (const path of some) expect(walked.has(`/docs/${path}`), path).to.equal(true);
      expect(walked.size).to.be.greaterThan(150);
    });

    it('has an anchor for each link, and nothing that is linked to is missing', async () => {
      const missing: string[] = [];
      const elsewhere = new Set<string>();
      for (const [path, { ids, links }] of walked) {
        expect(new Set(ids).size, `${path}: ids are unique`).to.equal(ids.length);
        for (const link of links) {
          const [to = '', anchor = ''] = link.split('#');
          if (!/^(?:https?:|#|\/)/.test(link)) missing.push(`${path}: ${link}`);
          if (to.startsWith('/') && !walked.has(to)) elsewhere.add(to);
          if (to.startsWith('http') || anchor === '' || anchor.startsWith('/')) continue;
          if (!(walked.get(to === '' ? path : to)?.ids ?? []).includes(decodeURIComponent(anchor)))
            missing.push(`${path}: ${link}`);
        }
      }
      expect(missing).to.deep.equal([]);
      for (const path of elsewhere) expect((await fetch(url + path)).status, path).to.equal(200);
      const nowhere = await fetch(`${url}/docs/nowhere`);
      expect(nowhere.status).to.equal(404);
      expect(await nowhere.text()).to.include('No such page');
    });

    it('finds sections, settings, codes and endpoints, without asking anybody but this server', async () => {
      await page.goto(`${url}/docs`);
      const results = page.getByRole('region', { name: 'Search results' });
      for (const [words, link] of Object.entries({
        'withdraw delay': /^\/docs\//,
        INVENTORY_EXCEEDED: /^\/docs\/errors\/inventory_exceeded$/,
        CurveExpired: /^\/docs\/errors\/CurveExpired$/,
        'curve expired': /^\/docs\/errors\/CurveExpired$/,
        'candles pair': /^\/docs\/api#\/Markets\/getV0CandlesPair$/,
        CURVE_TTL_SEC: /^\/docs\//,
        reconecting: /^\/docs\/orders#reconnecting$/,
      })) {
        await page.getByRole('searchbox').fill(words);
        await until(`${words} to be found`, async () =>
          (
            await page.evaluate<string[]>(
              `[...document.querySelectorAll('#results a')].map((found) => found.getAttribute('href'))`,
            )
          ).some((href) => link.test(href)),
        );
      }
      await page.getByRole('searchbox').fill('qqqqqq');
      await results.getByText('Nothing is found').waitFor();
      await page.getByRole('searchbox').fill('off_tick');
      await results.getByRole('link').first().waitFor();
      await page.getByRole('searchbox').press('Enter');
      await page.getByRole('heading', { name: 'off_tick' }).waitFor();
      // Whatever the search leads to is there.
      const index = await page.locator('meta[name="search-index"]').getAttribute('content');
      const found = (await (await fetch(url + (index ?? ''))).json()) as { id: string }[];
      for (const { id } of found) {
        const [path = '', anchor = ''] = id.split('#');
        if (anchor !== '' && !anchor.startsWith('/')) expect(walked.get(path)?.ids, id).to.include(anchor);
        else expect(walked.has(path), id).to.equal(true);
      }
    });

    it('tries a request against this server', async () => {
      await page.goto(`${url}/docs/api#/Markets/getV0BookPair`);
      const block = page.locator('#operations-Markets-getV0BookPair');
      await block.getByPlaceholder('pair').fill('WETH-USDC');
      await block.getByRole('button', { name: 'Execute' }).click();
      await block.locator('.live-responses-table').getByText('"levels"').waitFor();
      expect(await block.locator('.request-url').innerText()).to.include(`${url}/v0/book/WETH-USDC`);
    });

    it('signs an action by an account of the sandbox and sends it, and asks a query', async () => {
      await page.goto(`${url}/docs/exchange`);
      const actions = page.locator('form').filter({ hasText: 'POST /exchange' });
      await actions.getByLabel('Signed by').selectOption('maker1');
      await actions.getByRole('button', { name: 'Sign and send' }).click();
      await actions.locator('.answer').filter({ hasText: '"resting"' }).waitFor();
      await actions.getByLabel('Example').selectOption('order that is refused: off_tick');
      await actions.getByRole('button', { name: 'Sign and send' }).click();
      await actions.locator('.answer').filter({ hasText: 'off_tick' }).waitFor();
      await actions.getByLabel('Action').fill('{"type": ');
      await actions.getByRole('button', { name: 'Sign and send' }).click();
      await actions.getByRole('status').getByText('JSON').waitFor();
      await actions.getByLabel('Signed by').selectOption('maker3');
      await actions.getByLabel('Example').selectOption('noop');
      await actions.getByRole('button', { name: 'Sign and send' }).click();
      await actions.locator('.answer').filter({ hasText: 'unknown_signer' }).waitFor();
      const queries = page.locator('form').filter({ hasText: 'POST /info' });
      await queries.getByRole('button', { name: 'Send', exact: true }).click();
      await queries.locator('.answer').filter({ hasText: '"levels"' }).waitFor();
    });

    it('has no serious fault of accessibility, in both themes, on a phone and on a screen', async () => {
      for (const [name, path] of Object.entries({
        'docs-front': '/docs',
        'docs-guide': '/docs/takers',
        'docs-error': '/docs/errors/inventory_exceeded',
        'docs-exchange': '/docs/exchange',
        'docs-api': '/docs/api',
      })) {
        await page.goto(url + path);
        if (path === '/docs/api') await page.locator('.opblock').first().waitFor();
        if (path === '/docs/exchange') await page.getByRole('heading', { name: 'POST /info' }).waitFor();
        expect(await inAllLooks(opened, name), name).to.deep.equal({});
      }
    });
  });
}
