import { expect } from 'chai';
import { formatUnits } from '../../core/amounts.js';
import { bookSchema } from '../../server/read/book.js';
import { deploymentSchema } from '../../server/read/deployment.js';
import { healthSchema } from '../../server/read/health.js';
import { pairsSchema } from '../../server/read/pairs.js';
import { errorSchema } from '../../server/read/schemas.js';
import {
  auditBooks,
  balanceOf,
  changeByLegs,
  decompositionOf,
  expectReconciled,
  fillsNow,
  limitsAt,
  MAKERS,
  micros,
  PAIR,
  wei,
} from '../support/audit.js';
import type { Decomposition, FillJson, Limits, MakerRole } from '../support/audit.js';
import {
  accountOf,
  contractsOf,
  exchangeClient,
  forEachDatabaseUrl,
  read,
  startStack,
  until,
} from '../support/stack.js';
import type { Stack, TestDatabase } from '../support/stack.js';
import { FIRST_ASSET, place, swap, untilQuoted } from '../support/trading.js';

const DEPOSITS = { WETH: wei('100'), USDC: micros('300000') };

type Level = readonly [price: string, size: string];

/** Both makers quote at the best prices, and each has levels of its own behind them. */
const LADDERS: Record<MakerRole, { asks: Level[]; bids: Level[] }> = {
  maker1: {
    asks: [
      ['2500', '0.5'],
      ['2501', '1'],
    ],
    bids: [
      ['2499', '0.5'],
      ['2498', '1'],
    ],
  },
  maker2: {
    asks: [
      ['2500', '0.3'],
      ['2500.5', '0.7'],
      ['2502', '2'],
    ],
    bids: [
      ['2499', '0.3'],
      ['2498.5', '0.7'],
      ['2497', '2'],
    ],
  },
};

