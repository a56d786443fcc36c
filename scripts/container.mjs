#!/usr/bin/env node
/**
 * What a container runs: `curvebook`, except that `serve` ends with 0 where it would end with 1. Docker starts again whatever ended with
 * another code than 0, and 1 says that a restart won't help.
 */
if (process.argv[2] === 'serve') {
  process.once('exit', (code) => {
    if (code === 1) process.exitCode = 0;
  });
}
await import('./curvebook.mjs');
