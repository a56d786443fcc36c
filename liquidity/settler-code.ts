/** What the settler can do: one that was deployed before a function existed goes on without it. */
import { RpcUnavailableError } from '../core/rpc-errors.js';
import type { Address } from '../core/types.js';
import { OrderSettler__factory } from '../typechain-types/factories/OrderSettler__factory.js';
import { agreedOn, codeAt, type EthReader } from './eth.js';

const SETTLER = OrderSettler__factory.createInterface();
/** Functions that not every settler has. */
type Newer = 'fillWithPermit' | 'fillChecked' | 'fillPartnerRoute';

interface SettlerCode {
  /**
   * Whether its code has the function. Asked of the chain until most endpoints say so, and then kept. Throws RpcUnavailableError while most
   * say neither: the rules for a settler without it are the laxer ones.
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
      const has = await agreedOn(eth, finds, (said) => `the settler has ${name}: ${said}`);
      if (has === null) throw new RpcUnavailableError(`endpoints do not agree on whether the settler has ${name}`);
      if (has) known.add(name);
      return has;
    },
  };
}
