/** What requests of withdrawals cost those who make them, and what settling them costs the operator, in gas of the contracts as they are. */
import { expect } from 'chai';
import { Wallet, parseEther, type ContractTransactionResponse, type TransactionResponse } from 'ethers';
import { REQUEST_GAS, eventGas, settleGas, type SettlePart } from '../../core/settle-gas.js';
import type { Address } from '../../core/types.js';
import { describeWaiting, readWaiting } from '../../cli/commands/waiting.js';
import { settleCalldata } from '../../keepers/settler/plan.js';
import { custodyEventsOf } from '../../ledger/chain/claims.js';
import { Custodian__factory, SmartAccount__factory, Together__factory } from '../../typechain-types/index.js';
import { custodyOf, GAS, type Custody } from '../support/custody.js';
import { forEachDatabase } from '../support/db.js';
import { startKeepers, type KeeperStack, type ManualChain } from '../support/keeper-stack.js';
import { forEachKeepers } from '../support/manual-suite.js';

const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;
const PACE = { intervalMs: 5 * MINUTE_MS, smallIntervalMs: 60 * MINUTE_MS, smallBps: 100 };
/** Whom a contract calls, and how. */
type Call = [target: string, data: string];

describe('griefing the settler', function () {
  this.timeout(120_000);

  forEachKeepers((begin) => {
    let chain: ManualChain;
    let stack: KeeperStack;
    let custody: Custody;
    let aheadMs: number;
    /** Gas of whoever asks, and of the operator. */
    let paid: { griefers: bigint; operator: bigint };
    let settlements: number;

    beforeEach(async () => {
      aheadMs = 0;
      paid = { griefers: 0n, operator: 0n };
      settlements = 0;
      ({ chain, stack } = await begin());
      await stack.stop();
      stack = await startKeepers(stack.db, chain, { settler: { pace: PACE, nowMs: () => Date.now() + aheadMs } });
      custody = custodyOf(chain, stack);
      await custody.mined();
    });

    afterEach(() => stack.stop());

    const gasOf = async (hash: string): Promise<bigint> => (await chain.provider.getTransactionReceipt(hash))!.gasUsed;

    /** Sends what griefers send, in one block, and lets the settler do what it then does. */
    async function sent(...sends: (() => Promise<TransactionResponse>)[]): Promise<void> {
      const hashes: string[] = [];
      await custody.mined(
        ...sends.map((send) => async () => {
          const response = await send();
          hashes.push(response.hash);
          return response as ContractTransactionResponse;
        }),
      );
      for (const hash of hashes) paid.griefers += await gasOf(hash);
      await settle();
    }

    async function settle(): Promise<void> {
      const { txHash } = await stack.settler.round();
      if (txHash === null) return;
      await custody.mined();
      settlements += 1;
      paid.operator += await gasOf(txHash);
      await stack.settler.round();
      const { griefers, operator } = paid;
      expect(operator <= griefers, `${operator} against ${griefers} after ${settlements} settlements`).to.equal(true);
    }

    async function passed(ms: number): Promise<void> {
      aheadMs += ms;
      await settle();
    }

    const weth = (): string => custody.token('WETH');
    const ask =
      (role: string, units = 1n) =>
      () =>
        custody.as(role).requestWithdraw(weth(), units, GAS);
    /** What it takes to have a row: an account that never dealt with the custodian. */
    async function joins(role: string): Promise<void> {
      const { custodian } = chain.manifest.contracts as Record<string, string>;
      await sent(
        () =>
          chain.tokenAs('WETH', role).getFunction('approve')(custodian, 1_000n, GAS) as Promise<TransactionResponse>,
        () => custody.as(role).deposit(weth(), 1_000n, GAS),
      );
    }

    it('a unit in each block, by one and by three', async () => {
      await joins('taker1');
      for (let i = 0; i < 20; i++) {
        await sent(ask('taker1'));
        if (i % 4 === 3) await passed(PACE.smallIntervalMs);
      }
      expect(settlements, 'each block of an hour').to.be.greaterThan(2);
      for (const role of ['taker2', 'maker3']) await joins(role);
      for (let i = 0; i < 8; i++) {
        await sent(ask('taker1'), ask('taker2'), ask('maker3'));
        await passed(PACE.smallIntervalMs);
      }
      expect(settlements).to.be.greaterThan(5);
    });

    it('a unit a day, which waits until three requests have paid for a settlement, or another settlement takes it along', async () => {
      await joins('taker1');
      await sent(ask('taker1'));
      expect(settlements, 'the first').to.equal(1);
      for (let day = 0; day < 2; day++) {
        await sent(ask('taker1'));
        await passed(DAY_MS);
      }
      expect(settlements, 'nobody has paid for the second').to.equal(1);
      const tokens = [{ address: custody.token('WETH'), symbol: 'WETH' }];
      const waiting = async () => (await readWaiting(stack.db.knex)).map((one) => describeWaiting(one, tokens));
      expect(await waiting()).to.deep.equal([
        `withdrawal of ${chain.address('taker1')} in WETH: paid 56600 of 67000 gas, rides along with another settlement or waits for 1 more request`,
      ]);
      await sent(ask('taker1'));
      expect(settlements).to.equal(2);
      await passed(DAY_MS);
      await sent(ask('taker1'));
      expect(settlements).to.equal(2);
      await joins('taker2');
      await sent(ask('taker2'));
      expect(settlements).to.equal(3);
      expect((await custody.standing('taker1', 'WETH')).claim, 'taken along').to.match(/5$/);
      await custody.expectSound();
    });

    it('a unit that is executed as soon as it may be, and asked for again', async () => {
      await custody.mined(() => custody.as('owner').setWithdrawDelay(0n, GAS));
      await joins('taker1');
      for (let i = 0; i < 6; i++) {
        await sent(ask('taker1'));
        await passed(PACE.smallIntervalMs);
        await sent(() => custody.as('taker1').executeWithdraw(weth(), GAS));
      }
      expect(settlements).to.equal(6);
      // What waits beside a claim that stands is settled once that is executed.
      await sent(ask('taker1'));
      await passed(PACE.smallIntervalMs);
      await sent(ask('taker1'));
      await passed(DAY_MS);
      expect(settlements).to.equal(7);
      await sent(() => custody.as('taker1').executeWithdraw(weth(), GAS));
      expect(settlements).to.equal(8);
      await custody.expectSound();
    });

    it('requests without funds, of strangers, and hundreds in one transaction', async () => {
      const strangers = Array.from({ length: 4 }, () => Wallet.createRandom(chain.provider));
      for (const { address } of strangers)
        await chain.provider.send('hardhat_setBalance', [address, `0x${parseEther('1').toString(16)}`]);
      const { custodian } = chain.manifest.contracts as Record<string, string>;
      for (const stranger of strangers) {
        await sent(() => Custodian__factory.connect(custodian!, stranger).requestWithdraw(weth(), 1n, GAS));
        await passed(PACE.smallIntervalMs);
      }
      expect(settlements, 'two at a time').to.equal(2);
      const together = await deployTogether();
      const request = asked(custodian!);
      const events = custody.mined(() => together.calls(Array.from({ length: 100 }, () => request)));
      expect((await events).length).to.equal(100);
      const [block] = [await chain.provider.getBlock('latest', true)];
      const gas = await gasOf(block!.transactions[0]!);
      paid.griefers += gas;
      expect(gas > eventGas('requested', 1) * 8n, 'they cost what they count for').to.equal(true);
      await passed(DAY_MS);
      expect(settlements, 'and are paid for').to.equal(3);
    });

    const custodianCalls = Custodian__factory.createInterface();
    const asked = (custodian: string, symbol = 'WETH'): Call => [
      custodian,
      custodianCalls.encodeFunctionData('requestWithdraw', [custody.token(symbol), 1n]),
    ];
    const executed = (custodian: string, symbol = 'WETH'): Call => [
      custodian,
      custodianCalls.encodeFunctionData('executeWithdraw', [custody.token(symbol)]),
    ];

    /** A contract that is a maker, or controls makers, and makes any calls in one transaction. */
    async function deployTogether() {
      const together = await new Together__factory(chain.wallet('taker1')).deploy(GAS);
      await custody.mined();
      const address = await together.getAddress();
      const calls = (all: readonly Call[]) =>
        together.all(
          all.map(([target]) => target),
          all.map(([, data]) => data),
          { gasLimit: 6_000_000n },
        );
      return { address, calls };
    }

    /** Gives it something to withdraw. */
    async function fund(
      account: string,
      call: (target: string, data: string) => Call,
      symbol = 'WETH',
    ): Promise<Call[]> {
      const { custodian } = chain.manifest.contracts as Record<string, string>;
      const [token, erc20] = [custody.token(symbol), chain.tokenAs(symbol, 'taker1')];
      await sent(() => erc20.getFunction('transfer')(account, 1_000n, GAS) as Promise<TransactionResponse>);
      return [
        call(token, erc20.interface.encodeFunctionData('approve', [custodian!, 1_000n])),
        call(custodian!, custodianCalls.encodeFunctionData('deposit', [token, 1_000n])),
      ];
    }

    it('a contract that executes and asks in one transaction pays less than the settlement, and waits for one more request', async () => {
      await custody.mined(() => custody.as('owner').setWithdrawDelay(0n, GAS));
      const { custodian } = chain.manifest.contracts as Record<string, string>;
      const together = await deployTogether();
      const joining = await fund(together.address, (target, data) => [target, data]);
      await sent(() => together.calls([...joining, asked(custodian!)]));
      expect(settlements, 'the first goes at once').to.equal(1);
      const [before, firstGas] = [paid.griefers, paid.operator];
      for (let i = 0; i < 3; i++) {
        await sent(() => together.calls([executed(custodian!), asked(custodian!)]));
        await passed(DAY_MS);
        expect(settlements, 'it has not paid for it').to.equal(1 + i);
        await sent(() => together.calls([asked(custodian!)]));
        await passed(PACE.intervalMs);
        expect(settlements).to.equal(2 + i);
      }
      const [trips, settled] = [paid.griefers - before, paid.operator - firstGas];
      expect(settled <= trips, `${settled} against ${trips}`).to.equal(true);
      await custody.expectSound();
    });

    it('two tokens of one maker, settled together and paid in one transaction, count for no more than they cost', async () => {
      await custody.mined(() => custody.as('owner').setWithdrawDelay(0n, GAS));
      const { custodian } = chain.manifest.contracts as Record<string, string>;
      const together = await deployTogether();
      const both = (call: (custodian: string, symbol: string) => Call): Call[] =>
        ['WETH', 'USDC'].map((symbol) => call(custodian!, symbol));
      /** Makes the calls in one transaction, which may count for what it costs and no more. */
      const made = async (...calls: Call[]): Promise<void> => {
        const before = paid.griefers;
        await sent(() => together.calls(calls));
        const events = await custodyEventsOf(stack.db.knex, together.address.toLowerCase() as Address, 100);
        const asking = events.findLast(({ kind }) => kind === 'requested')!.txHash;
        const counted = events.reduce((sum, one) => (one.txHash === asking ? sum + one.paidGas! : sum), 0n);
        const gas = paid.griefers - before;
        expect(counted > 0n && counted <= gas, `${counted} of ${gas}`).to.equal(true);
      };
      const joining: Call[] = [];
      for (const symbol of ['WETH', 'USDC'])
        joining.push(...(await fund(together.address, (target, data) => [target, data], symbol)));
      await made(...joining, ...both(asked));
      expect(settlements, 'both at first, in one transaction').to.equal(1);
      for (let i = 0; i < 3; i++) {
        await made(...both(executed), ...both(asked));
        await passed(DAY_MS);
        expect(settlements, 'they have not paid for both').to.equal(1 + i);
        await made(...both(asked), ...both(asked));
        await passed(DAY_MS);
        expect(settlements, 'and now they have').to.equal(2 + i);
      }
      await custody.expectSound();
    });

    it('accounts that share a transaction count for no more than it costs', async () => {
      await custody.mined(() => custody.as('owner').setWithdrawDelay(0n, GAS));
      const { custodian } = chain.manifest.contracts as Record<string, string>;
      const together = await deployTogether();
      const accounts = [];
      for (let i = 0; i < 6; i++) {
        const account = await (
          await new SmartAccount__factory(chain.wallet('taker1')).deploy(together.address, GAS)
        ).getAddress();
        await custody.mined();
        const act = ([target, data]: Call): Call => [
          account,
          SmartAccount__factory.createInterface().encodeFunctionData('execute', [target, data]),
        ];
        const joining = await fund(account, (target, data) => act([target, data]));
        await sent(() => together.calls([...joining, act(asked(custodian!))]));
        accounts.push(act);
      }
      expect(settlements).to.equal(6);
      for (const some of [1, 2, 6]) {
        const all = accounts.slice(0, some);
        const before = paid.griefers;
        const settled = settlements;
        await sent(() => together.calls(all.flatMap((act) => [act(executed(custodian!)), act(asked(custodian!))])));
        const gas = paid.griefers - before;
        const counted = BigInt(some) * (eventGas('executed', 2 * some) + eventGas('requested', 2 * some));
        expect(counted <= gas, `${some}: ${counted} of ${gas}`).to.equal(true);
        await passed(DAY_MS);
        expect(settlements - settled, 'six of them pay for one settlement').to.equal(some === 6 ? 1 : 0);
        for (const act of all) await sent(() => together.calls([act(asked(custodian!))]));
        await passed(DAY_MS);
        expect(settlements - settled, 'with one more request of each').to.equal(some === 6 ? 2 : 1);
      }
      await custody.expectSound();
    });

    it('the figures by which it counts are bounds of what the contracts use', async () => {
      for (const symbol of ['WETH', 'USDC']) {
        const token = custody.token(symbol);
        const [asked] = [await custody.as('maker1').requestWithdraw(token, 1n, GAS)];
        await chain.mine();
        expect((await gasOf(asked.hash)) >= REQUEST_GAS, symbol).to.equal(true);
      }
      let units = 1n;
      /** Settles all of them to one amount; what this costs beside what it is counted as. */
      async function settled(isRaise: boolean, ...claims: [role: string, symbol: string][]): Promise<void> {
        if (isRaise) units += 1n;
        const batch = [];
        for (const [role, symbol] of claims) {
          const [maker, token] = [chain.address(role), custody.token(symbol)];
          batch.push({ maker, token, amountUnits: units, basis: await custody.custodian.claimBasis(maker, token) });
        }
        const to = chain.manifest.contracts['custodian'];
        const { hash } = await chain
          .wallet('settler')
          .sendTransaction({ to, data: settleCalldata(batch), gasLimit: 900_000n });
        await chain.mine();
        const [gas, bound] = [await gasOf(hash), settleGas(batch.map(({ token }): SettlePart => ({ token, isRaise })))];
        if (units > 2n)
          expect(gas <= bound && gas > (bound * 7n) / 10n, `${claims.join(' ')}: ${gas} of ${bound}`).to.equal(true);
      }
      const all = ['WETH', 'USDC'].flatMap((symbol) =>
        ['maker1', 'maker2'].map((role): [string, string] => [role, symbol]),
      );
      await settled(true, ...all);
      for (const isRaise of [true, false]) {
        await settled(isRaise, all[0]!);
        await settled(isRaise, all[2]!);
        await settled(isRaise, all[0]!, all[1]!);
        await settled(isRaise, ...all);
      }
    });
  }, forEachDatabase);
});
