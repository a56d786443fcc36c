import { expect } from 'chai';
import { createLateStarts } from '../../cli/roles/late.js';
import type { Role } from '../../ledger/roles.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('Late starts of roles', () => {
  function starts() {
    const begun: Role[] = [];
    const pending = new Map<Role, PromiseWithResolvers<void>>();
    const failures: unknown[] = [];
    const late = createLateStarts(
      ({ name }: { name: Role }) => {
        begun.push(name);
        const work = Promise.withResolvers<void>();
        pending.set(name, work);
        return work.promise;
      },
      (error) => void failures.push(error),
    );
    return { begun, pending, failures, late };
  }

  it('begin the gateway at once, whatever else is starting', async () => {
    const { begun, late } = starts();
    late.begin({ name: 'watcher' });
    late.begin({ name: 'poster' });
    await turn();
    expect(begun).to.deep.equal(['watcher', 'poster']);
    late.begin({ name: 'gateway' });
    expect(begun).to.deep.equal(['watcher', 'poster', 'gateway']);
  });

  it('begin the watcher beside a gateway that is starting, and the others after it, beside each other', async () => {
    const { begun, pending, failures, late } = starts();
    late.begin({ name: 'gateway' });
    late.begin({ name: 'watcher' });
    late.begin({ name: 'poster' });
    late.begin({ name: 'settler' });
    await turn();
    expect(begun).to.deep.equal(['gateway', 'watcher']);
    const reason = new Error('no gateway');
    pending.get('gateway')!.reject(reason);
    await turn();
    expect(begun).to.deep.equal(['gateway', 'watcher', 'poster', 'settler']);
    expect(failures).to.deep.equal([reason]);
  });

  it('have ended once none is under way', async () => {
    const { pending, late } = starts();
    let hasEnded = false;
    late.begin({ name: 'gateway' });
    late.begin({ name: 'watcher' });
    const ended = late.ended().then(() => (hasEnded = true));
    pending.get('gateway')!.resolve();
    await turn();
    expect(hasEnded).to.equal(false);
    pending.get('watcher')!.resolve();
    await ended;
  });
});
