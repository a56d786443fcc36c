/** Opens WebSocket connections and reads whatever comes, in a process of its own. */
import { WebSocket } from 'ws';

const [port, count] = process.argv.slice(2);
for (let index = 0; index < Number.parseInt(count ?? '0', 10); index += 1) {
  new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false }).on('error', () => process.exit(1));
}
process.on('disconnect', () => process.exit(0));
