/** Attacks on a running deployment, over HTTP and on its contracts: what each brings in, and what it costs whom. */
import { expect } from 'chai';
import { Contract, MaxUint256, Wallet, type TransactionReceipt } from 'ethers';
import { balanceOf, decompositionOf, fillsNow, limitsAt, micros, wei } from '../support/audit.js';
import { fcOptions } from '../support/fc.js';
import {
  accountOf,
  contractsOf,
  exchangeClient,
  forOneDatabaseUrl,
  startStack,
  tokenOf,
  until,
} from '../support/stack.js';
import type { Stack, TestDatabase } from '../support/stack.js';
import { FIRST_ASSET, place, untilQuoted, type Quote } from '../support/trading.js';
import { signQuote, type OrderAnswer, type QuoteAnswer } from '../support/swap-stack.js';

const ERC20 = [
  'function transfer(address, uint256) returns (bool)',
  'function approve(address, uint256) returns (bool)',
];
const COLLUDERS = ['maker1', 'taker1', 'taker2'];
const LATE_WEI = wei('20');
const REST_WEI = wei('5');
/** Curves may follow as badly as they can be told to, so that the rule for late fills stands alone. */
const SETTINGS = { SWAP_ORDERS_PER_MINUTE: '1000', MAX_KNOTS: '15', MAX_CURVE_ERROR_MILLI_BPS: '1000000' };
/** Whoever attacks pays what it takes to be first. */
const FIRST = { maxPriorityFeePerGas: 50_000_000_000n, maxFeePerGas: 200_000_000_000n, gasLimit: 600_000n };
/** A late fill, a few requests: `npm run test:deep` plays each for longer. */
const IS_LONG = fcOptions(1).numRuns > 1;
const CYCLES = IS_LONG ? 4 : 1;
const MAX_CYCLES = IS_LONG ? 12 : 6;
const DUST_BLOCKS = IS_LONG ? 16 : 5;

/** Forty orders of geometric sizes over 30 % in price, which fifteen segments follow badly. */
const LADDER: Quote[] = Array.from({ length: 40 }, (_, i) => ({
  isBuy: false,
  price: String(2_500.01 + 0.5 + i * 18.75),
  size: (0.015 * 1.18 ** i).toFixed(4),
}));

