/** A process that takes the lock of a deployment's files, says "held", and keeps it until a line comes in. Arguments: folder, chain id. */
import { lockFiles } from '../../../deploy/owner/lock.js';
import { deploymentFiles } from '../../../deploy/record.js';

const [folder = '', chainId = ''] = process.argv.slice(2);
const unlock = lockFiles(deploymentFiles(folder, Number(chainId)));
console.log('held');
process.stdin.once('data', () => {
  unlock();
  process.exit(0);
});
