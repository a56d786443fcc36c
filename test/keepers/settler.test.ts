/** When withdrawals settle, and what can't keep them from it. The tables of states are walked through in custody-lifecycle.test.ts. */
import { expect } from 'chai';
import { MaxUint256, Wallet, parseEther, type ContractTransactionResponse } from 'ethers';
import type { Address } from '../../core/types.js';
import type { Outbox } from '../../keepers/chain/outbox.js';
import { createRpc, type Rpc } from '../../keepers/chain/rpc.js';
import { verifyLedger } from '../../keepers/verify/verify.js';
import { readHalt } from '../../ledger/chain/halts.js';
import { appendOperatorRow } from '../../ledger/operator/operator-log.js';
import { openSettlements } from '../../ledger/settlements/settlement-log.js';
import { CurveBook__factory, Custodian__factory } from '../../typechain-types/index.js';
import { custodyOf, GAS, type Custody, type Send } from '../support/custody.js';
import { startKeepers, type KeeperStack, type ManualChain } from '../support/keeper-stack.js';
import { forEachDatabase } from '../support/db.js';
import { forEachKeepers } from '../support/manual-suite.js';
import { verifyDeps } from '../support/verify.js';

describe('settler', function () {
  this.timeout(60_000);

  forEachKeepers((begin) => {
    let chain: ManualChain;
    let stack: KeeperStack;
    let custody: Custody;

    beforeEach(async () => {
      ({ chain, stack, custody } = await begin());
      await custody.mined();
    });

    afterEach(() => stack.stop());

    const request =
      (role: string, amount: string): Send =>
      () =>
        custody.as(role).requestWithdraw(custody.token('WETH'), custody.units('WETH', amount), GAS);

    /** Requests that together pay for a settlement of their own. */
    const requests = (role: string, ...amounts: [string, string, string]): Send[] =>
      amounts.map((amount) => request(role, amount));

    async function quote(lots: bigint): Promise<void> {
      await stack.order(chain.address('maker1'), [{ side: 'ask', priceTicks: 300_000n, sizeLots: lots }]);
      await stack.poster.round();
      await custody.mined();
    }

    it('settles at once beside a live curve that leaves enough, however quiet the market is', async () => {
      await quote(200_000n);
      await custody.mined(request('maker1', '80'));
      const round = await stack.settler.round();
      expect(round.settlements.map(({ amountUnits }) => amountUnits)).to.deep.equal([custody.units('WETH', '80')]);
      expect(round.checkpointSeq, 'with a checkpoint of its own').to.equal(1);
      expect(await custody.mined()).to.deep.equal(['WithdrawSettled maker1 WETH 80']);
      await custody.expectSound();
    });

    it('goes on after the owner gave numbers of curves back, whatever was prepared under them', async () => {
      for (const lots of [200_000n, 190_000n]) await quote(lots);
      const book = CurveBook__factory.connect(chain.manifest.contracts['curveBook'], chain.wallet('owner'));
      const { id } = stack.markets[0]!;
      await custody.mined(() => book.setSeq(id, 1, GAS));
      await custody.mined(request('maker1', '30'));
      expect((await stack.settler.round()).settlements, 'no curve was prepared since').to.have.length(1);
      await custody.mined();
      await quote(180_000n);
      await custody.mined(request('maker2', '1'));
      expect((await stack.settler.round()).settlements).to.have.length(1);
      await custody.mined();
      await custody.expectSound();
    });

    it('says not_settler while its key is not allowed, sends nothing, and goes on when it is', async () => {
      const allow =
        (allowed: boolean): Send =>
        () =>
          custody.as('owner').setPoster(chain.address('settler'), allowed, GAS);
      await custody.mined(allow(false));
      await custody.mined(request('maker1', '80'));
      const sent = await chain.provider.getTransactionCount(chain.address('settler'));
      const { settlements, checkpointSeq } = await stack.settler.round();
      expect([settlements, checkpointSeq]).to.deep.equal([[], null]);
      expect(stack.settler.status()).to.deep.equal({ blockedBy: 'not_settler', archive: null });
      await custody.mined(allow(true));
      expect(await chain.provider.getTransactionCount(chain.address('settler'))).to.equal(sent);
      expect((await stack.settler.round()).settlements).to.have.length(1);
      expect(stack.settler.status()).to.deep.equal({ blockedBy: null, archive: null });
      expect(await custody.mined()).to.deep.equal(['WithdrawSettled maker1 WETH 80']);
    });

    it('settles requests of dust together, and loses none, not even the last', async () => {
      let aheadMs = 0;
      await stack.stop();
      const pace = { intervalMs: 300_000, smallIntervalMs: 3_600_000, smallBps: 100 };
      const start = () =>
        startKeepers(stack.db, chain, { settler: { pace, nowMs: () => Date.now() + aheadMs, emptyPerHour: 0 } });
      stack = await start();
      custody = custodyOf(chain, stack);
      let gasOfMaker = 0n;
      let gasOfSettler = 0n;
      const settled: bigint[] = [];
      /** A request, and whatever the settler makes of it. */
      const requested = async (units: bigint): Promise<void> => {
        const sent: ContractTransactionResponse[] = [];
        await custody.mined(async () => {
          sent.push(await custody.as('maker1').requestWithdraw(custody.token('WETH'), units, GAS));
          return sent[0]!;
        });
        gasOfMaker += (await sent[0]!.wait())!.gasUsed;
        await settle();
      };
      const settle = async (): Promise<void> => {
        const { settlements, txHash } = await stack.settler.round();
        settled.push(...settlements.map(({ amountUnits }) => amountUnits));
        if (txHash === null) return;
        await custody.mined();
        gasOfSettler += (await chain.provider.getTransactionReceipt(txHash))!.gasUsed;
        await stack.settler.round();
      };
      for (let i = 0; i < 12; i++) await requested(1n);
      expect(settled).to.deep.equal([1n]);
      expect(gasOfSettler < gasOfMaker / 3n, `${gasOfSettler} against ${gasOfMaker}`).to.equal(true);
      // The pace is a matter of the settlement log, not of the process.
      await stack.stop();
      stack = await start();
      custody = custodyOf(chain, stack);
      await settle();
      expect(settled).to.have.length(1);
      aheadMs += 300_000;
      await settle();
      expect(settled, 'small ones go on waiting').to.have.length(1);
      await requested(custody.units('WETH', '40'));
      expect(settled.at(-1), 'with the next larger one').to.equal(12n + custody.units('WETH', '40'));
      const rest = custody.units('WETH', '60') - 13n;
      for (const units of [rest - 2n, 1n, 1n]) await requested(units);
      expect(settled).to.have.length(2);
      aheadMs += 300_000;
      await settle();
      expect(settled, 'all but a unit').to.have.length(3);
      for (let i = 0; i < 3; i++) await requested(1n);
      aheadMs += 300_000;
      await settle();
      expect(settled.at(-1), 'the last unit is all that is left').to.equal(custody.units('WETH', '100'));
      await custody.expectSound();
    });

    it('publishes a checkpoint each minute, settlements or not, and a fresh one with each settlement', async () => {
      let nowMs = Date.now();
      await stack.stop();
      stack = await startKeepers(stack.db, chain, { settler: { nowMs: () => nowMs } });
      custody = custodyOf(chain, stack);
      await custody.mined();
      const seqs: (number | null)[] = [];
      const round = async (passedMs: number): Promise<void> => {
        nowMs += passedMs;
        seqs.push((await stack.settler.round()).checkpointSeq);
      };
      for (const passedMs of [0, 1, 59_998, 1, 60_000, 59_999]) await round(passedMs);
      expect(seqs).to.deep.equal([1, null, null, 2, 3, null]);
      await custody.mined(request('maker1', '5'));
      await round(0);
      expect(seqs.at(-1), 'a millisecond before it is due').to.equal(4);
    });

    it('waits while an older curve could take what is requested, and settles once a newer one has landed', async () => {
      await quote(900_000n);
      await custody.mined(request('maker1', '50'));
      expect((await stack.settler.round()).settlements).to.deep.equal([]);
      await stack.poster.round();
      expect((await stack.settler.round()).settlements, 'prepared is not landed').to.deep.equal([]);
      await custody.mined();
      expect((await stack.settler.round()).settlements).to.have.length(1);
      expect(await custody.mined()).to.deep.equal(['WithdrawSettled maker1 WETH 50']);
      const quoted = await chain
        .entrypointAs('taker1')
        .quoteExactOutput(custody.token('USDC'), custody.token('WETH'), custody.units('WETH', '50.0001'));
      expect(quoted, 'what is claimed is no longer offered').to.equal(0n);
      await custody.expectSound();
    });

    it('serves a funded request first, whatever strangers ask for, and limits what they cost', async () => {
      await stack.stop();
      stack = await startKeepers(stack.db, chain, { settler: { batchMax: 6, emptyPerHour: 8 } });
      custody = custodyOf(chain, stack);
      const strangers = Array.from({ length: 12 }, () => Wallet.createRandom(chain.provider));
      for (const { address } of strangers) {
        await chain.provider.send('hardhat_setBalance', [address, `0x${parseEther('1').toString(16)}`]);
      }
      const spam = strangers.map(
        (stranger): Send =>
          () =>
            Custodian__factory.connect(chain.manifest.contracts['custodian'], stranger).requestWithdraw(
              custody.token('WETH'),
              MaxUint256,
              GAS,
            ),
      );
      await custody.mined(...spam, ...spam, request('maker2', '1'));
      const counts: number[] = [];
      for (let i = 0; i < 4; i++) {
        const { settlements } = await stack.settler.round();
        counts.push(settlements.length);
        if (i === 0) expect(settlements[0]?.maker).to.equal(chain.address('maker2'));
        await custody.mined();
      }
      expect(counts, 'eight empty ones per hour').to.deep.equal([6, 3, 0, 0]);
      await custody.expectSound();
    });

    /** A settler that dies in the middle of a round; another one takes over. */
    async function crash(outbox: Pick<Outbox, 'send'>): Promise<void> {
      await stack.stop();
      const real = await startKeepers(stack.db, chain, {
        settler: {
          outbox: {
            ...outbox,
            signer: chain.address('settler'),
            resume: async () => undefined,
            status: () => ({ unminedCount: 0 }),
          } as unknown as Outbox,
        },
      });
      await real.watcher.scan();
      await real.settler.round().catch(() => undefined);
      await real.stop();
      stack = await startKeepers(stack.db, chain);
      custody = custodyOf(chain, stack);
      await custody.mined();
    }

    it('goes on after a crash before signing, after storing, and after sending, and never settles twice', async () => {
      await custody.mined(request('maker1', '5'));
      await crash({ send: () => Promise.reject(new Error('killed before signing')) });
      expect(await openSettlements(stack.db.knex)).to.have.length(1);
      const { settlements } = await stack.settler.round();
      expect(settlements, 'the unsigned one is given up, a new one is sent').to.have.length(1);
      const ends = await stack.db.knex('settlement_outcomes').select('outcome');
      expect(ends).to.deep.equal([{ outcome: 'abandoned' }]);

      // The node forgets what it was sent; another process finds the stored bytes and sends the very same.
      await chain.provider.send('hardhat_dropTransaction', [await lastHash()]);
      await stack.stop();
      stack = await startKeepers(stack.db, chain);
      custody = custodyOf(chain, stack);
      await stack.watcher.scan();
      expect((await stack.settler.round()).settlements, 'it is in flight').to.deep.equal([]);
      expect(await custody.mined()).to.deep.equal(['WithdrawSettled maker1 WETH 5']);
      for (let i = 0; i < 2; i++) expect((await stack.settler.round()).settlements).to.deep.equal([]);
      expect(await stack.db.knex('outbox').count({ n: '*' }).first()).to.deep.equal({ n: 1 });
      await custody.expectSound();
    });

    const lastHash = async (): Promise<string> =>
      (await stack.db.knex<{ hash: string; nonce: number }>('outbox').orderBy('nonce', 'desc').first('hash'))!.hash;

    it('goes on with another key once the custodian refuses the one that signed, or what it signed has landed', async () => {
      const setPoster = (key: string, allowed: boolean): Send => {
        return () => custody.as('owner').setPoster(key, allowed, GAS);
      };
      const change = async (): Promise<void> => {
        await stack.stop();
        stack = await startKeepers(stack.db, chain, { settlerRole: 'maker2' });
        custody = custodyOf(chain, stack);
        await stack.watcher.scan();
      };
      await custody.mined(request('maker1', '5'));
      await stack.settler.round();
      await custody.mined();
      await custody.mined(...requests('maker1', '0.5', '0.3', '0.2'));
      const { settlements } = await stack.settler.round();
      expect(settlements).to.have.length(1);
      const lost = await lastHash();
      await chain.provider.send('hardhat_dropTransaction', [lost]);
      await custody.mined(setPoster(chain.address('maker2'), true));
      await change();
      expect((await stack.settler.round()).settlements, 'it may still land').to.deep.equal([]);
      expect(await openSettlements(stack.db.knex)).to.have.length(1);

      await custody.mined(setPoster(chain.address('settler'), false));
      await change();
      expect((await stack.settler.round()).settlements, 'it can not land any more').to.have.length(1);
      expect(await custody.mined()).to.deep.equal(['WithdrawSettled maker1 WETH 6']);
      expect((await stack.settler.round()).settlements).to.deep.equal([]);
      expect(await openSettlements(stack.db.knex)).to.deep.equal([]);
      await custody.expectSound();
    });

    it('computes a settlement anew when the claim changed before it was mined', async () => {
      await custody.mined(() => custody.as('owner').setWithdrawDelay(0n, GAS));
      await custody.mined(request('maker1', '5'));
      await stack.settler.round();
      await custody.mined();
      await custody.mined(...requests('maker1', '1', '0.5', '0.5'));
      expect((await stack.settler.round()).settlements[0]?.amountUnits).to.equal(custody.units('WETH', '7'));
      // The claim of 5 is executed in front of its settlement to 7.
      const events = await custody.mined(() =>
        custody.as('maker1').executeWithdraw(custody.token('WETH'), { ...GAS, gasPrice: parseEther('0.0000001') }),
      );
      expect(events).to.deep.equal(['WithdrawExecuted maker1 WETH 5', 'SettlementSkipped maker1 WETH 7']);
      await stack.settler.round();
      expect(await custody.mined()).to.deep.equal(['WithdrawSettled maker1 WETH 2']);
      expect(await custody.standing('maker1', 'WETH')).to.include({ balance: '95', reserved: '2', claim: '2' });
      await custody.expectSound();
    });

    it('stops while the ledger is halted, but takes a claim back when the operator says so', async () => {
      await custody.mined(request('maker1', '5'));
      await stack.settler.round();
      await custody.mined();
      await stack.settler.round();
      await appendOperatorRow(stack.db, { timeMs: 1, kind: 'halt', maker: null, note: 'looking' });
      await custody.mined(...requests('maker1', '0.5', '0.3', '0.2'));
      expect((await stack.settler.round()).settlements).to.deep.equal([]);
      const lower = { token: custody.token('WETH'), amountUnits: custody.units('WETH', '3') };
      const maker: Address = chain.address('maker1');
      await appendOperatorRow(stack.db, { timeMs: 2, kind: 'lowerClaim', maker, note: '', lower });
      await stack.settler.round();
      expect(await custody.mined()).to.deep.equal(['WithdrawSettled maker1 WETH 3']);
      expect((await custody.standing('maker1', 'WETH')).reserved, 'the later request still waits').to.equal('4');
      await stack.settler.round();
      await appendOperatorRow(stack.db, { timeMs: 3, kind: 'resume', maker: null, note: '' });
      await custody.mined();
      await stack.settler.round();
      expect(await custody.mined()).to.deep.equal(['WithdrawSettled maker1 WETH 4']);
      await custody.expectSound();
    });

    it('lowers a claim whatever else the operator has done before, be it a hundred approvals', async () => {
      await custody.mined(request('maker1', '5'));
      await stack.settler.round();
      await custody.mined();
      const approvals = Array.from({ length: 101 }, (_, i) => {
        const maker: Address = `0x${(i + 1).toString(16).padStart(40, '0')}`;
        return { operator_seq: i + 1, time_ms: 1, kind: 'approve' as const, maker, note: '' };
      });
      for (const row of approvals) await stack.db.knex('operator_log').insert(row);
      const lower = { token: custody.token('WETH'), amountUnits: custody.units('WETH', '3') };
      const maker: Address = chain.address('maker1');
      await appendOperatorRow(stack.db, { timeMs: 2, kind: 'lowerClaim', maker, note: '', lower });
      await stack.settler.round();
      expect(await custody.mined()).to.deep.equal(['WithdrawSettled maker1 WETH 3']);
      await custody.expectSound();
    });

    it('lowers a claim all the same after a crash between preparing and signing', async () => {
      await custody.mined(request('maker1', '5'));
      await stack.settler.round();
      await custody.mined();
      await stack.settler.round();
      const lower = { token: custody.token('WETH'), amountUnits: custody.units('WETH', '3') };
      const maker: Address = chain.address('maker1');
      await appendOperatorRow(stack.db, { timeMs: 1, kind: 'lowerClaim', maker, note: '', lower });
      await crash({ send: () => Promise.reject(new Error('killed before signing')) });
      expect((await openSettlements(stack.db.knex)).map((one) => one.preparedBy)).to.deep.equal(['operator']);
      await stack.settler.round();
      expect(await custody.mined()).to.deep.equal(['WithdrawSettled maker1 WETH 3']);
      for (let i = 0; i < 2; i++) expect((await stack.settler.round()).settlements).to.deep.equal([]);
      await custody.expectSound();
      await verifyLedger(verifyDeps(stack.db, chain));
      // As if there had been nothing to lower, which does not explain why the operator asked for it.
      const raised = { amount_units: custody.units('WETH', '5').toString() };
      await stack.db.knex('settlements').where({ settlement_no: 2 }).update(raised);
      const found: unknown = await verifyLedger(verifyDeps(stack.db, chain)).catch((error: unknown) => error);
      expect(String(found)).to.match(/what settlement 2 says/);
    });

    it('looks at a claim that is to be lowered as it was at the block that the row names', async () => {
      await custody.mined(() => custody.as('owner').setWithdrawDelay(0n, GAS));
      await custody.mined(request('maker1', '5'));
      await stack.settler.round();
      await custody.mined();
      await stack.settler.round();
      const lower = { token: custody.token('WETH'), amountUnits: custody.units('WETH', '3') };
      const maker: Address = chain.address('maker1');
      await appendOperatorRow(stack.db, { timeMs: 1, kind: 'lowerClaim', maker, note: '', lower });
      await stack.stop();
      // The claim is paid, and the ledger knows, while the settler asks its node how far its transactions are.
      let pay: (() => Promise<unknown>) | null = null;
      const connect = (url: string, timeoutMs?: number): Rpc => {
        const rpc = createRpc(url, timeoutMs);
        const call: Rpc['call'] = async (method, params) => {
          const answer = await rpc.call(method, params);
          const once = method === 'eth_getTransactionCount' ? pay : null;
          if (once !== null) pay = null;
          await once?.();
          return answer;
        };
        return { ...rpc, call };
      };
      stack = await startKeepers(stack.db, chain, { connect });
      custody = custodyOf(chain, stack);
      await custody.mined();
      const paid: string[] = [];
      pay = async () =>
        paid.push(...(await custody.mined(() => custody.as('maker1').executeWithdraw(custody.token('WETH'), GAS))));
      await stack.settler.round();
      expect(paid).to.deep.equal(['WithdrawExecuted maker1 WETH 5']);
      await custody.mined();
      await stack.settler.round();
      await verifyLedger(verifyDeps(stack.db, chain));
      await custody.expectSound();
    });

    it('halts on a settlement that no row explains', async () => {
      await custody.mined(() =>
        custody.as('settler').settleWithdraw(chain.address('maker1'), custody.token('WETH'), 1n, 0n, GAS),
      );
      expect((await readHalt(stack.db.knex))?.code).to.equal('unexplained_settlement');
      expect((await stack.settler.round()).checkpointSeq).to.equal(null);
    });
  }, forEachDatabase);
});
