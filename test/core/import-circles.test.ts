import { expect } from 'chai';
import { circlesOf } from '../../scripts/import-circles.js';

describe('the search for import circles', () => {
  it('finds a circle over three modules, and one that imports itself', () => {
    const graph = new Map([
      ['a', ['b']],
      ['b', ['c', 'd']],
      ['c', ['a']],
      ['d', []],
      ['e', ['e', 'a']],
    ]);
    expect(circlesOf(graph).map((circle) => circle.sort())).to.have.deep.members([['a', 'b', 'c'], ['e']]);
  });

  it('finds none where two ways lead to one module', () => {
    const graph = new Map([
      ['a', ['b', 'c']],
      ['b', ['d']],
      ['c', ['d']],
      ['d', []],
    ]);
    expect(circlesOf(graph)).to.deep.equal([]);
  });
});
