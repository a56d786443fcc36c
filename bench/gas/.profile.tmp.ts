import { createWorld } from './world.js';
import * as cb from './curvebook.js';
const world = await createWorld();
const { chain } = world;
const venue = await (cb as any).createVenue(world);
await (cb as any).warmUp(venue);
const pair = world.pairs[process.argv[2] === 'weth' ? 0 : 1]!;
const dir = (process.argv[3] ?? 'sell') as any;
await (cb as any).post(venue, [pair], 31);
const names: Record<string, string> = {
  [venue.custodian.address.toLowerCase()]: 'custodian',
  [venue.curveBook.address.toLowerCase()]: 'book',
  [venue.entrypoint.address.toLowerCase()]: 'entry',
  [pair.base.address.toLowerCase()]: 'base',
  [pair.quote.address.toLowerCase()]: 'quote',
};
await (cb as any).swapInto(venue, pair, dir, 1);
const blk: any = await chain.provider.send('eth_getBlockByNumber', ['latest', false]);
const tr: any = await chain.provider.send('debug_traceTransaction', [
  blk.transactions[0],
  { disableStorage: true, disableMemory: true },
]);
const L = tr.structLogs;
// frame path by call ops
type F = { name: string; self: number; ops: Record<string, number>; n: Record<string, number> };
const frames: F[] = [{ name: 'entry', self: 0, ops: {}, n: {} }];
const all: F[] = [...frames];
for (let i = 0; i < L.length; i++) {
  const l = L[i];
  const nx = L[i + 1];
  const f = frames[l.depth - 1]!;
  let cost = Number(l.gasCost);
  if (nx && nx.depth > l.depth) {
    const to =
      '0x' +
      BigInt(l.stack[l.stack.length - 2])
        .toString(16)
        .padStart(40, '0');
    const child = { name: `${'  '.repeat(l.depth)}${l.op} ${names[to] ?? to.slice(0, 8)}`, self: 0, ops: {}, n: {} };
    frames[l.depth] = child;
    all.push(child);
    // overhead = gas before - (child's start gas) - remaining kept: find return
    let j = i + 1;
    while (j < L.length && L[j].depth > l.depth) j++;
    const last = L[j - 1];
    const childUsed = Number(nx.gas) - (Number(last.gas) - Number(last.gasCost));
    cost = Number(l.gas) - Number(L[j]?.gas ?? 0) - childUsed;
  }
  f.self += cost;
  f.ops[l.op] = (f.ops[l.op] ?? 0) + cost;
  f.n[l.op] = (f.n[l.op] ?? 0) + 1;
}
console.log('total', tr.gas);
for (const f of all) {
  const big = Object.entries(f.ops).filter(([k]) => /SLOAD|SSTORE|CALL|LOG|TLOAD|TSTORE|EXTCODE|BALANCE/.test(k));
  const rest = f.self - big.reduce((s, [, v]) => s + v, 0);
  console.log(
    f.name.padEnd(34),
    String(f.self).padStart(7),
    'compute',
    String(rest).padStart(6),
    big.map(([k, v]) => `${k}x${f.n[k]}=${v}`).join(' '),
  );
}
await chain.close();
