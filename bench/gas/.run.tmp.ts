import { measureAll } from '/work/main/bench/gas/measure.js';
const t = Date.now();
const rows = await measureAll();
for (const r of rows) console.log(r.id.padEnd(40), r.gas, r.calldataBytes ?? '');
console.log(Date.now() - t);
