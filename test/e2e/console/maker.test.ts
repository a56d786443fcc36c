/** The maker page in a real browser: from the approval to a quote, a fill and the way out again, all by the page. */
import { expect } from 'chai';
import { Contract, JsonRpcProvider, Wallet, type ContractTransactionResponse } from 'ethers';
import type { Locator, Page } from 'playwright-core';
import { hasBrowser, inAllLooks, withConsole, type ConsoleInBrowser } from '../../support/console/console-browser.js';
import { seen, tamper } from '../../support/console/person.js';
import { until } from '../../support/stack.js';
import { walletStandIn } from '../../support/console/wallet-stand-in.js';

if (hasBrowser()) {
  describe('the maker page in a browser', function () {
    this.timeout(300_000);
    let opened: ConsoleInBrowser;
    let page: Page;
    let url: string;

    withConsole(
      (now) => {
        opened = now;
        ({ page, url } = now);
      },
      { CHECKPOINT_INTERVAL_SEC: '5' },
    );

    const step = (name: string): Locator =>
      page.locator('.checklist li').filter({ has: page.locator('strong', { hasText: new RegExp(`^${name}`) }) });
    const orders = (): Locator => page.getByRole('region', { name: 'Orders', exact: true }).getByRole('row');

    /** A price between the best ones, and one far away from them, on the grid. */
    async function prices(): Promise<{ middle: string; far: string }> {
      let best: [ask?: number, bid?: number] = [];
      await until('prices on both sides', async () => {
        const { levels } = (await (await fetch(`${url}/v0/book/WETH-USDC`)).json()) as {
          levels: { asks: [number, number][]; bids: [number, number][] };
        };
        best = [levels.asks[0]?.[0], levels.bids[0]?.[0]];
        return !best.includes(undefined);
      });
      const sum = (best[0] ?? 0) + (best[1] ?? 0);
      // A tick is a cent here.
      const priced = (ticks: number): string => `${Math.floor(ticks / 100)}.${`${ticks % 100}`.padStart(2, '0')}`;
      return { middle: priced(Math.round(sum / 2)), far: priced(sum) };
    }

    async function quote(side: 'Buy' | 'Sell', price: string, size: string): Promise<void> {
      const ticket = page.getByRole('form', { name: 'Order' });
      await ticket.getByRole('button', { name: `${side} WETH` }).click();
      await ticket.getByLabel(/^Price/).fill(price);
      await ticket.getByLabel(/^Size/).fill(size);
      await ticket.getByRole('button', { name: 'Sign and place' }).click();
    }

    /** Also where the last order is filled between the look and the press. */
    async function cancelAll(): Promise<void> {
      const none = page.getByText('No open order');
      const button = page.getByRole('button', { name: /^Cancel all/ });
      for (let tries = 1; tries <= 5 && !(await none.isVisible()); tries += 1) {
        await button.click({ timeout: 5_000 }).catch(() => undefined);
        if (await seen(none, 10_000)) return;
      }
      await none.waitFor();
    }

    async function move(button: string, amount: string): Promise<void> {
      const custody = page.getByRole('region', { name: 'Custody' });
      await custody.getByLabel('Token').selectOption({ label: 'WETH' });
      await custody.getByLabel('Amount').fill(amount);
      await custody.getByRole('button', { name: button }).click();
      await custody.getByText('is on the chain').waitFor();
    }

    async function account(role: string, key: 'address' | 'private_key' = 'address'): Promise<string> {
      const accounts = (await (await fetch(`${url}/sandbox/accounts`)).json()) as Record<string, string>[];
      return accounts.find((one) => one.role === role)?.[key] ?? '';
    }

    it('ticks its checklist: approved, allowed, deposited, credited', async () => {
      await page.goto(`${url}/maker`);
      await page.getByText('Nobody acts yet').waitFor();
      await page.getByLabel('Act as').selectOption('maker3');
      await step('Approved').filter({ hasText: 'to do' }).waitFor();
      await page.getByRole('button', { name: 'Approve, as the operator' }).click();
      await step('Approved').filter({ hasText: 'done' }).waitFor();
      await move('Deposit', '8');
      for (const name of ['Allowance', 'Deposited', 'Credited'])
        await step(name).filter({ hasText: ': done' }).waitFor();
    });

    it('explains what is refused, before and after it is sent', async () => {
      await quote('Sell', '2500.001', '1');
      await page.getByRole('alert').filter({ hasText: 'off_tick' }).waitFor();
      const { far } = await prices();
      await quote('Sell', far, '1000');
      await page
        .getByRole('alert')
        .filter({ hasText: 'inventory_exceeded' })
        .filter({ hasText: 'deposit more' })
        .waitFor();
    });

    it('places, changes and cancels an order, one and all', async () => {
      const { far } = await prices();
      await quote('Sell', far, '0.5');
      await orders().nth(1).waitFor();
      await page.getByRole('button', { name: /^Change order/ }).click();
      await page.getByLabel(/^Size/).fill('0.6');
      await page.getByRole('button', { name: 'Sign and change' }).click();
      await orders().filter({ hasText: '0.6' }).waitFor();
      await page.getByRole('button', { name: /^Cancel order/ }).click();
      await page.getByText('No open order').waitFor();
      await quote('Sell', far, '0.1');
      await orders().nth(1).waitFor();
      await quote('Sell', far, '0.2');
      await orders().nth(2).waitFor();
      await page.getByRole('button', { name: 'Cancel all 2' }).click();
      await page.getByText('No open order').waitFor();
    });

    it('counts down to a scheduled cancel, and clears it', async () => {
      await page.getByRole('button', { name: 'In 5 min' }).click();
      await page.getByText(/All orders close in 2\d\d s\./).waitFor();
      await step('Scheduled cancel').filter({ hasText: ': done' }).waitFor();
      await page.getByRole('button', { name: 'Clear' }).click();
      await page.getByText('Orders stay until').waitFor();
    });

    it('is filled at its own price, and shows the fill with its legs and what it made', async () => {
      // The bots swap on both sides: the best prices are theirs within seconds.
      const fills = page.getByRole('region', { name: 'Fills of my orders' });
      const sold = fills.getByRole('row').filter({ hasText: 'sold' }).first();
      const asked: string[] = [];
      // The market may have gone away from the price: then one quotes again.
      for (let isFilled = false; !isFilled && asked.length < 5; isFilled = await seen(sold, 20_000)) {
        if (asked.length > 0) await cancelAll();
        const { middle } = await prices();
        asked.push(middle.replace(/\.?0+$/, ''));
        await quote('Sell', middle, '2');
      }
      const row = await sold.innerText();
      expect(asked.filter((price) => row.includes(price.slice(2)))).not.to.deep.equal([], `${asked.join()} in ${row}`);
      await page
        .getByRole('region', { name: 'Profit by market' })
        .getByRole('row')
        .filter({ hasText: 'WETH-USDC' })
        .waitFor();
      const link = await fills.getByRole('link').nth(2).getAttribute('href');
      const csv = await fetch(`${url}${await fills.getByRole('link', { name: 'CSV' }).getAttribute('href')}`);
      const text = await csv.text();
      expect(asked.filter((price) => text.includes(price))).not.to.deep.equal([], `${asked.join()} in ${text}`);
      expect(link).to.match(/^\/fills\/WETH-USDC\/\d+$/);
    });

    it('proves the balance against the newest checkpoint, here', async () => {
      for (let balances = 0; balances === 0;) {
        const answer = await fetch(`${url}/v0/checkpoints/latest/proof?maker=${await account('maker3')}`);
        balances = ((await answer.json()) as { balances?: unknown[] }).balances?.length ?? 0;
        await page.waitForTimeout(500);
      }
      await page.getByRole('button', { name: 'Check against the newest checkpoint' }).click();
      const proof = page.getByRole('region', { name: 'Proof' });
      await proof.getByText('computed in this browser').waitFor();
      const asIs = await tamper(page, '**/checkpoints/latest/proof*', (body) =>
        body.replace(/("balance":"\d+)/g, '$17'),
      );
      await page.getByRole('button', { name: 'Check against the newest checkpoint' }).click();
      await proof.getByRole('alert').filter({ hasText: 'BAD_PROOF' }).waitFor();
      await asIs();
    });

    it('withdraws: requested, settled, counted down, executed', async () => {
      await cancelAll();
      const { rpc_url, contracts } = (await (await fetch(`${url}/v0/deployment`)).json()) as {
        rpc_url: string;
        contracts: { custodian: { address: string } };
      };
      // The owner shortens the ten minutes of delay, or the test would wait for them.
      const provider = new JsonRpcProvider(rpc_url);
      const owner = new Wallet(await account('owner', 'private_key'), provider);
      const abi = ['function setWithdrawDelay(uint256 delaySec)'];
      const custodian = new Contract(contracts.custodian.address, abi, owner);
      await ((await custodian.getFunction('setWithdrawDelay')(3)) as ContractTransactionResponse).wait();
      provider.destroy();
      await move('Request a withdrawal', '1.5');
      const under = page.getByRole('list', { name: 'Withdrawals under way' });
      await under.getByText('✓ settled: 1.5 WETH').waitFor({ timeout: 120_000 });
      await under.getByRole('button', { name: 'Execute' }).click({ timeout: 120_000 });
      await page
        .getByText('No withdrawal is under way')
        .waitFor({ timeout: 120_000 })
        .catch(async (error: unknown) => {
          const shown = await page.getByRole('region', { name: 'Custody', exact: true }).innerText();
          throw new Error(`not executed; the page shows:\n${shown}`, { cause: error });
        });
      await page.getByText(/Deposits and withdrawals so far/).click();
      await page
        .getByRole('region', { name: 'Custody events' })
        .getByRole('row')
        .filter({ hasText: 'executed' })
        .waitFor();
    });

    it('lets nobody quote while halted, and everybody cancel', async () => {
      const { far } = await prices();
      await quote('Sell', far, '0.3');
      await orders().filter({ hasText: '0.3' }).waitFor();
      const control = (name: string): Promise<Response> =>
        fetch(`${url}/sandbox/${name}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: '{}',
        });
      await control('halt');
      await page.getByText('Trading is halted. Cancels and withdrawals go on.').waitFor();
      expect(await page.getByRole('button', { name: 'Sign and place' }).isDisabled()).to.equal(true);
      await page
        .getByRole('button', { name: /^Cancel order/ })
        .first()
        .click();
      await orders().filter({ hasText: '0.3' }).waitFor({ state: 'detached' });
      await control('resume');
      await page.getByRole('alert').filter({ hasText: 'Halted' }).waitFor({ state: 'detached' });
    });

    it('has no serious fault of accessibility, in both themes, on a phone and on a screen', async () => {
      await page.getByRole('region', { name: 'Fills of my orders' }).waitFor();
      expect(await inAllLooks(opened, 'maker')).to.deep.equal({});
    });

    it('lets a browser wallet quote by an agent of the tab', async () => {
      const { rpc_url: rpcUrl } = (await (await fetch(`${url}/v0/deployment`)).json()) as { rpc_url: string };
      const address = await account('maker3');
      // The transpiler names functions by a helper that pages don't have.
      await page.addInitScript('globalThis.__name = (named) => named');
      await page.addInitScript(walletStandIn, { addresses: [address], rpcUrl });
      await page.getByLabel('Act as').selectOption('nobody');
      await page.reload();
      await page.getByRole('button', { name: 'Connect Stand-in' }).click();
      await page.getByText('Make an agent first').waitFor();
      await page.getByRole('button', { name: 'Make an agent for this tab' }).click();
      await step('Agent').filter({ hasText: ': done' }).waitFor();
      const { far } = await prices();
      await quote('Sell', far, '0.4');
      await orders().filter({ hasText: '0.4' }).waitFor();
    });

    it('lets another tab make an agent of its own, by which it cancels, and loses no key with an answer', async () => {
      // What a tab holds is gone with it.
      await page.evaluate('sessionStorage.clear()');
      await page.reload();
      await page.getByRole('button', { name: 'Connect Stand-in' }).click();
      await orders().filter({ hasText: '0.4' }).waitFor();
      await step('Agent').filter({ hasText: ': to do' }).filter({ hasText: 'a new one replaces it' }).waitFor();
      const make = page.getByRole('button', { name: 'Make an agent for this tab' });
      await page.evaluate("standIn.does('refuse')");
      await make.click();
      await page.getByRole('alert').filter({ hasText: 'refused in the wallet: nothing was signed or sent' }).waitFor();
      await step('Agent').filter({ hasText: ': to do' }).waitFor();
      expect(await page.evaluate("Object.keys(sessionStorage).filter((name) => name.includes('agent'))")).to.deep.equal(
        [],
      );
      await page.evaluate("standIn.does('obey')");
      await page.route(
        '**/exchange',
        async (route) => {
          await route.fetch();
          await route.abort('connectionrefused');
        },
        { times: 1 },
      );
      await make.click();
      await page.getByRole('alert').filter({ hasText: 'NO_ANSWER' }).waitFor();
      await page.reload();
      await step('Agent').filter({ hasText: ': done' }).waitFor();
      expect(await page.getByText('Make an agent first').count()).to.equal(0);
      await page
        .getByRole('button', { name: /^Cancel order/ })
        .first()
        .click();
      await page.getByText('No open order').waitFor();
    });
  });
}
