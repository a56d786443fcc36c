/** Reorganisations that take back one thing each: a settlement, an execution, a request, a fee, or the deposit behind a claim. */
import { expect } from 'chai';
import { MaxUint256, type ContractTransactionResponse } from 'ethers';
import { verifyLedger } from '../../keepers/verify/verify.js';
import { readBalances } from '../../ledger/chain/balances.js';
import { readClaim, readTakerFees } from '../../ledger/chain/claims.js';
import { lastHaltNo, readHalt } from '../../ledger/chain/halts.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import { listOutbox } from '../../ledger/transactions/outbox.js';
import { fillSeqs } from '../../ledger/views/reads.js';
import { CurveBook__factory, Entrypoint__factory } from '../../typechain-types/index.js';
import { GAS, type Custody, type Send } from '../support/custody.js';
import { forksOf, type Forks } from '../support/nodes/fork.js';
import type { KeeperStack, ManualChain } from '../support/keeper-stack.js';
import { forEachDatabase } from '../support/db.js';
import { forEachKeepers } from '../support/manual-suite.js';
import { verifyDeps, verifyRpc } from '../support/verify.js';

/** One percent, the most that a taker can be charged. */
const FEE_PPM = 10_000n;

describe('what a reorganisation takes back', function () {
  this.timeout(60_000);

  forEachKeepers((begin) => {
    let chain: ManualChain;
    let stack: KeeperStack;
    let custody: Custody;
    let forks: Forks;

    beforeEach(async () => {
      ({ chain, stack, custody } = await begin());
      forks = forksOf(chain, stack);
      await custody.mined(() => custody.as('owner').setWithdrawDelay(0n, GAS));
    });

    afterEach(() => stack.stop());

    const weth = (amount: string): bigint => custody.units('WETH', amount);
    const request =
      (amount: string): Send =>
      () =>
        custody.as('maker1').requestWithdraw(custody.token('WETH'), weth(amount), GAS);
    const execute: Send = () => custody.as('maker1').executeWithdraw(custody.token('WETH'), GAS);
    const standing = () => custody.standing('maker1', 'WETH');

    /** One round of the settler, mined and seen. */
    async function settle(): Promise<string[]> {
      await stack.settler.round();
      return custody.mined();
    }

    async function netCapital(): Promise<bigint> {
      const rows = await readBalances(stack.db.knex, { account: chain.address('maker1') });
      return rows.find((row) => row.token === custody.token('WETH'))!.netCapitalUnits;
    }

    /** The ledger follows from its rows and agrees with the chain, reversals included. */
    async function expectVerified(reversals: number): Promise<void> {
      await custody.expectSound();
      const report = await verifyLedger({ ...verifyDeps(stack.db, chain), rpc: verifyRpc(chain) });
      expect(report.reversals).to.equal(reversals);
    }

    it('a settlement: the request waits again, and the very same settlement is mined once more', async () => {
      await custody.mined(request('30'));
      const mark = await forks.mark();
      expect(await settle()).to.deep.equal(['WithdrawSettled maker1 WETH 30']);
      await stack.settler.round();
      expect(await standing()).to.include({ reserved: '30', claim: '30' });

      await forks.fork(mark);
      const { orphans, balances } = await forks.reconcile();
      expect(orphans.custody.map(({ kind, amountUnits }) => [kind, amountUnits])).to.deep.equal([
        ['settled', weth('30')],
      ]);
      expect(balances, 'a settlement moves no money').to.deep.equal([]);
      expect(await standing()).to.deep.equal({ balance: '100', reserved: '30', available: '70', claim: '0' });
      const { maker, token } = { maker: chain.address('maker1'), token: custody.token('WETH') };
      expect((await readClaim(stack.db.knex, { maker, token })).pendingSinceBlock).to.not.equal(null);
      await expectVerified(1);

      const rounds: string[] = [];
      for (let i = 0; i < 3; i++) rounds.push(...(await settle()));
      expect(rounds, 'once, whoever sends it').to.deep.equal(['WithdrawSettled maker1 WETH 30']);
      expect(await standing()).to.deep.equal({ balance: '100', reserved: '30', available: '70', claim: '30' });
      expect(await stack.db.knex('outbox').count({ n: '*' }).first(), 'the bytes of the first time').to.deep.equal({
        n: 1,
      });
      expect(await custody.mined(execute)).to.deep.equal(['WithdrawExecuted maker1 WETH 30']);
      expect(await standing()).to.deep.equal({ balance: '70', reserved: '0', available: '70', claim: '0' });
      await expectVerified(1);
    });

    it('an execution: balance, reservation, claim and capital are back, and it is paid once in the end', async () => {
      await custody.mined(request('30'));
      await settle();
      const capital = await netCapital();
      const mark = await forks.mark();
      await custody.mined(execute);
      expect(await standing()).to.deep.equal({ balance: '70', reserved: '0', available: '70', claim: '0' });
      expect(await netCapital()).to.equal(capital - weth('30'));

      await forks.fork(mark);
      const { orphans, balances } = await forks.reconcile();
      expect(orphans.custody.map(({ kind }) => kind)).to.deep.equal(['executed']);
      const back = balances.find(({ account }) => account === chain.address('maker1'));
      expect(back?.deltaUnits).to.equal(weth('30'));
      expect(await standing()).to.deep.equal({ balance: '100', reserved: '30', available: '70', claim: '30' });
      expect(await netCapital()).to.equal(capital);
      await expectVerified(1);

      await stack.settler.round();
      expect(await custody.mined(execute)).to.deep.equal(['WithdrawExecuted maker1 WETH 30']);
      expect(await standing()).to.deep.equal({ balance: '70', reserved: '0', available: '70', claim: '0' });
      expect(await netCapital()).to.equal(capital - weth('30'));
      await expectVerified(1);
    });

    it('request, settlement and execution at once: nothing ever happened', async () => {
      const before = await standing();
      const mark = await forks.mark();
      await custody.mined(request('30'));
      await settle();
      await custody.mined(execute);
      await stack.settler.round();
      await forks.fork(mark);
      const { orphans } = await forks.reconcile();
      expect(orphans.custody.map(({ kind }) => kind)).to.deep.equal(['requested', 'settled', 'executed']);
      expect(await standing()).to.deep.equal(before);
      await expectVerified(1);
    });

    it('a request and its settlement: it is not settled again before it is requested again, nor for more', async () => {
      const mark = await forks.mark();
      await custody.mined(request('30'));
      await settle();
      await stack.settler.round();
      await forks.fork(mark);
      await forks.reconcile();
      expect(await settle(), 'nobody has asked for anything').to.deep.equal([]);
      expect(await custody.mined(request('30'))).to.deep.equal(['WithdrawRequested maker1 WETH 30']);
      const events: string[] = [];
      for (let i = 0; i < 3; i++) events.push(...(await settle()));
      expect(events).to.deep.equal(['WithdrawSettled maker1 WETH 30']);
      expect(await standing()).to.deep.equal({ balance: '100', reserved: '30', available: '70', claim: '30' });
      await expectVerified(1);
    });

    /** A settlement whose request a reorganisation took back, as it was signed; the ledger has followed `instead`. */
    async function lostSettlement(...instead: ((raw: string) => Send | (() => Promise<unknown>))[]): Promise<string> {
      const mark = await forks.mark();
      await custody.mined(request('30'));
      await settle();
      await stack.settler.round();
      const [signed] = await listOutbox(stack.db.knex, { signer: chain.address('settler'), limit: 1 });
      const { raw } = signed!;
      await forks.fork(mark, ...instead.map((one) => one(raw)));
      await forks.reconcile();
      return raw;
    }

    const mineOld = (raw: string) => (): Promise<unknown> => chain.provider.send('eth_sendRawTransaction', [raw]);

    /** What the custodian says in the next rounds. */
    async function rounds(count = 4): Promise<string[]> {
      const events: string[] = [];
      for (let i = 0; i < count; i++) events.push(...(await settle()));
      return events;
    }

    it('a request whose settlement another node mines all the same: the next request is covered by it, once', async () => {
      await lostSettlement(mineOld);
      expect(await standing(), 'reserved, since the claim can be executed').to.include({ reserved: '30', claim: '30' });
      expect(await rounds()).to.deep.equal([]);
      expect(await custody.mined(request('30'))).to.deep.equal(['WithdrawRequested maker1 WETH 30']);
      expect(await standing()).to.deep.equal({ balance: '100', reserved: '30', available: '70', claim: '30' });
      expect(await rounds(), 'not for the second time').to.deep.equal([]);
      await expectVerified(1);
      // Three requests pay for a settlement by itself.
      await custody.mined(request('3'), request('1'), request('1'));
      expect(await rounds()).to.deep.equal(['WithdrawSettled maker1 WETH 35']);
      expect(await custody.mined(execute)).to.deep.equal(['WithdrawExecuted maker1 WETH 35']);
      expect(await standing()).to.deep.equal({ balance: '65', reserved: '0', available: '65', claim: '0' });
      await expectVerified(1);
    });

    it('a request whose old claim the operator lowers: what that leaves uncovered is dropped, and not settled again', async () => {
      await lostSettlement(mineOld);
      await custody.mined(request('10'));
      const lower = { token: custody.token('WETH'), amountUnits: weth('4') };
      const maker = chain.address('maker1');
      await appendOperatorRow(stack.db, { timeMs: 1, kind: 'lowerClaim', maker, note: '', lower });
      expect(await rounds()).to.deep.equal(['WithdrawSettled maker1 WETH 4']);
      expect(await standing()).to.deep.equal({ balance: '100', reserved: '4', available: '96', claim: '4' });
      await expectVerified(1);
    });

    it('a request that is made again in front of its old settlement: it is settled once', async () => {
      await lostSettlement(() => request('30'), mineOld);
      expect(await rounds()).to.deep.equal([]);
      expect(await standing()).to.deep.equal({ balance: '100', reserved: '30', available: '70', claim: '30' });
      await expectVerified(1);
      expect(await custody.mined(execute)).to.deep.equal(['WithdrawExecuted maker1 WETH 30']);
      expect(await rounds()).to.deep.equal([]);
      expect(await standing()).to.deep.equal({ balance: '70', reserved: '0', available: '70', claim: '0' });
      await expectVerified(1);
    });

    it('a request for more in front of its old settlement: the rest is settled, too', async () => {
      await lostSettlement(() => request('48'), mineOld);
      expect(await rounds(), 'it has not paid for that').to.deep.equal([]);
      await custody.mined(request('1'), request('1'));
      expect(await rounds()).to.deep.equal(['WithdrawSettled maker1 WETH 50']);
      expect(await standing()).to.deep.equal({ balance: '100', reserved: '50', available: '50', claim: '50' });
      await expectVerified(1);
    });

    it('a settlement whose place was taken: no node can mine it, and nothing is settled before its place is', async () => {
      const raw = await lostSettlement(() => request('30'));
      expect((await stack.settler.round()).settlements, 'while the old one could be mined').to.deep.equal([]);
      await chain.mine();
      await stack.watcher.scan();
      const refusal = await chain.provider.send('eth_sendRawTransaction', [raw]).then(
        () => null,
        (error: unknown) => String(error),
      );
      expect(refusal).to.match(/nonce too low/i);
      expect(await rounds()).to.deep.equal(['WithdrawSettled maker1 WETH 30']);
      expect(await standing()).to.deep.equal({ balance: '100', reserved: '30', available: '70', claim: '30' });
      await expectVerified(1);
    });

    it('the deposit behind a claim: it halts, and the operator takes the claim back before its delay is over', async () => {
      await custody.mined(() => custody.as('owner').setWithdrawDelay(600n, GAS));
      const token = (role: string) => chain.tokenAs('WETH', role);
      const custodian = chain.manifest.contracts['custodian'];
      await custody.mined(
        () =>
          token('maker3').getFunction('approve')(custodian, MaxUint256, GAS) as Promise<ContractTransactionResponse>,
      );
      const mark = await forks.mark();
      await custody.mined(() => custody.as('maker3').deposit(custody.token('WETH'), weth('9'), GAS));
      const ask: Send = () => custody.as('maker3').requestWithdraw(custody.token('WETH'), weth('9'), GAS);
      await custody.mined(ask);
      expect(await settle()).to.deep.equal(['WithdrawSettled maker3 WETH 9']);
      await stack.settler.round();

      // The chain takes the settlement over from the lost blocks; the deposit it never does.
      const [signed] = await listOutbox(stack.db.knex, { signer: chain.address('settler'), limit: 1 });
      await forks.fork(mark, () => chain.provider.send('eth_sendRawTransaction', [signed!.raw]));
      const { orphans } = await forks.reconcile();
      expect(orphans.custody.map(({ kind }) => kind)).to.deep.equal(['deposited', 'requested', 'settled']);
      expect((await readHalt(stack.db.knex))?.code).to.equal('unbacked_claim');
      expect(await custody.standing('maker3', 'WETH')).to.include({ balance: '0', claim: '9' });
      const lower = { token: custody.token('WETH'), amountUnits: 0n };
      const maker = chain.address('maker3');
      await appendOperatorRow(stack.db, { timeMs: 1, kind: 'lowerClaim', maker, note: '', lower });
      const unlowered = await forks.mark();
      await stack.settler.round();
      await chain.mine();
      await stack.watcher.scan();
      await appendOperatorRow(stack.db, { timeMs: 2, kind: 'resume', maker: null, note: '' });
      await stack.watcher.scan();
      expect(await readHalt(stack.db.knex)).to.equal(null);
      expect(await custody.standing('maker3', 'WETH')).to.include({ balance: '0', reserved: '0', claim: '0' });
      await expectVerified(1);

      // The chain loses the lowering, too: the ledger is not ready again for a claim that nothing pays for, although its halt was resumed.
      await stack.settler.round();
      const [lowering] = await listOutbox(stack.db.knex, { signer: chain.address('settler'), limit: 1 });
      await forks.fork(unlowered);
      await forks.reconcile();
      expect(await custody.standing('maker3', 'WETH')).to.include({ balance: '0', claim: '9' });
      expect((await readHalt(stack.db.knex))?.code).to.equal('unbacked_claim');
      // A resume that was judged before this halt does not end it unseen.
      const upToHaltNo = (await lastHaltNo(stack.db.knex)) - 1;
      const unseen = { timeMs: 3, kind: 'resume', maker: null, note: '' } as const;
      await appendOperatorRow(stack.db, unseen, { upToHaltNo });
      expect((await readHalt(stack.db.knex))?.code).to.equal('unbacked_claim');
      await chain.provider.send('eth_sendRawTransaction', [lowering!.raw]);
      await chain.mine();
      await stack.watcher.scan();
      await appendOperatorRow(stack.db, { timeMs: 3, kind: 'resume', maker: null, note: '' });
      await stack.watcher.scan();
      expect(await readHalt(stack.db.knex)).to.equal(null);
      expect(await custody.standing('maker3', 'WETH')).to.include({ balance: '0', reserved: '0', claim: '0' });
      await expectVerified(2);
    });

    it('a fee: the taker has less again, and gets it with the fill that is mined instead', async () => {
      const { curveBook, entrypoint } = chain.manifest.contracts;
      const taker = chain.address('taker1');
      const owner = chain.wallet('owner');
      await custody.mined(() => Entrypoint__factory.connect(entrypoint, owner).setTakerFee(taker, FEE_PPM, GAS));
      const [market] = stack.markets;
      await custody.mined(() => CurveBook__factory.connect(curveBook, owner).setTakerFees(market!.id, true, GAS));
      await stack.order(chain.address('maker1'), [{ side: 'ask', priceTicks: 300_000n, sizeLots: 100_000n }]);
      await stack.poster.round();
      await custody.mined();
      const buy =
        (units: bigint): Send =>
        () =>
          chain
            .entrypointAs('taker1')
            .swapExactOutput(custody.token('USDC'), custody.token('WETH'), units, MaxUint256, taker, MaxUint256, {
              gasLimit: 1_000_000n,
            });
      const accrued = async (): Promise<bigint[]> =>
        (await readTakerFees(stack.db.knex)).map(({ accruedUnits, balanceUnits }) => {
          expect(balanceUnits, 'nothing else is in the row').to.equal(accruedUnits);
          return accruedUnits;
        });
      const [first, second, instead] = [weth('0.99'), weth('1.98'), weth('2.97')];
      await custody.mined(buy(first));
      expect(await accrued()).to.deep.equal([feeOn(first)]);
      const mark = await forks.mark();
      await custody.mined(buy(second));
      expect(await accrued()).to.deep.equal([feeOn(first) + feeOn(second)]);

      await forks.fork(mark);
      const { orphans, balances } = await forks.reconcile();
      expect(orphans.fills.map(({ fillSeq, taker: who }) => [fillSeq, who])).to.deep.equal([[2, taker]]);
      const lost = balances.find(({ account }) => account === taker);
      expect(lost?.deltaUnits).to.equal(-feeOn(second));
      expect(await accrued()).to.deep.equal([feeOn(first)]);
      expect((await fillSeqs(stack.db.knex)).get(0)).to.equal(1);
      await expectVerified(1);

      await custody.mined(buy(instead));
      expect(await accrued()).to.deep.equal([feeOn(first) + feeOn(instead)]);
      expect((await fillSeqs(stack.db.knex)).get(0)).to.equal(2);
      await expectVerified(1);

      const again = await forks.mark();
      await custody.mined(buy(second));
      await forks.fork(again, buy(first));
      await forks.reconcile();
      expect(await accrued(), 'what was mined instead is booked once').to.deep.equal([
        feeOn(first) + feeOn(instead) + feeOn(first),
      ]);
      await expectVerified(2);
    });
  }, forEachDatabase);
});

/** Of an exact output: the fee on the smallest gross amount that leaves so much of it. */
function feeOn(netUnits: bigint): bigint {
  const fee = (grossUnits: bigint): bigint => (grossUnits * FEE_PPM) / 1_000_000n;
  let gross = (netUnits * 1_000_000n) / (1_000_000n - FEE_PPM);
  while (gross - fee(gross) < netUnits) gross += 1n;
  while (gross - 1n - fee(gross - 1n) >= netUnits) gross -= 1n;
  return fee(gross);
}