forOneDatabaseUrl((name, open) => {
  describe(`Attacks on a running sandbox, on ${name}`, function () {
    this.timeout(240_000);
    let database: TestDatabase;
    let stack: Stack;
    const said: string[] = [];

    before(async () => {
      database = await open();
      stack = await startStack({
        databaseUrl: database.url,
        blockTimeMs: 1_000,
        env: SETTINGS,
      });
      for (const role of ['maker1', 'maker2']) await stack.operate('maker', 'approve', addressOf(role));
      await until('the deposits', async () => (await rowOf('maker2', 'USDC')) === micros('300000'));
      const { custodian } = stack.manifest.contracts;
      await (await tokenAs('WETH', 'maker1').getFunction('approve')(custodian, MaxUint256)).wait();
      await stack.provider.send('hardhat_setBalance', [addressOf('taker3'), '0xde0b6b3a7640000']);
      await until('the first maker', async () => (await rowOf('maker1', 'WETH')) === wei('100'));
    });

    after(async () => {
      await stack?.close();
      await database?.drop();
      for (const line of said) console.log(`      ${line}`);
    });

    const addressOf = (role: string): `0x${string}` => accountOf(stack, role).address;
    const signerOf = (role: string): Wallet => new Wallet(accountOf(stack, role).privateKey, stack.provider);
    const tokenAs = (symbol: string, role: string): Contract =>
      new Contract(tokenOf(stack, symbol).address, ERC20, signerOf(role));
    const walletOf = (role: string, symbol: string): Promise<bigint> =>
      contractsOf(stack, role).balanceOf(symbol, addressOf(role));
    async function rowOf(role: string, symbol: string): Promise<bigint> {
      const limits = await limitsAt(stack, addressOf(role));
      return limits.ledger.balances.some(({ token }) => token === symbol) ? balanceOf(stack, limits, symbol) : 0n;
    }
    async function heldBy(roles: readonly string[], symbol: string): Promise<bigint> {
      let units = 0n;
      for (const role of roles) units += (await walletOf(role, symbol)) + (await rowOf(role, symbol));
      return units;
    }
    /** Until everything that was traded is attributed. */
    async function untilBooked(hash: string): Promise<string> {
      let fillSeq = '';
      await until(`the fill of ${hash}`, async () => {
        const row = (await fillsNow(stack)).find(({ tx_hash }) => tx_hash === hash);
        fillSeq = String(row?.fill_seq ?? '');
        return row !== undefined && (await decompositionOf(stack, fillSeq)).status === 'final';
      });
      return fillSeq;
    }
    const nextBlock = async (): Promise<void> => {
      const at = await stack.provider.getBlockNumber();
      await until('a block', async () => (await stack.provider.getBlockNumber()) > at);
    };

    /** A swap that is sent at once and looked at later: null when it reverted. */
    async function buy(role: string, baseWei: bigint): Promise<TransactionReceipt | null> {
      const tokens = [tokenOf(stack, 'USDC').address, tokenOf(stack, 'WETH').address] as const;
      const sent = await contractsOf(stack, role).entrypoint.swapExactOutput(
        ...tokens,
        baseWei,
        10n ** 12n,
        addressOf(role),
        MaxUint256,
        FIRST,
      );
      return stack.provider.waitForTransaction(sent.hash).then(
        (receipt) => (receipt?.status === 1 ? receipt : null),
        () => null,
      );
    }

    it('the drain by a maker and takers who collude brings in nothing', async () => {
      const { exchange } = exchangeClient(stack, 'maker1');
      const cancelAll = async (oids: readonly number[]): Promise<void> =>
        void (await exchange.cancel({ cancels: oids.map((o) => ({ a: FIRST_ASSET, o })) }).catch(() => undefined));
      const start = { USDC: await heldBy(COLLUDERS, 'USDC'), WETH: await heldBy(COLLUDERS, 'WETH') };
      const operatorStart = await rowOf('owner', 'USDC');
      let raised = 0;
      let cycles = 0;
      while (raised < CYCLES && cycles++ < MAX_CYCLES) {
        const [oid] = await place(stack, 'maker1', [{ isBuy: false, price: '2500.01', size: '20' }]);
        await untilQuoted(stack, 'USDC', 'WETH', micros('49000'));
        const oids = await place(stack, 'maker1', LADDER);
        await nextBlock();
        // The order goes, and at once it is taken whole from the curve that still has it, before the one that is cut without it.
        const [late] = await Promise.all([buy('taker1', LATE_WEI), cancelAll([oid!])]);
        // In the next block, before the curve that knows of it.
        const rest = await buy('taker2', REST_WEI);
        if (late !== null) await untilBooked(late.hash);
        if (rest !== null) {
          const fill = await decompositionOf(stack, await untilBooked(rest.hash));
          if (late !== null && wei(fill.consumed_before ?? '0') >= LATE_WEI) raised += 1;
        }
        await cancelAll(oids);
        // Takers hand over what they bought, so that the maker has it for the next cycle.
        const weth = await walletOf('taker1', 'WETH');
        if (weth > wei('50')) {
          await (await tokenAs('WETH', 'taker1').getFunction('transfer')(addressOf('maker1'), weth - wei('10'))).wait();
          await (
            await contractsOf(stack, 'maker1').custodian.deposit(tokenOf(stack, 'WETH').address, weth - wei('10'))
          ).wait();
        }
        await nextBlock();
      }
      expect(raised, `late fills under a new curve in ${cycles} cycles`).to.be.greaterThan(0);
      const gain = {
        USDC: (await heldBy(COLLUDERS, 'USDC')) - start.USDC,
        WETH: (await heldBy(COLLUDERS, 'WETH')) - start.WETH,
      };
      const operator = (await rowOf('owner', 'USDC')) - operatorStart;
      said.push(
        `drain: ${raised} of ${cycles} cycles with a late fill; colluders ${gain.USDC} USDC units, ${gain.WETH} wei; operator ${operator}`,
      );
      expect(gain.WETH).to.equal(0n);
      expect(gain.USDC <= 0n, `${gain.USDC}`).to.equal(true);
      expect(operator >= 0n, `${operator}`).to.equal(true);
    });

    it('one lot, or what is left of an order, keeps nobody away', async () => {
      const { exchange } = exchangeClient(stack, 'maker1');
      const lot = { a: FIRST_ASSET, b: true, p: '2525', s: '0.0001', r: false, t: { limit: { tif: 'Gtc' as const } } };
      const refusal = await exchange.order({ orders: [lot], grouping: 'na' }).catch((error: unknown) => String(error));
      expect(refusal).to.match(/Order must have minimum value of 10 USDC/);
      const oids = await place(stack, 'maker2', [
        { isBuy: false, price: '2505', size: '1' },
        { isBuy: true, price: '2495', size: '1' },
      ]);
      const { exchange: other } = exchangeClient(stack, 'maker2');
      await other.cancel({ cancels: oids.map((o) => ({ a: FIRST_ASSET, o })) });
      said.push('one lot: refused, the other maker quotes');
    });

    it('forty signed orders over one balance make the executor pay for none that reverts', async () => {
      await place(stack, 'maker2', [{ isBuy: false, price: '2510', size: '20' }]);
      await untilQuoted(stack, 'USDC', 'WETH', micros('20000'));
      const owner = signerOf('taker3');
      const usdc = tokenAs('USDC', 'taker3');
      const first = (await stack.provider.getBlockNumber()) + 1;
      const wallet = await walletOf('taker3', 'USDC');
      if (wallet > micros('500'))
        await (await usdc.getFunction('transfer')(addressOf('taker2'), wallet - micros('500'))).wait();
      const answers: number[] = [];
      for (let i = 0; i < 40; i++) {
        const quote = await api<QuoteAnswer>('/api/v1/quote', {
          chainId: stack.manifest.chainId,
          from: owner.address,
          sellToken: tokenOf(stack, 'USDC').address,
          buyToken: tokenOf(stack, 'WETH').address,
          kind: 'sell',
          sellAmountBeforeFee: `${micros('500')}`,
          signingScheme: 'eip712',
        });
        const signature = await signQuote(quote.body, owner);
        answers.push((await api<OrderAnswer>('/api/v1/orders', { quoteId: quote.body.id, signature })).status);
        // Refilled as it empties.
        if ((await walletOf('taker3', 'USDC')) < micros('500') && i % 8 === 7)
          await (await tokenAs('USDC', 'taker2').getFunction('transfer')(owner.address, micros('500'))).wait();
      }
      for (let i = 0; i < 3; i++) await nextBlock();
      const executor = addressOf('executor');
      const outcomes = { filled: 0, reverted: 0 };
      for (let at = first; at <= (await stack.provider.getBlockNumber()); at++) {
        for (const hash of (await stack.provider.getBlock(at))!.transactions) {
          const receipt = (await stack.provider.getTransactionReceipt(hash))!;
          if (receipt.from.toLowerCase() === executor) outcomes[receipt.status === 1 ? 'filled' : 'reverted'] += 1;
        }
      }
      const accepted = answers.filter((status) => status === 200).length;
      said.push(`signed orders: ${accepted} of 40 accepted, ${outcomes.filled} filled, ${outcomes.reverted} reverted`);
      expect(outcomes.reverted).to.equal(0);
      expect(outcomes.filled).to.be.greaterThan(0);
      expect(accepted).to.be.lessThan(12);
    });

    it('a request of a unit in each block costs whoever makes it more than the settler', async () => {
      const { custodian } = contractsOf(stack, 'maker2');
      const settler = addressOf('settler');
      const first = (await stack.provider.getBlockNumber()) + 1;
      let asked = 0n;
      for (let i = 0; i < DUST_BLOCKS; i++) {
        const receipt = await (await custodian.requestWithdraw(tokenOf(stack, 'USDC').address, 1n)).wait();
        asked += receipt!.gasUsed;
      }
      await until('a settlement', async () => (await settledSince(first)).count > 0);
      for (let i = 0; i < 3; i++) await nextBlock();
      const { count, gas } = await settledSince(first);
      said.push(`dust: ${DUST_BLOCKS} requests for ${asked} gas, ${count} settlements for ${gas} gas`);
      expect(count).to.equal(1);
      expect(gas < asked, `${gas} against ${asked}`).to.equal(true);

      async function settledSince(from: number): Promise<{ count: number; gas: bigint }> {
        let [settlements, gasUsed] = [0, 0n];
        for (let at = from; at <= (await stack.provider.getBlockNumber()); at++) {
          for (const hash of (await stack.provider.getBlock(at))!.transactions) {
            const receipt = (await stack.provider.getTransactionReceipt(hash))!;
            if (receipt.from.toLowerCase() !== settler) continue;
            settlements += 1;
            gasUsed += receipt.gasUsed;
          }
        }
        return { count: settlements, gas: gasUsed };
      }
    });

    async function api<T>(path: string, body: object): Promise<{ status: number; body: T }> {
      const response = await fetch(`${stack.manifest.serverUrl}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return { status: response.status, body: (await response.json()) as T };
    }
  });
});
