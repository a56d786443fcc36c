/** The console in a real browser, on the sandbox: from an order to the legs of a fill, and what it shows when something is wrong. */
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { Interface, type InterfaceAbi } from 'ethers';
import type { Locator, Page } from 'playwright-core';
import { pressUntilDone, rememberAlerts, tamper } from '../../support/console/person.js';
import { until } from '../../support/stack.js';
import { hasBrowser, inAllLooks, withConsole, type ConsoleInBrowser } from '../../support/console/console-browser.js';

if (hasBrowser()) {
  describe('the console in a browser', function () {
    this.timeout(240_000);
    let opened: ConsoleInBrowser;
    let page: Page;
    let url: string;

    withConsole((now) => {
      opened = now;
      ({ page, url } = now);
    });

    it('shows the way of an order, and each fill adding up', async () => {
      await page.goto(url);
      await page.getByText('live', { exact: false }).first().waitFor();
      await page.getByRole('cell', { name: '✓ yes' }).first().waitFor();
      for (const step of ['Orders', 'Book', 'Cut', 'Curve', 'Swap', 'Legs', 'Ledger']) {
        const place = page
          .locator('.way li')
          .filter({ has: page.getByRole('heading', { name: new RegExp(`^${step}`) }) });
        await place.locator('.value').filter({ hasText: /\d/ }).waitFor();
      }
    });

    it('loads at most 200 kB of script at first, gzipped', async () => {
      const scripts = new Set<string>();
      page.on('request', (request) => {
        if (request.resourceType() === 'script') scripts.add(request.url());
      });
      await page.goto(url);
      await page.getByText('live', { exact: false }).first().waitFor();
      let bytes = 0;
      for (const script of scripts)
        bytes += gzipSync(Buffer.from(await (await fetch(script)).arrayBuffer()), { level: 9 }).length;
      console.log(`first load: ${scripts.size} scripts, ${bytes} bytes gzipped`);
      expect(scripts.size).to.be.greaterThan(0);
      expect(bytes).to.be.lessThan(200_001);
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
      const asIs = await tamper(page, '**/decomposition*', (body) =>
        body.replace(/"residual":"[^"]*"/, '"residual":"12345"'),
      );
      await page.goto(url);
      await page.getByText('✗', { exact: false }).first().waitFor();
      await asIs();
    });

    it('draws the book as it is, and the curve over it', async () => {
      await page.goto(`${url}/market/WETH-USDC`);
      await page.locator('.chart canvas').waitFor();
      const bids = page.getByRole('table', { name: 'Bids' });
      // The heading, and at least two prices.
      await bids.getByRole('row').nth(2).waitFor();
      const isDrawn = (): Promise<boolean> =>
        page.locator('.chart canvas').evaluate((canvas) => {
          const { width, height } = canvas as unknown as { width: number; height: number };
          // Not laid out yet.
          if (width === 0 || height === 0) return false;
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
      await until('the chart to be drawn', isDrawn);
    });

    it('draws candles, and goes from one interval to another', async () => {
      await page.goto(`${url}/market/WETH-USDC`);
      const candles = page.getByRole('region', { name: 'Candles' });
      await candles.locator('.candle rect').first().waitFor({ state: 'attached' });
      await candles.getByRole('button', { name: '1h' }).click();
      await candles.getByRole('img', { name: /^Candles in USDC: \d+ intervals/ }).waitFor();
    });

    it('opens a fill that is older than what is streamed', async () => {
      const asked = page.waitForRequest(/\/v0\/fills\?.*before=2(?:&|$)/);
      await page.routeWebSocket(/\/ws$/, (socket) => {
        const server = socket.connectToServer();
        server.onMessage((message) => {
          const frame = JSON.parse(String(message)) as { channel: string; data: { fills?: { fill_seq: number }[] } };
          if (frame.channel === 'fills')
            frame.data.fills = frame.data.fills?.filter(({ fill_seq }) => fill_seq > 1) ?? [];
          socket.send(JSON.stringify(frame));
        });
      });
      await page.goto(`${url}/fills/WETH-USDC/1`);
      await asked;
      await page.getByText('✓ computed in this browser').waitFor();
      await page.getByText(/^The taker (?:bought|sold)/).waitFor();
    });

    it('quotes as a maker who begins with nothing, from the front page, and says by which requests', async () => {
      await page.goto(url);
      const done = page.getByRole('region', { name: 'Try it' }).getByRole('listitem');
      const failed = page.getByRole('region', { name: 'Try it' }).getByRole('alert');
      await page.getByRole('button', { name: 'Place an order as maker3' }).click();
      const placed = done.filter({ hasText: 'POST /exchange' }).filter({ hasText: /order \d+ rests/ });
      await placed.or(failed).first().waitFor();
      expect(await failed.allInnerTexts()).to.deep.equal([]);
      await done.filter({ hasText: 'curvebook maker approve' }).waitFor();
      expect(await done.filter({ hasText: 'custodian.deposit' }).count()).to.equal(1);
      // The second time nothing but the order is needed.
      await page.getByRole('button', { name: 'Place an order as maker3' }).click();
      await done.filter({ hasText: 'custodian.deposit' }).waitFor({ state: 'detached' });
      await done.filter({ hasText: /order \d+ rests/ }).waitFor();
      expect(await done.filter({ hasText: 'custodian.deposit' }).count()).to.equal(0);
    });

    it('swaps at one click, says by which call, and leads to the legs of the fill', async () => {
      await page.goto(url);
      const tries = page.getByRole('region', { name: 'Try it' });
      const done = tries.getByRole('listitem').filter({ hasText: 'entrypoint.swap(WETH, USDC, 1, …), sent by taker2' });
      await pressUntilDone(page.getByRole('button', { name: 'Swap 1 WETH as taker2' }), {
        taken: tries.getByText('Swap 1 WETH as taker2 …').or(done),
        done,
        failed: tries.getByRole('alert'),
      });
      await done.getByRole('link', { name: /^taker2 got [\d,.]+ USDC, in fill \d+$/ }).click();
      await page.getByText('The taker sold 1 WETH').waitFor();
      await page.getByText('✓ computed in this browser').waitFor();
    });

    it('shows a halt with its reason, and its end', async () => {
      await page.goto(url);
      await page.getByRole('button', { name: 'Halt' }).click();
      await page.getByRole('alert').filter({ hasText: 'Halted by the operator' }).waitFor();
      await page.getByRole('button', { name: 'Resume' }).click();
      await page.getByRole('alert').filter({ hasText: 'Halted' }).waitFor({ state: 'detached' });
    });

    it('keeps what it knows while the stream is gone, says so, and goes on by itself', async () => {
      await page.goto(url);
      await page.getByRole('cell', { name: '✓ yes' }).first().waitFor();
      const alerted = await rememberAlerts(page);
      await page.getByRole('button', { name: 'Restart the server' }).click();
      await alerted('Offline');
      expect(await page.getByRole('cell', { name: '✓ yes' }).count()).to.be.greaterThan(0);
      await page.getByRole('alert').filter({ hasText: 'Offline' }).waitFor({ state: 'detached' });
      opened.problems();
    });

    it('says that the server was killed, keeps what it knows, and goes on once it is back', async () => {
      await page.goto(url);
      await page.getByRole('cell', { name: '✓ yes' }).first().waitFor();
      opened.killServer();
      await page.getByRole('alert').filter({ hasText: 'Offline' }).waitFor();
      expect(await page.getByRole('cell', { name: '✓ yes' }).count()).to.be.greaterThan(0);
      const [newest = ''] = await page.getByRole('region', { name: 'Fills' }).getByRole('link').allInnerTexts();
      await opened.startServer();
      await page.getByRole('alert').filter({ hasText: 'Offline' }).waitFor({ state: 'detached' });
      await until('a newer fill', async () => {
        const [now = ''] = await page.getByRole('region', { name: 'Fills' }).getByRole('link').allInnerTexts();
        return now !== newest;
      });
      opened.problems();
    });

    it('calls old what a slow stream has not renewed, and goes on with what was held up', async () => {
      const held: (() => void)[] = [];
      let isSlow = false;
      await page.routeWebSocket(/\/ws$/, (socket) => {
        const server = socket.connectToServer();
        server.onMessage((message) => {
          if (isSlow) held.push(() => socket.send(message));
          else socket.send(message);
        });
      });
      await page.goto(`${url}/swap`);
      const pill = (state: string): Locator => page.getByRole('status').filter({ hasText: state });
      await pill('● live').waitFor();
      isSlow = true;
      await pill('◐ stale').waitFor();
      await page.getByText('What is shown may be old').waitFor();
      isSlow = false;
      for (const send of held) send();
      await pill('● live').waitFor();
      await page.getByText('What is shown may be old').waitFor({ state: 'detached' });
    });

    it('shows an operator what runs, what is owed and held, and who may do what on the chain', async () => {
      await page.goto(`${url}/operator`);
      const tiles = page.getByRole('region', { name: 'Tiles' });
      for (const role of ['gateway', 'watcher', 'poster', 'settler', 'executor'])
        await tiles.getByRole('listitem').filter({ hasText: role }).filter({ hasText: 'runs' }).waitFor();
      const poster = tiles.getByRole('listitem').filter({ hasText: 'poster' });
      await poster.filter({ hasText: /gas for (?:more than )?[\d,]+ hours/ }).waitFor();
      await poster.filter({ hasText: /ETH in the last hour of 0\.5/ }).waitFor();
      const solvency = page.getByRole('region', { name: 'Solvency by token' });
      for (const token of ['WETH', 'USDC'])
        await solvency.getByRole('row').filter({ hasText: token }).filter({ hasText: /\d/ }).waitFor();
      // Several fills later the two are still of one block: neither is of when the page was opened.
      const sums = new Set<string>();
      await until('three other sums', async () => {
        expect(await solvency.getByText('✗').count()).to.equal(0);
        sums.add(await solvency.getByRole('row').filter({ hasText: 'WETH' }).innerText());
        return sums.size > 3;
      });
      expect(await solvency.getByText('✓ yes').count()).to.equal(2);
      const accounts = (await (await fetch(`${url}/sandbox/accounts`)).json()) as { role: string; address: string }[];
      const owner = accounts.find(({ role }) => role === 'owner')?.address.toLowerCase() ?? '';
      const contracts = page.getByRole('region', { name: 'Contracts' });
      await contracts.getByRole('row').filter({ hasText: 'custodian' }).filter({ hasText: owner }).waitFor();
      const key = accounts.find(({ role }) => role === 'poster')?.address.toLowerCase() ?? '';
      const signers = page.getByRole('region', { name: 'Signers' });
      await signers
        .getByRole('row')
        .filter({ hasText: key.slice(0, 6) })
        .getByText('✓')
        .first()
        .waitFor();
      const profit = page.getByRole('region', { name: 'Profit by market' });
      await profit.getByRole('row').filter({ hasText: 'WETH-USDC' }).filter({ hasText: /\d/ }).waitFor();
      await page.getByText('curvebook maker approve <address>', { exact: true }).waitFor();
    });

    it('lists who halted and resumed, for an operator', async () => {
      await page.goto(`${url}/operator`);
      const halts = page.getByRole('region', { name: 'Halts so far' });
      await halts.getByRole('row').filter({ hasText: 'operator' }).filter({ hasText: 'by a resume' }).first().waitFor();
    });

    it('shows signers what a proposal would change, and what is not to be signed', async () => {
      const { chain_id, contracts } = (await (await fetch(`${url}/v0/deployment`)).json()) as {
        chain_id: number;
        contracts: Record<string, { address: string; abi: InterfaceAbi }>;
      };
      const call = (name: string, method: string, args: readonly unknown[]) => {
        const { address, abi } = contracts[name] ?? { address: '', abi: [] };
        return { to: address, value: '0', data: new Interface(abi).encodeFunctionData(method, args) };
      };
      const { address: book } = contracts.curveBook ?? { address: '' };
      const transactions = [
        call('custodian', 'setWithdrawDelay', [77]),
        call('curveBook', 'setPoster', [book, true]),
        call('entrypoint', 'upgradeToAndCall', [book, '0x']),
        { to: `0x${'12'.repeat(20)}`, value: '0', data: '0x' },
      ];
      const file = JSON.stringify({ version: '1.0', chainId: `${chain_id}`, meta: { name: 'x' }, transactions });
      await page.locator('input[type=file]').setInputFiles({
        ...{ name: 'proposal.json', mimeType: 'application/json' },
        buffer: Buffer.from(file),
      });
      const calls = page.getByRole('region', { name: 'Calls of the proposal' }).getByRole('row');
      await calls.filter({ hasText: 'setWithdrawDelay(77)' }).filter({ hasText: '77 s' }).waitFor();
      await calls.filter({ hasText: 'setPoster' }).filter({ hasText: 'not allowed' }).waitFor();
      await calls
        .filter({ hasText: 'upgradeToAndCall' })
        .filter({ hasText: /hash 0x[0-9a-f]{64}; then calls nothing/ })
        .waitFor();
      await calls.filter({ hasText: 'no contract of the deployment' }).waitFor();
      await page.getByRole('alert').filter({ hasText: '1 of 4 calls are not to be signed' }).waitFor();
    });

    it('has no serious fault of accessibility, in both themes, on a phone and on a screen', async () => {
      await page.goto(url);
      const link = await page
        .getByRole('row')
        .filter({ hasText: '✓ yes' })
        .first()
        .getByRole('link')
        .getAttribute('href');
      for (const [name, path] of Object.entries({
        overview: '/',
        market: '/market/WETH-USDC',
        operator: '/operator',
        fill: link ?? '',
      })) {
        await page.goto(url + path);
        await page.getByRole('table').first().waitFor();
        expect(await inAllLooks(opened, name), name).to.deep.equal({});
      }
    });

    it('strikes the fills that a reorganisation took back, once the operator has let the ledger follow', async () => {
      const { rpc_url: rpcUrl } = (await (await fetch(`${url}/v0/deployment`)).json()) as { rpc_url: string };
      const chain = async (method: string, params: unknown[] = []): Promise<unknown> => {
        const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
        const reply = await fetch(rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
        const { result, error } = (await reply.json()) as { result?: unknown; error?: object };
        if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
        return result;
      };
      const hashOf = async (block: string): Promise<{ number: string; hash: string } | null> =>
        (await chain('eth_getBlockByNumber', [block, false])) as { number: string; hash: string } | null;
      const newestFill = async (): Promise<{ seq: number; block: number }> => {
        const [fill] = (await (await fetch(`${url}/v0/fills?pair=WETH-USDC&limit=1`)).json()) as {
          fill_seq: number;
          block_number: number;
        }[];
        return { seq: fill?.fill_seq ?? 0, block: fill?.block_number ?? 0 };
      };
      await page.goto(url);
      let taken = 0;
      // A chain that is busy with a block does not always go back.
      for (let tries = 1, isOther = false; !isOther; tries += 1) {
        expect(tries, 'tries to take blocks back').to.be.lessThan(5);
        const common = await chain('evm_snapshot');
        // Not before the snapshot: a fill in a later block is taken back with it, whatever the ledger knew by then.
        const lastKept = BigInt((await hashOf('latest'))!.number);
        await until('fills that will be taken back', async () => {
          const { seq, block } = await newestFill();
          taken = seq;
          return block > lastKept;
        });
        const head = await hashOf('latest');
        if ((await chain('evm_revert', [common])) !== true) continue;
        await until('blocks in their place', async () => (await hashOf(head?.number ?? '0x0')) !== null);
        isOther = (await hashOf(head?.number ?? '0x0'))?.hash !== head?.hash;
      }
      await page.getByRole('alert').filter({ hasText: 'canonical_mismatch' }).waitFor();
      await until('the ledger to follow', () =>
        opened.curvebook('reconcile', '--yes').then(
          () => true,
          () => false,
        ),
      );
      await page.getByRole('alert').filter({ hasText: 'Halted' }).waitFor({ state: 'detached' });
      const struck = page.getByRole('region', { name: 'Taken back' }).locator('s');
      await struck.first().waitFor();
      expect((await struck.allInnerTexts()).join('\n')).to.contain(`#${taken} `);
    });
  });
}
