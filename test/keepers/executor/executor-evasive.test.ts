/** Accounts with code that is written at random to cost the service something, between owners who only swap. */
import { expect } from 'chai';
import { parseUnits, toBeHex, type Wallet } from 'ethers';
import { readHalt } from '../../../ledger/chain/halts.js';
import { evasiveCode } from '../../support/contracts/evasive-code.js';
import { forOneDatabase } from '../../support/db.js';
import { fcOptions } from '../../support/fc.js';
import { startManualChain, type ManualChain } from '../../support/keeper-stack.js';
import { seededRandom } from '../../support/random.js';
import { createOwners, startSwapStack, type QuoteAnswer, type SwapStack } from '../../support/swap-stack.js';

/** What an operator lets an account with code burn before it has swapped by itself. */
const CREDIT = 250_000n;
/** Evasive owners at a time, with two honest ones. */
const AT_ONCE = 10;
const usdc = (amount: string): bigint => parseUnits(amount, 6);

forOneDatabase((name, open) =>
  describe(`evasive and faulty accounts on ${name}`, function () {
    const { numRuns, seed } = fcOptions(40);
    this.timeout(120_000 + 3_000 * numRuns);
    let chain: ManualChain;
    let stack: SwapStack;

    before(async () => {
      chain = await startManualChain();
      // The same at the API and at the executor: what is quoted may be sent.
      stack = await startSwapStack(await open(), chain, {}, { newContractGas: CREDIT });
      await stack.makeMarket();
    });

    after(async () => {
      await stack?.stop();
      await chain?.close();
    });

    const quoteOf = (owner: Wallet): Promise<QuoteAnswer | null> =>
      stack
        .quote(owner.address, {
          ...{ sellToken: stack.token('USDC'), buyToken: stack.token('WETH') },
          sellAmountBeforeFee: usdc('100').toString(),
        })
        // Whatever a code does, a quote is refused by one of the documented errors, or made.
        .catch((error: Error) => (expect(error.message).to.match(/BAD_REQUEST|UNPROVEN_ACCOUNT/), null));

    /** Keeps the curve alive, however long owners took. */
    async function post(): Promise<void> {
      await stack.keepers.poster.round();
      await chain.mine();
      await stack.keepers.watcher.scan();
    }

    /** Transactions of an order, and the gas of those that reverted. */
    async function costOf(orderId: string): Promise<{ reverted: number; lostGas: bigint }> {
      const cost = { reverted: 0, lostGas: 0n };
      for (const hash of (await stack.order(orderId)).attempts.flatMap(({ txHashes }) => txHashes)) {
        const receipt = await chain.provider.getTransactionReceipt(hash);
        if (receipt === null || receipt.status === 1) continue;
        cost.reverted += 1;
        cost.lostGas += receipt.gasUsed;
      }
      return cost;
    }

    it(`cost no more than they may, and hold up nobody (${numRuns} of them)`, async () => {
      const random = seededRandom(seed);
      const orders: { owner: number; orderId: string; does: string }[] = [];
      const ends = new Map<string, number>();
      let made = 0;
      while (made < numRuns) {
        const count = Math.min(AT_ONCE, numRuns - made);
        const owners = await createOwners(chain, 'USDC', count + 2, usdc('150'));
        const honest = owners.splice(0, 2);
        const evasive: { quote: QuoteAnswer; owner: Wallet; does: string; no: number }[] = [];
        for (const owner of owners) {
          const { code, does } = evasiveCode(random);
          const isEarly = random.int(0, 1) === 0;
          const appear = () => chain.provider.send('hardhat_setCode', [owner.address, code]);
          if (isEarly) await appear();
          const quote = await quoteOf(owner);
          if (!isEarly) await appear();
          if (quote !== null) evasive.push({ quote, owner, does, no: made });
          made += 1;
        }
        for (const { quote, owner, does, no } of evasive) {
          const { status, body } = await stack.submit(quote, owner);
          expect(status, `${does}, seed ${seed}: ${JSON.stringify(body)}`).to.be.oneOf([200, 400]);
          if (status === 200) orders.push({ owner: no, orderId: body.orderId, does });
        }
        const fair: string[] = [];
        for (const owner of honest) {
          const { body } = await stack.submit((await quoteOf(owner))!, owner);
          fair.push(body.orderId);
        }
        for (let round = 0; round < 3; round++) {
          await post();
          await stack.executor.round();
          const flipped = round % 2 === 0 ? 1n : 0n;
          for (const { address } of owners)
            await chain.provider.send('hardhat_setStorageAt', [address, '0x0', toBeHex(flipped, 32)]);
          await chain.mine();
          await stack.keepers.watcher.scan();
        }
        // Orders of others are filled, whoever else waits.
        for (const orderId of fair) expect((await stack.order(orderId)).status, `seed ${seed}`).to.equal('filled');
        // What was not filled expires.
        await chain.provider.send('evm_increaseTime', [200]);
        stack.advance(200_000);
        for (let round = 0; round < 2; round++) await stack.land();
        await post();
      }
      for (const { orderId, does } of orders) {
        const { status } = await stack.order(orderId);
        expect(status, `${does}, seed ${seed}`).not.to.equal('pending');
        ends.set(status, (ends.get(status) ?? 0) + 1);
        const { reverted, lostGas } = await costOf(orderId);
        expect(reverted, `${does}, seed ${seed}`).to.be.at.most(1);
        expect(lostGas <= CREDIT, `${does}, seed ${seed}: ${lostGas}`).to.equal(true);
        if (reverted > 0) ends.set('reverted', (ends.get('reverted') ?? 0) + 1);
      }
      // The generator does what it is for.
      expect(orders.length, JSON.stringify([...ends])).to.be.greaterThan(numRuns / 10);
      expect(await readHalt(stack.db.knex)).to.equal(null);
      if (process.env.LOG_LEVEL !== undefined) process.stdout.write(`${made} owners: ${JSON.stringify([...ends])}\n`);
    });
  }),
);
