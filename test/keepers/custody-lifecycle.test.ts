/** Each row of the two state tables of custody, withdrawal claim and deposit, on a local chain: events and balances after every step. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { MaxUint256, type ContractTransactionResponse } from 'ethers';
import { createTokens } from '../../deploy/sandbox/tokens.js';
import type { Address } from '../../core/types.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import { GAS, type Custody, type Send, type Standing } from '../support/custody.js';
import type { KeeperStack, ManualChain } from '../support/keeper-stack.js';
import { forEachKeepers } from '../support/manual-suite.js';

const DELAY_SEC = 600n;
/** Short enough to wait for. */
const SHORT_DELAY_SEC = 2n;

interface Step {
  /** State, trigger -> next state, as the tables name them. */
  row: string;
  /** Returns the custodian's events. */
  act(): Promise<string[]>;
  events: string[];
  /** Of maker1 in WETH unless `of` says otherwise. */
  then: Standing;
  of?: [role: string, symbol: string];
  /** The error that a call reverts with; nothing is sent then. */
  reverts?: { call(): Promise<unknown>; error: string | (() => Promise<string>) };
}

describe('life of a deposit and of a withdrawal', () => {
  forEachKeepers((begin) => {
    let chain: ManualChain;
    let stack: KeeperStack;
    let custody: Custody;

    beforeEach(async function () {
      this.timeout(60_000);
      ({ chain, stack, custody } = await begin());
      await custody.mined(() => custody.as('owner').setWithdrawDelay(DELAY_SEC, GAS));
    });

    afterEach(() => stack.stop());

    const weth = (amount: string): bigint => custody.units('WETH', amount);
    const request =
      (role: string, amount: bigint): Send =>
      () =>
        custody.as(role).requestWithdraw(custody.token('WETH'), amount, GAS);
    const execute =
      (role: string): Send =>
      () =>
        custody.as(role).executeWithdraw(custody.token('WETH'), GAS);
    const executeNow = (role: string) => () => custody.as(role).executeWithdraw.staticCall(custody.token('WETH'));

    /** One round of the settler, mined and seen; then another, which learns how it ended. */
    async function settle(): Promise<string[]> {
      await stack.settler.round();
      const events = await custody.mined();
      await stack.settler.round();
      return events;
    }

    const idle = async (): Promise<string[]> => [];
    const readyAt = async (): Promise<bigint> =>
      (await custody.custodian.claim(chain.address('maker1'), custody.token('WETH')))[1];

    /** Time of the last block. */
    const nowSec = async (): Promise<bigint> => BigInt((await chain.provider.getBlock('latest'))!.timestamp);

    async function untilReady(): Promise<string[]> {
      do await custody.mined();
      while ((await nowSec()) < (await readyAt()) && (await delay(200, true)));
      return [];
    }

    async function run(steps: readonly Step[]): Promise<void> {
      for (const step of steps) {
        if (step.reverts !== undefined) {
          const { call, error } = step.reverts;
          expect(await custody.revertOf(call), step.row).to.equal(typeof error === 'string' ? error : await error());
        }
        expect(await step.act(), step.row).to.deep.equal(step.events);
        const [role, symbol] = step.of ?? ['maker1', 'WETH'];
        expect(await custody.standing(role, symbol), step.row).to.deep.equal(step.then);
        await custody.expectSound();
      }
    }

    const at = (balance: string, reserved: string, available: string, claim: string): Standing => ({
      balance,
      reserved,
      available,
      claim,
    });

    it('takes a withdrawal through every row of its table', async function () {
      this.timeout(60_000);
      let firstReadyAt = 0n;
      await run([
        {
          row: 'none, requestWithdraw(0) -> reverts',
          reverts: {
            call: () => custody.as('maker1').requestWithdraw.staticCall(custody.token('WETH'), 0n),
            error: 'ZeroAmount()',
          },
          act: idle,
          events: [],
          then: at('100', '0', '100', '0'),
        },
        {
          row: 'none, requestWithdraw -> requested: reserved once mined, the rest goes on quoting, no state and no clock',
          act: () => custody.mined(request('maker1', weth('30'))),
          events: ['WithdrawRequested maker1 WETH 30'],
          then: at('100', '30', '70', '0'),
        },
        {
          row: 'requested, executeWithdraw -> reverts NoClaim',
          reverts: { call: executeNow('maker1'), error: 'NoClaim()' },
          act: idle,
          events: [],
          then: at('100', '30', '70', '0'),
        },
        {
          row: 'requested, platform settlement -> settled: the whole outstanding amount, readyAt = now + delay',
          act: settle,
          events: ['WithdrawSettled maker1 WETH 30'],
          then: at('100', '30', '70', '30'),
        },
        {
          row: 'settled, executeWithdraw before readyAt -> reverts ClaimNotReady',
          reverts: { call: executeNow('maker1'), error: async () => `ClaimNotReady(${await readyAt()})` },
          act: async () => {
            firstReadyAt = await readyAt();
            expect(firstReadyAt - (await nowSec())).to.equal(DELAY_SEC);
            const liquidity = await custody.custodian.availableLiquidity(custody.token('WETH'));
            expect(liquidity, 'swaps can not spend a settled claim').to.equal(weth('170'));
            return [];
          },
          events: [],
          then: at('100', '30', '70', '30'),
        },
        {
          row: 'settled, a change of withdrawDelay -> settled: claims keep the delay that they were settled with',
          act: () => custody.mined(() => custody.as('owner').setWithdrawDelay(SHORT_DELAY_SEC, GAS)),
          events: [],
          then: at('100', '30', '70', '30'),
        },
        {
          row: 'settled, second requestWithdraw -> settled: reserved on top',
          act: () => custody.mined(...['12', '0.25', '0.25'].map((amount) => request('maker1', weth(amount)))),
          events: ['12', '0.25', '0.25'].map((amount) => `WithdrawRequested maker1 WETH ${amount}`),
          then: at('100', '42.5', '57.5', '30'),
        },
        {
          row: 'settled, second settlement -> settled: set, not added; readyAt restarts for the whole amount',
          act: async () => {
            expect(await readyAt()).to.equal(firstReadyAt);
            const events = await settle();
            const block = await chain.provider.getBlock('latest');
            expect(await readyAt()).to.equal(BigInt(block!.timestamp) + SHORT_DELAY_SEC);
            return events;
          },
          events: ['WithdrawSettled maker1 WETH 42.5'],
          then: at('100', '42.5', '57.5', '42.5'),
        },
        {
          row: 'settled, later settle by a poster -> settled (lower): the difference is released, readyAt stays',
          act: async () => {
            const before = await readyAt();
            await lower('40');
            const events = await settle();
            expect(await readyAt()).to.equal(before);
            return events;
          },
          events: ['WithdrawSettled maker1 WETH 40'],
          then: at('100', '40', '60', '40'),
        },
        {
          row: 'settled, executeWithdraw from another address -> settled: there is nothing for it',
          reverts: { call: executeNow('maker2'), error: 'NoClaim()' },
          act: untilReady,
          events: [],
          then: at('100', '40', '60', '40'),
        },
        {
          row: 'settled, executeWithdraw at readyAt -> executed: paid whole, debited, reservation released',
          act: () => custody.mined(execute('maker1')),
          events: ['WithdrawExecuted maker1 WETH 40'],
          then: at('60', '0', '60', '0'),
        },
        {
          row: 'executed, executeWithdraw again -> reverts NoClaim',
          reverts: { call: executeNow('maker1'), error: 'NoClaim()' },
          act: idle,
          events: [],
          then: at('60', '0', '60', '0'),
        },
        {
          row: 'requested beyond the balance, settlement -> settled: clamped, the excess is released for good',
          act: async () => {
            await custody.mined(request('maker1', weth('1000')));
            expect(await custody.standing('maker1', 'WETH')).to.deep.equal(at('60', '1000', '0', '0'));
            return settle();
          },
          events: ['WithdrawSettled maker1 WETH 60'],
          then: at('60', '60', '0', '60'),
        },
        {
          row: 'settled, later settle to zero -> cancelled',
          act: async () => {
            await lower('0');
            return settle();
          },
          events: ['WithdrawSettled maker1 WETH 0'],
          then: at('60', '0', '60', '0'),
        },
        {
          row: 'cancelled, executeWithdraw -> reverts NoClaim',
          reverts: { call: executeNow('maker1'), error: 'NoClaim()' },
          act: idle,
          events: [],
          then: at('60', '0', '60', '0'),
        },
        {
          row: 'requested without funds, settlement -> settled with a zero claim; its reservation is released',
          act: async () => {
            await custody.mined(request('maker3', MaxUint256), request('maker3', 1n));
            return settle();
          },
          events: ['WithdrawSettled maker3 WETH 0'],
          of: ['maker3', 'WETH'],
          then: at('0', '0', '0', '0'),
        },
      ]);
    });

    async function lower(amount: string): Promise<void> {
      const lower = { token: custody.token('WETH'), amountUnits: weth(amount) };
      const maker = chain.address('maker1');
      await appendOperatorRow(stack.db, { timeMs: 1, kind: 'lowerClaim', maker, note: '', lower });
    }

    it('takes a deposit through every row of its table', async function () {
      this.timeout(60_000);
      const approve =
        (role: string): Send =>
        async () => {
          const token = chain.tokenAs('WETH', role).getFunction('approve');
          return (await token(chain.manifest.contracts['custodian'], MaxUint256, GAS)) as ContractTransactionResponse;
        };
      const deposit =
        (role: string, amount: string): Send =>
        () =>
          custody.as(role).deposit(custody.token('WETH'), weth(amount), GAS);
      await run([
        {
          row: 'tokens in maker wallet',
          act: () => custody.mined(approve('maker3'), approve('taker1')),
          events: [],
          of: ['maker3', 'WETH'],
          then: at('0', '0', '0', '0'),
        },
        {
          row: 'tokens in maker wallet, deposit() -> deposited on-chain: mining alone credits nothing',
          act: async () => {
            await deposit('maker3', '7')();
            await chain.mine();
            expect(await custody.custodian.availableLiquidity(custody.token('WETH'))).to.equal(weth('207'));
            expect(await custody.standing('maker3', 'WETH')).to.deep.equal(at('0', '0', '0', '0'));
            await stack.watcher.scan();
            return [];
          },
          events: [],
          of: ['maker3', 'WETH'],
          then: at('7', '0', '7', '0'),
        },
        {
          row: 'deposited on-chain, the generation is durable -> credited to msg.sender, approved or not',
          act: () => custody.mined(deposit('taker1', '0.5')),
          events: ['Deposited taker1 WETH 0.5'],
          of: ['taker1', 'WETH'],
          then: at('0.5', '0', '0.5', '0'),
        },
      ]);
    });

    it('never credits a deposit of a token that no served pair trades', async function () {
      this.timeout(60_000);
      await chain.provider.send('evm_setAutomine', [true]);
      const [dai] = await createTokens(chain.provider, ['DAI']);
      await dai!.give(chain.wallet('maker3'), 1_000n);
      await dai!.approve(chain.wallet('maker3'), chain.manifest.contracts['custodian'], 1_000n);
      await chain.provider.send('evm_setAutomine', [false]);
      const events = await custody.mined(
        () => custody.as('maker3').deposit(dai!.address, 1_000n, GAS),
        () => custody.as('maker3').requestWithdraw(dai!.address, 5n, GAS),
      );
      expect(events).to.have.members([
        'Deposited maker3 1000 units of another token',
        'WithdrawRequested maker3 5 units of another token',
      ]);
      const token = dai!.address.toLowerCase() as Address;
      expect(await stack.db.knex('balances').where({ token }), 'ignored by the ledger').to.deep.equal([]);
      expect(await stack.db.knex('custody_events').where({ token }), 'seen all the same').to.have.length(2);
      expect(await settle(), 'and its request is never settled').to.deep.equal([]);
      await custody.expectSound();
    });
  });
});
