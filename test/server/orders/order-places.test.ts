import { expect } from 'chai';
import { createOrderIndex, MAX_REDUCTIONS } from '../../../server/orders/order-places.js';

const SEGMENT = 4_096;
const UNKNOWN = { opened: null, closed: null, reduced: [] };

describe('Places of orders', () => {
  it('forget the oldest orders first, and never for the late close of one that was forgotten', () => {
    const index = createOrderIndex(2 * SEGMENT);
    for (let segment = 0; segment < 3; segment += 1) index.opened(segment * SEGMENT + 1, segment + 1);
    expect(index.places(1)).to.deep.equal(UNKNOWN);
    index.closed(1, 4);
    index.reduced(1, 5);
    expect(index.places(1)).to.deep.equal(UNKNOWN);
    expect(index.places(SEGMENT + 1)).to.deep.equal({ opened: 2, closed: null, reduced: [] });
    expect(index.places(2 * SEGMENT + 1)).to.deep.equal({ opened: 3, closed: null, reduced: [] });
  });

  it('has orders that were opened before it, while there is room', () => {
    const index = createOrderIndex(2 * SEGMENT);
    index.opened(3 * SEGMENT, 10);
    index.closed(2 * SEGMENT, 11);
    expect(index.places(2 * SEGMENT)).to.deep.equal({ opened: null, closed: 11, reduced: [] });
    // The oldest goes first, whenever it came.
    index.opened(4 * SEGMENT, 12);
    expect(index.places(2 * SEGMENT)).to.deep.equal(UNKNOWN);
    expect(index.places(3 * SEGMENT).opened).to.equal(10);
  });

  it('keeps the rows that made an order smaller up to a bound, and says when it has not all of them', () => {
    const index = createOrderIndex();
    index.opened(1, 1);
    for (let row = 0; row < MAX_REDUCTIONS; row += 1) index.reduced(1, 2 + row);
    expect(index.places(1).reduced).to.have.length(MAX_REDUCTIONS);
    index.reduced(1, 2 + MAX_REDUCTIONS);
    index.closed(1, 3 + MAX_REDUCTIONS);
    expect(index.places(1)).to.deep.equal(UNKNOWN);
  });

  it('forget the oldest orders, too, when too many rows made orders smaller', () => {
    const index = createOrderIndex(4 * SEGMENT, 10);
    for (let segment = 0; segment < 3; segment += 1)
      for (let row = 0; row < 5; row += 1) index.reduced(segment * SEGMENT, 1 + segment * 5 + row);
    expect(index.places(0)).to.deep.equal(UNKNOWN);
    expect(index.places(SEGMENT).reduced).to.deep.equal([6, 7, 8, 9, 10]);
    expect(index.places(2 * SEGMENT).reduced).to.have.length(5);
  });
});
