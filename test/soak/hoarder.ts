/** A process that keeps 5 MB and drops 50 MB at each SIGHUP, for the test of the probe. */
const kept: number[][] = [];

/** One megabyte: 2^17 doubles, side by side. */
const megabyte = (salt: number): number[] => Array.from({ length: 131_072 }, (_, i) => salt + i + 0.5);

process.on('SIGHUP', () => {
  for (let i = 0; i < 50; i++) megabyte(i);
  for (let i = 0; i < 5; i++) kept.push(megabyte(i));
  process.stdout.write(`kept ${kept.length / 5}\n`);
});
setInterval(() => undefined, 1_000);
process.stdout.write('ready\n');
