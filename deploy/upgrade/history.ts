/** What a proxy has run, by its own events: the owner may carry out several proposals before any command looks at the chain. */
import { dataSlice, getAddress, type Provider } from 'ethers';
import { connectContracts, type ProxyName } from '../contracts.js';
import { reasonOf } from '../reasons.js';
import type { DeploymentRecord } from '../record.js';
import { logsOf } from '../state.js';

interface History {
  /** Addresses of implementations, the one that was deployed first included, in the order in which they ran. */
  ran: string[];
  /** Why the endpoint has no answer; null if it has one, which may lack events that it pruned. */
  problem: string | null;
}

/** What the endpoint tells of what a proxy has run. An endpoint that tells nothing keeps no command from its work. */
export async function historyOf(provider: Provider, record: DeploymentRecord, name: ProxyName): Promise<History> {
  const proxy = connectContracts(record.contracts, provider)[name];
  try {
    const logs = await logsOf(provider, proxy, 'Upgraded', record.deploymentBlock);
    return { ran: logs.map(({ topics }) => getAddress(dataSlice(topics[1] ?? '0x', 12))), problem: null };
  } catch (error) {
    return { ran: [], problem: reasonOf(error) };
  }
}
