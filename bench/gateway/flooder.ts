/** Sends unsigned requests of nearly 1 MiB over eight connections for as long as it is told to, in a process of its own. */
import { Agent, request } from 'node:http';
import { toSafeInt } from '../../core/amounts.js';

const CONNECTIONS = 8;
const cancel = { asset: 10000, cloid: `0x${'ab'.repeat(16)}` };
const BODY = Buffer.from(
  JSON.stringify({
    action: { type: 'cancelByCloid', cancels: Array.from({ length: 17_000 }, () => cancel) },
    nonce: Date.now(),
    signature: { r: `0x${'1'.repeat(64)}`, s: `0x${'1'.repeat(63)}`, v: 27 },
  }),
);
if (BODY.length > 1024 * 1024 || BODY.length < 1_000_000) throw new Error(`a body of ${BODY.length} bytes`);

const port = toSafeInt(process.argv[2] ?? '');
const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
let isOn = false;
let answered = 0;

function send(): Promise<void> {
  return new Promise((resolve) => {
    const headers = { 'content-type': 'application/json', 'content-length': BODY.length };
    const sent = request({ port, host: '127.0.0.1', path: '/exchange', method: 'POST', agent, headers }, (response) => {
      response.resume();
      response.once('end', () => {
        answered += 1;
        resolve();
      });
    });
    sent.once('error', () => resolve());
    sent.end(BODY);
  });
}

async function flood(): Promise<void> {
  while (isOn) await send();
}

let floods: Promise<void>[] = [];
process.on('message', (word) => {
  isOn = word === 'on';
  if (isOn) floods = Array.from({ length: CONNECTIONS }, flood);
  void Promise.all(isOn ? [] : floods).then(() => process.send?.({ answered }));
});
process.on('disconnect', () => process.exit(0));
process.send?.({ answered });