forEachDatabaseUrl((name, open) => {
  describe(`The first fill on ${name}`, function () {
    this.timeout(120_000);
    let database: TestDatabase;
    let stack: Stack;

    before(async () => {
      database = await open();
      stack = await startStack({ databaseUrl: database.url });
      for (const maker of MAKERS) await stack.operate('maker', 'approve', accountOf(stack, maker).address);
      await until('deposits to be credited', async () =>
        (await Promise.all(MAKERS.map(limitsOf))).every(
          (limits) =>
            limits.ledger.ready &&
            balanceOf(stack, limits, 'WETH') === DEPOSITS.WETH &&
            balanceOf(stack, limits, 'USDC') === DEPOSITS.USDC,
        ),
      );
    });

    after(async () => {
      await stack?.close();
      await database?.drop();
    });

    const limitsOf = (role: string): Promise<Limits> => limitsAt(stack, accountOf(stack, role).address);
    const bookNow = async () => bookSchema.parse((await read(stack, `/v0/book/${PAIR}`)).body);

    interface Attributed {
      row: FillJson;
      decomposition: Decomposition;
    }

    const balances = async (role: MakerRole): Promise<{ WETH: bigint; USDC: bigint }> => {
      const limits = await limitsOf(role);
      return { WETH: balanceOf(stack, limits, 'WETH'), USDC: balanceOf(stack, limits, 'USDC') };
    };

    /** One swap of taker1, once it is attributed: checked against the chain's event, the legs and both makers' balances. */
    async function trade(tokenIn: string, tokenOut: string, amountIn: bigint): Promise<Attributed> {
      const earlier = { maker1: await balances('maker1'), maker2: await balances('maker2') };
      const fillSeq = await fillSeqOf(await swap(stack, 'taker1', tokenIn, tokenOut, amountIn));
      await until(`fill ${fillSeq}`, async () => (await decompositionOf(stack, fillSeq)).status === 'final');
      const decomposition = await decompositionOf(stack, fillSeq);
      const row = (await fillsNow(stack)).find((one) => String(one.fill_seq) === fillSeq);
      if (row === undefined) throw new Error(`fill ${fillSeq} is not listed`);
      expectReconciled(row, decomposition);
      for (const role of MAKERS) {
        const later = await balances(role);
        const change = { WETH: later.WETH - earlier[role].WETH, USDC: later.USDC - earlier[role].USDC };
        expect(change, role).to.deep.equal(changeByLegs(decomposition, accountOf(stack, role).address));
      }
      return { row, decomposition };
    }

    async function fillSeqOf(txHash: string): Promise<string> {
      const { entrypoint } = contractsOf(stack, 'taker1');
      const receipt = await stack.provider.getTransactionReceipt(txHash);
      const event = receipt?.logs.map((log) => entrypoint.interface.parseLog(log)).find((log) => log?.name === 'Swap');
      return String(event?.args.fillSeq);
    }

    /** [maker, price, size] of each leg, in the order of the answer. */
    const legTable = ({ legs }: Decomposition) =>
      legs.map(({ maker, price, size }) => [
        MAKERS.find((role) => accountOf(stack, role).address === maker),
        price,
        size,
      ]);

    it('takes an order, shows it, and lets it go', async () => {
      const { exchange, info, user } = exchangeClient(stack, 'maker1');
      const [oid = 0] = await place(stack, 'maker1', [{ isBuy: true, price: '2000.25', size: '1.5' }]);
      expect((await bookNow()).levels).to.deep.equal({ bids: [[200_025, 15_000]], asks: [] });
      const open = await info.openOrders({ user });
      expect(open.map((order) => [order.oid, order.side, order.coin])).to.deep.equal([[oid, 'B', '@0']]);
      const canceled = await exchange.cancel({ cancels: [{ a: FIRST_ASSET, o: oid }] });
      expect(canceled.response.data.statuses).to.deep.equal(['success']);
      expect((await bookNow()).levels).to.deep.equal({ bids: [], asks: [] });
      expect(await info.openOrders({ user })).to.deep.equal([]);
    });

    it('merges the ladders of two makers', async () => {
      for (const role of MAKERS) {
        const quote = (isBuy: boolean) => (level: Level) => ({ isBuy, price: level[0], size: level[1] });
        await place(stack, role, [...LADDERS[role].asks.map(quote(false)), ...LADDERS[role].bids.map(quote(true))]);
      }
      const book = await bookNow();
      expect(book.levels).to.deep.equal({
        asks: [
          [250_000, 8_000],
          [250_050, 7_000],
          [250_100, 10_000],
          [250_200, 20_000],
        ],
        bids: [
          [249_900, 8_000],
          [249_850, 7_000],
          [249_800, 10_000],
          [249_700, 20_000],
        ],
      });
      expect(book.feed_live, 'nobody has a socket').to.equal(false);
      expect(book.age_ms).to.be.lessThan(60_000);
    });

    it('shares the best level in proportion to what the makers quote there', async () => {
      // Both makers' depth must be on the curve before a small trade is shared between them.
      await untilQuoted(stack, 'WETH', 'USDC', wei('4.4'));
      const { decomposition } = await trade('WETH', 'USDC', wei('0.1'));
      expect(legTable(decomposition)).to.have.deep.members([
        ['maker1', '2499', '0.0625'],
        ['maker2', '2499', '0.0375'],
      ]);
    });

    it('pays every maker its own prices when a taker buys through several levels', async () => {
      await untilQuoted(stack, 'USDC', 'WETH', micros('11000'));
      const { row, decomposition } = await trade('USDC', 'WETH', micros('8753.123457'));
      const rest = wei(row.amount_out) - wei('2.5');
      expect(rest > wei('0.9') && rest < wei('1.1'), 'reaches into the last level').to.equal(true);
      expect(legTable(decomposition)).to.have.deep.members([
        ['maker1', '2500', '0.5'],
        ['maker2', '2500', '0.3'],
        ['maker2', '2500.5', '0.7'],
        ['maker1', '2501', '1'],
        ['maker2', '2502', formatUnits(rest, 18)],
      ]);
    });

    it('pays every maker its own prices when the taker sells back', async () => {
      const { decomposition } = await trade('WETH', 'USDC', wei('2.333333333333333333'));
      expect(legTable(decomposition)).to.have.deep.members([
        ['maker1', '2499', '0.4375'],
        ['maker2', '2499', '0.2625'],
        ['maker2', '2498.5', '0.7'],
        ['maker1', '2498', '0.933333333333333333'],
      ]);
    });

    it('keeps books that anyone can check against the chain', async () => {
      expect(await auditBooks(stack, DEPOSITS)).to.equal(3);
      expect((await limitsOf('maker1')).ledger.fill_seqs).to.deep.equal({ [PAIR]: 3 });
    });

    it('answers every read endpoint in its shape', async () => {
      const health = healthSchema.parse((await read(stack, '/health')).body);
      expect([health.chain_id, health.deployment_id]).to.deep.equal([8453, stack.manifest.deploymentId]);
      expect(pairsSchema.parse((await read(stack, '/v0/pairs')).body)).to.deep.equal([
        {
          pair: PAIR,
          base_token: 'WETH',
          quote_token: 'USDC',
          tick_size: '0.01',
          lot_size: '0.0001',
          min_order_value: '10',
          delisted: false,
          quarantine: null,
        },
      ]);
      const deployment = deploymentSchema.parse((await read(stack, '/v0/deployment')).body);
      const { contracts } = stack.manifest;
      for (const name of ['custodian', 'curveBook', 'entrypoint', 'orderSettler', 'lens', 'adapter', 'permit2']) {
        expect(deployment.contracts[name]?.address, name).to.equal(contracts[name]?.toLowerCase());
      }
      expect([deployment.sandbox, deployment.rpc_url]).to.deep.equal([true, stack.manifest.rpcUrl]);
      const fills = await fillsNow(stack);
      expect(fills.map((fill) => fill.fill_seq)).to.deep.equal([1, 2, 3]);
      const unknown = await decompositionOf(stack, 999);
      const { body: withoutPair } = await read(stack, '/v0/fills/999/decomposition');
      expect(withoutPair).to.deep.equal(unknown);
      expect([unknown.status, unknown.legs, unknown.residual]).to.deep.equal(['pending', [], '0']);
      let limits = await limitsOf('maker1');
      // A machine that has too much to do may just have kept it from scanning.
      await until('the ledger to be ready', async () => (limits = await limitsOf('maker1')).ledger.ready);
      const { ledger, watcher } = limits;
      expect([ledger.ready, ledger.reason, ledger.deployment_id]).to.deep.equal([
        true,
        null,
        stack.manifest.deploymentId,
      ]);
      expect(ledger.capital_flow_start_block).to.equal(stack.manifest.deploymentBlock);
      expect(ledger.balances.map(({ token, net_capital: capital }) => [token, capital])).to.deep.equal([
        ['WETH', '100'],
        ['USDC', '300000'],
      ]);
      expect(ledger.next_block).to.be.greaterThan(stack.manifest.deploymentBlock);
      expect(watcher.head).to.be.a('number');
      const stranger = await limitsOf('maker3');
      expect(stranger.ledger.balances.map((row) => row.balance)).to.deep.equal(['0', '0']);
    });

    it('refuses what it can not answer with the error envelope', async () => {
      const refused: [string, number, string][] = [
        ['/v0/book/WETH-NONE', 404, 'NOT_FOUND'],
        ['/v0/fills?pair=WETH-NONE', 404, 'NOT_FOUND'],
        ['/v0/makers/0x12/limits', 400, 'BAD_REQUEST'],
        ['/v0/fills/first/decomposition', 400, 'BAD_REQUEST'],
        ['/v0/fills/-1/decomposition', 400, 'BAD_REQUEST'],
        ['/v0/fills?pair=WETH-USDC&pair=WETH-USDC', 400, 'BAD_REQUEST'],
        ['/v0/nothing', 404, 'NOT_FOUND'],
      ];
      for (const [path, status, code] of refused) {
        const answer = await read(stack, path);
        expect([answer.status, errorSchema.parse(answer.body).error.code], path).to.deep.equal([status, code]);
      }
    });

    it('prints one reconciled line per fill', () => {
      const lines = stack.serverLines().filter((line) => line.startsWith('fill '));
      expect(lines).to.have.length(3);
      for (const line of lines) expect(line).to.match(/\(reconciles\)$/);
    });
  });
});
