/** What the settler can do: one that was deployed before a function existed goes on without it. */
import { RpcUnavailableError } from '../core/rpc-errors.js';
import type { Address } from '../core/types.js';
import { OrderSettler__factory } from '../typechain-types/factories/OrderSettler__factory.js';
import { agreedAmong, areSeveral, codeAt, votesOf, type EthReader } from './eth.js';

const SETTLER = OrderSettler__factory.createInterface();
/** Functions that not every settler has. */
type Newer = 'fillWithPermit' | 'fillChecked' | 'fillPartnerRoute';

interface SettlerCode {
  /**
   * Whether its code has the function. Asked of the chain until most endpoints say so, and then kept; until then, all that answer must say the same.
   * Throws RpcUnavailableError while they contradict each other, or none answers: the rules for a settler without it are the laxer ones.
   */
  has(name: Newer): Promise<boolean>;
}

export function createSettlerCode(eth: EthReader, settler: Address): SettlerCode {
  const known = new Set<Newer>();
  return {
    // Only that it has it is kept: a node that is behind does not know its code yet.
    async has(name) {
      if (known.has(name)) return true;
      const selector = SETTLER.getFunction(name).selector.slice(2);
      const finds = async (one: EthReader): Promise<boolean> =>
        (await codeAt(one, settler)).toLowerCase().includes(`63${selector}`);
      const votes = await votesOf(eth, finds);
      const most = agreedAmong(votes, (said) => `the settler has ${name}: ${said}`);
      const [first, ...others] = votes.map(({ answer }) => answer);
      const agreed = most?.answer ?? (others.every((other) => other === first) ? first : undefined);
      if (agreed === undefined)
        throw new RpcUnavailableError(`endpoints do not say alike whether the settler has ${name}`);
      if (agreed && (most !== null || !areSeveral(eth))) known.add(name);
      return agreed;
    },
  };
}
