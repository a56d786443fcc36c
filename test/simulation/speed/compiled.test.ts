import { expect } from 'chai';
import knexModule from 'knex';
import { SqliteClient } from '../../../ledger/db/dialects.js';
import { compiled, type Compiled, type Shaped } from './compiled.js';

const knex = knexModule.default({
  client: SqliteClient as unknown as typeof knexModule.Client,
  connection: { filename: ':memory:' },
  useNullAsDefault: true,
});

/** Each a query whose values depend on `i`, of whatever shape. */
const QUERIES: ((i: number) => object)[] = [
  (i) => knex('one').where({ a: i, b: `${i}` }),
  (i) => knex('one').where('a', '>', i).first(),
  (i) => knex('one').where('a', '>=', i).first(),
  (i) =>
    knex('one')
      .where('a', '>', i)
      .andWhere('b', '<', i)
      .orderBy('a', 'desc')
      .limit(i + 1),
  (i) => knex('one').where('a', '>', i).orWhere('b', '<', i).orderBy('a'),
  (i) =>
    knex('one')
      .whereIn('a', [i, i + 1])
      .select('a', 'b'),
  (i) =>
    knex('one')
      .whereIn('a', [i, i + 1, i + 2])
      .select('a', 'b'),
  (i) => knex('one').whereNotIn('a', [i]).select('a'),
  (i) => knex('one').whereIn('a', []).where('b', i),
  (i) => knex('one').whereBetween('a', [i, 9]).whereNull('b').select('a as c'),
  (i) => knex('one').whereNot('a', i).whereNotNull('b'),
  (i) => knex('one').where({ a: i }).max('b as found').first(),
  (i) => knex('one').where({ a: i }).countDistinct('b as found'),
  (i) =>
    knex('one')
      .where('a', i)
      .orderBy([{ column: 'a' }, { column: 'b', order: 'desc' }]),
  (i) =>
    knex('one')
      .where('a', i)
      .offset(i + 1)
      .limit(3),
  (i) => knex('one').distinct('a').where('a', i),
  (i) => knex('one').where('a', i).pluck('b'),
  (i) =>
    knex('one')
      .where((group) => void group.where('a', i).orWhere('b', i))
      .where('c', i),
  (i) => knex('one').whereRaw('a = ?', [i]).where('b', i),
  (i) => knex('one as x').join('two as y', 'x.a', 'y.a').where('x.b', i),
  (i) => knex('one').where('a', i).groupBy('b').having('b', '>', i),
  (i) => knex('one').where('a', knex.raw('? + 1', [i])),
  (i) => knex('one').where('a', '=', i % 2 === 0 ? null : (i as never)),
  (i) => knex('one').insert({ a: i, b: 2 }),
  (i) => knex('one').where('a', i).update({ b: i }),
  (i) => knex('one').where('a', i).delete(),
  (i) => knex.raw('select ? as a, ? as b', [i, `${i}`]),
  (i) => knex.raw('select ?? from one where a = ?', ['b', i]),
  (i) => knex.raw('select :a as a', { a: i }),
  () => knex.raw('select 1'),
  (i) => knex.raw('select ?', i),
];

describe('statements compiled once', () => {
  it('are what the builder itself compiles, with its own values', () => {
    let times = 0;
    for (let i = 0; i < 4; i += 1)
      for (const query of QUERIES) {
        const asked = query(i) as Shaped & { toSQL(): Compiled };
        const { sql, method, bindings } = (query(i) as typeof asked).toSQL();
        const once = compiled(asked, () => {
          times += 1;
          return asked.toSQL();
        });
        expect([once.sql, once.method, once.bindings]).to.deep.equal([sql, method, bindings]);
      }
    expect(times).to.be.below(QUERIES.length * 3);
  });

  it('refuse what the builder refuses', () => {
    const wrong = [
      () => knex('one').where('a', undefined as never),
      () => knex('one').where({ a: 1, b: undefined as never }),
      () => knex.raw('select ?', [undefined as never]),
      () => knex.raw('select ?, ?', [1]),
    ];
    for (const query of wrong) {
      const asked = query() as unknown as Shaped & { toSQL(): Compiled };
      expect(() => compiled(asked, () => asked.toSQL())).to.throw(Error);
    }
  });
});
