/** The gasless examples as a reader would run them, against a whole platform. */
import { expect } from 'chai';
import { parseUnits } from 'ethers';
import { balanceOf, limitsAt } from '../support/audit.js';
import { startChild } from '../support/child.js';
import {
  accountOf,
  contractsOf,
  forOneDatabaseUrl,
  startStack,
  tokenOf,
  until,
  type Stack,
  type TestDatabase,
} from '../support/stack.js';
import { place, untilQuoted } from '../support/trading.js';

const TIMEOUT_MS = 60_000;
const TAKER = 'taker3';

forOneDatabaseUrl((_name, open) => {
  describe('examples of gasless swaps', function () {
    this.timeout(180_000);
    let database: TestDatabase;
    let stack: Stack;

    before(async () => {
      database = await open();
      stack = await startStack({ databaseUrl: database.url, pools: true });
      await stack.operate('maker', 'approve', accountOf(stack, 'maker1').address);
      await until('the deposits of the maker', async () => {
        const limits = await limitsAt(stack, accountOf(stack, 'maker1').address);
        return limits.ledger.ready && ['WETH', 'USDC'].every((symbol) => balanceOf(stack, limits, symbol) > 0n);
      });
      await place(stack, 'maker1', [
        { isBuy: false, price: '2500.1', size: '40' },
        { isBuy: true, price: '2499.9', size: '40' },
      ]);
      await untilQuoted(stack, 'WETH', 'USDC', parseUnits('1', 18));
    });

    after(async () => {
      await stack?.close();
      await database?.drop();
    });

    const balances = async (): Promise<bigint[]> => {
      const { balanceOf } = contractsOf(stack, TAKER);
      const { address } = accountOf(stack, TAKER);
      const ether = await stack.provider.getBalance(address);
      return [await balanceOf('WETH', address), await balanceOf('USDC', address), ether];
    };

    for (const [sell, buy, amount, sold] of [
      ['WETH', 'USDC', '0.5', 0],
      ['USDC', 'WETH', '1000', 1],
    ] as const) {
      it(`viem: sells ${amount} ${sell} for ${buy} with one signature, without ETH`, async () => {
        const before = await balances();
        expect(before[2]).to.equal(0n);
        const example = startChild('examples/gasless-viem.ts', [stack.manifestPath, TAKER, sell, buy, amount]);
        const line = await example.line((one) => one.startsWith('sold '), TIMEOUT_MS);
        expect(line).to.match(new RegExp(`^sold [\\d.]+ ${sell} for [\\d.]+ ${buy} in 0x[0-9a-f]{64}$`));
        expect(await example.ended).to.equal(0);
        const after = await balances();
        expect(before[sold]! - after[sold]!).to.equal(parseUnits(amount, sell === 'WETH' ? 18 : 6));
        expect(after[1 - sold]! > before[1 - sold]!).to.equal(true);
        expect(after[2]).to.equal(0n);
      });
    }

    it('a partner: gets the part of a swap that its owner signed, to the unit', async () => {
      const partner = '0x00000000000000000000000000000000009A47E4';
      const { balanceOf } = contractsOf(stack, TAKER);
      for (const [sell, buy, amount] of [
        ['WETH', 'USDC', '0.5'],
        ['USDC', 'WETH', '1000'],
      ] as const) {
        const before = await balances();
        expect(await balanceOf(buy, partner)).to.equal(0n);
        const args = [stack.manifestPath, TAKER, partner, '100', sell, buy, amount];
        const example = startChild('examples/partner-swap.ts', args);
        const line = await example.line((one) => one.startsWith('sold '), TIMEOUT_MS);
        const said = new RegExp(
          `^sold ([\\d.]+) ${sell} for ([\\d.]+) ${buy}, and ([\\d.]+) ${buy} for ${partner} in 0x[0-9a-f]{64}$`,
        ).exec(line);
        expect(said, line).not.to.equal(null);
        expect(await example.ended).to.equal(0);
        const after = await balances();
        const [decimals, bought] = buy === 'USDC' ? [6, 1] : [18, 0];
        const [got, part] = [parseUnits(said![2]!, decimals), parseUnits(said![3]!, decimals)];
        expect(after[bought]! - before[bought]!).to.equal(got);
        expect(await balanceOf(buy, partner)).to.equal(part);
        expect(part).to.equal((got + part) / 100n);
        expect(after[2]).to.equal(0n);
      }
    });

    it('ethers: trades until it is told to stop', async () => {
      const before = await balances();
      const example = startChild('examples/gasless-taker.ts', [stack.manifestPath, TAKER]);
      await example.line((one) => /gave [\d.]+ \w+, got [\d.]+ \w+ \(0x[0-9a-f]{64}\)/.test(one), TIMEOUT_MS);
      await example.end('SIGTERM');
      const after = await balances();
      expect(after[0]! > before[0]!).to.equal(after[1]! < before[1]!);
      expect(after[0]).not.to.equal(before[0]);
      expect(after[2]).to.equal(0n);
    });

    it('a receiver or partner is none of the contracts there, which would lose the tokens', async () => {
      const asked = {
        ...{ chainId: stack.manifest.chainId, from: accountOf(stack, TAKER).address, kind: 'sell' },
        ...{ sellToken: tokenOf(stack, 'WETH').address, buyToken: tokenOf(stack, 'USDC').address },
        ...{ sellAmountBeforeFee: parseUnits('0.1', 18).toString(), signingScheme: 'eip712' },
      };
      const answerTo = async (change: object): Promise<string> => {
        const response = await fetch(`${stack.manifest.serverUrl}/api/v1/quote`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ ...asked, ...change }),
        });
        return `${response.status} ${await response.text()}`;
      };
      expect(await answerTo({})).to.match(/^200 /);
      const contracts = Object.entries(stack.manifest.contracts);
      expect(contracts.map(([name]) => name)).to.include.members(['permit2', 'orderSettler', 'uniswapV3Router']);
      for (const [name, at] of contracts) {
        expect(await answerTo({ receiver: at }), name).to.match(/^400 .*receiver: 0x[0-9a-f]{40} can't receive tokens/);
        const asPartner = { partner: at, partnerBps: 1 };
        expect(await answerTo(asPartner), name).to.match(/^400 .*partner: 0x[0-9a-f]{40} can't receive tokens/);
      }
    });
  });
});
