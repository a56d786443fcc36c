/** How often pages draw what streams: the mean is what counts, on any screen and beside whatever else the machine does. */
import { expect } from 'chai';
import fc from 'fast-check';
import { createPace } from '../../web/src/pace.js';

const PER_SEC = 20;

/** Times at which a screen of so many frames a second lets pages draw, in `seconds`: at some it is held up, and what fell into that is left out. */
function screen(hertz: number, seconds: number, heldUpMs: ReadonlyMap<number, number> = new Map()): number[] {
  const times: number[] = [];
  let freeMs = 0;
  for (let frame = 0; frame < hertz * seconds; frame += 1) {
    const atMs = (frame * 1_000) / hertz;
    freeMs = Math.max(freeMs, atMs + (heldUpMs.get(frame) ?? 0));
    if (atMs >= freeMs) times.push(atMs);
  }
  return times;
}

const drawnOf = (times: readonly number[]): number[] => {
  const pace = createPace(PER_SEC);
  return times.filter((nowMs) => pace.isDue(nowMs));
};

describe('the pace of drawings', () => {
  it('is twenty a second on every screen', () => {
    for (const hertz of [30, 50, 59.94, 60, 75, 120, 144])
      expect(drawnOf(screen(hertz, 60)).length, `${hertz} Hz`).to.be.within(60 * PER_SEC - 1, 60 * PER_SEC + 1);
  });

  it('is twenty a second, too, where the machine holds frames up, now and then', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 59 }), fc.integer({ min: 20, max: 200 })), { maxLength: 40 }),
        (stops) => {
          // One in each second at most, and none in the last, so that there is time to make up for it.
          const heldUp = new Map(stops.map(([second, ms]) => [second * 60 + 7, ms]));
          const drawn = drawnOf(screen(60, 61, heldUp));
          expect(drawn.length).to.be.within(61 * PER_SEC - 1, 61 * PER_SEC + 1);
        },
      ),
    );
  });

  it('is never more than that and five, whatever comes before', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 3_000 }), { maxLength: 400 }), (gapsMs) => {
        let nowMs = 0;
        const drawn = drawnOf(gapsMs.map((ms) => (nowMs += ms)));
        drawn.forEach((fromMs, i) =>
          drawn.slice(i).forEach((toMs, more) => {
            expect(more + 1).to.be.at.most(((toMs - fromMs) * PER_SEC) / 1_000 + 6);
          }),
        );
      }),
    );
  });

  it('draws the first at once, and one after a pause', () => {
    const pace = createPace(PER_SEC);
    expect([0, 49, 50, 60_000].map((nowMs) => pace.isDue(nowMs))).to.deep.equal([true, false, true, true]);
  });
});
