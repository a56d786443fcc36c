/** Debian's HAProxy, which reads the balancer's configuration in tests. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const PLACES = ['/usr/sbin/haproxy', '/usr/local/sbin/haproxy'];

/** The program, or null where it is not installed: then the tests that need it leave themselves out, and say so. */
export function haproxyProgram(): string | null {
  const found = PLACES.find(existsSync) ?? null;
  if (found === null) process.stderr.write('skipped: haproxy is not installed\n');
  return found;
}

/** What it has to say against a configuration file; empty when it would start with it. */
export function complaintsOf(program: string, file: string): string {
  const { status, stdout, stderr } = spawnSync(program, ['-c', '-f', file], { encoding: 'utf8' });
  const said = `${stdout}${stderr}`;
  const lines = said.split('\n').filter((line) => /^\[(?:ALERT|WARNING)\]/.test(line));
  return status === 0 ? lines.join('\n') : said;
}
