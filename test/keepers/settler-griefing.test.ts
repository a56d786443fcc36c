/** What requests of withdrawals cost those who make them, and what settling them costs the operator, in gas of the contracts as they are. */
import { expect } from 'chai';
import { Wallet, parseEther, type ContractTransactionResponse, type TransactionResponse } from 'ethers';
import { REQUEST_GAS, settleGas, type SettlePart } from '../../core/settle-gas.js';
import { settleCalldata } from '../../keepers/settler/plan.js';
import { Custodian__factory } from '../../typechain-types/index.js';
import { custodyOf, GAS, type Custody } from '../support/custody.js';
import { forEachDatabase } from '../support/db.js';
import { startKeepers, type KeeperStack, type ManualChain } from '../support/keeper-stack.js';
import { forEachKeepers } from '../support/manual-suite.js';

const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;
const PACE = { intervalMs: 5 * MINUTE_MS, smallIntervalMs: 60 * MINUTE_MS, smallBps: 100 };
/** A contract that calls its first argument with the last 68 bytes, as often as its second one says. */
const REPEATER = '0x6024600c60003960246000f3604460406000376020355b600060006044600060006000355af1506001900380600a5700';

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
      const deployed = await chain.wallet('taker1').sendTransaction({ data: REPEATER, ...GAS });
      await custody.mined();
      const { contractAddress } = (await deployed.wait())!;
      const call = Custodian__factory.createInterface().encodeFunctionData('requestWithdraw', [weth(), 1n]);
      const data = `0x${custodian!.slice(2).padStart(64, '0')}${(100).toString(16).padStart(64, '0')}${call.slice(2)}`;
      const repeat = () => chain.wallet('taker1').sendTransaction({ to: contractAddress, data, gasLimit: 2_000_000n });
      const events = custody.mined(repeat as () => Promise<ContractTransactionResponse>);
      expect((await events).length, 'they cost next to nothing').to.equal(100);
      await passed(DAY_MS);
      expect(settlements, 'and count once').to.equal(2);
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
