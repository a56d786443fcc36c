/** Generations that the ledger log does not take. */
import { expect } from 'chai';
import type { GenerationWrite } from '../../../ledger/types.js';
import { forEachDatabase } from '../../support/db.js';
import { TAKER, blockOf, fillOf, generationOf, withFills } from '../../support/generations.js';
import { ETHER, MARKETS, bob, codeOf, dump, openLedger, opening, trading } from '../../support/ledger-log.js';
import { WETH, WETH_DAI, WETH_USDC } from '../../support/markets.js';

describe('ledger log', () => {
  forEachDatabase((_name, open) => {
    describe('refuses, with nothing written,', () => {
      const change = (
        write: GenerationWrite,
        alter: (fill: GenerationWrite['fills'][number]) => void,
      ): GenerationWrite => {
        const copy = structuredClone(write);
        alter(copy.fills[0]!);
        return copy;
      };
      const cases: [string, string, () => GenerationWrite][] = [
        ['a gap between generations', 'generation_gap', () => trading(3)],
        [
          'a gap between blocks',
          'blocks_broken',
          () => ({ ...trading(2), fromBlock: 103, toBlock: 103, blocks: [blockOf(103)] }),
        ],
        [
          'a block of another chain',
          'blocks_broken',
          () => ({ ...trading(2), blocks: [{ ...blockOf(102), parentHash: blockOf(7).hash }] }),
        ],
        ['a scan without its last block', 'blocks_broken', () => ({ ...trading(2), toBlock: 103 })],
        ['a market out of order', 'market_order', () => generationOf(2, { listed: [WETH_DAI] })],
        ['a fill of an unknown market', 'market_order', () => change(trading(2), (one) => (one.fill.market = 2))],
        ['a missing fill', 'fill_gap', () => trading(2, 2)],
        [
          'a repeated fill',
          'fill_gap',
          () => {
            const write = trading(2);
            return { ...write, fills: [write.fills[0]!, write.fills[0]!] };
          },
        ],
        ['base that does not add up', 'fill_base', () => change(trading(2), (one) => (one.fill.baseUnits += 1n))],
        ['quote that does not add up', 'fill_quote', () => change(trading(2), (one) => (one.fill.quoteUnits -= 1n))],
        [
          'a residual that is not explained',
          'fill_quote',
          () => change(trading(2), (one) => (one.decomposition.roundingUnits += 1n)),
        ],
        [
          'a gain with the wrong sign',
          'fill_quote',
          () => change(trading(2), (one) => (one.decomposition.operatorGainUnits *= -1n)),
        ],
        ['parts of other orders', 'fill_parts', () => change(trading(2), (one) => (one.orderFills[0]!.oid = 77))],
        [
          'a part too many',
          'fill_parts',
          () => change(trading(2), (one) => void one.orderFills.push({ ...one.orderFills.at(-1)! })),
        ],
        ['a missing part', 'fill_parts', () => change(trading(2), (one) => void one.orderFills.pop())],
        ['a fill without postings', 'fill_entries', () => ({ ...trading(2), entries: [] })],
        [
          'a balanced posting to the wrong maker',
          'fill_entries',
          () => {
            const write = trading(2);
            const entries = write.entries.map((entry) =>
              entry.account === bob ? { ...entry, account: TAKER } : entry,
            );
            return { ...write, entries };
          },
        ],
        [
          'a posting out of balance',
          'unbalanced_ref',
          () => {
            const write = trading(2);
            return { ...write, entries: [...write.entries, { ...write.entries[0]!, ref: 'other' }] };
          },
        ],
        [
          'a deposit booked before',
          'ref_exists',
          () => ({ ...opening(), ...generationOf(2), entries: opening().entries }),
        ],
        ['an event seen before', 'duplicate_row', () => generationOf(2, { custody: opening().custody })],
        [
          'a maker below zero',
          'negative_balance',
          () =>
            generationOf(
              2,
              withFills(MARKETS, [
                fillOf(2, WETH_USDC, 1, 'ask', [{ oid: 1, maker: bob, priceTicks: 1n, baseUnits: 50n * ETHER + 1n }]),
              ]),
            ),
        ],
        [
          'a reservation below zero',
          'negative_reservation',
          () => generationOf(2, { reservations: [{ account: bob, token: WETH.address, deltaUnits: -1n }] }),
        ],
      ];
      for (const [what, code, make] of cases) {
        it(what, async () => {
          const { db, commit } = await openLedger(open);
          await commit(opening());
          const before = await dump(db);
          expect(await codeOf(commit(make()))).to.equal(code);
          expect(await dump(db)).to.equal(before);
          expect(await commit(trading(2)), 'the log goes on').to.equal('committed');
        });
      }
    });
  });
});
