/** Clear errors for ports that are taken. */
import { createServer } from 'node:net';

/** Somebody else listens where we want to. */
export class PortInUseError extends Error {
  readonly code = 'PORT_IN_USE';
  constructor(
    readonly port: number,
    setting: string,
  ) {
    super(`port ${port} is in use; stop what listens there or choose another by ${setting}`);
    this.name = 'PortInUseError';
  }
}

/**
 * Resolves when `port` can be listened on (0 always can); else throws `PortInUseError`, which names `setting`, or the
 * operating system's own error.
 */
export async function assertPortFree(host: string, port: number, setting: string): Promise<void> {
  if (port === 0) return;
  await new Promise<void>((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'EADDRINUSE' ? new PortInUseError(port, setting) : error),
    );
    probe.listen(port, host, () => probe.close(() => resolve()));
  });
}

/** Ports that were named before: the system may name one again that nobody listens on yet. */
const given = new Set<number>();

/** A port that nobody listens on now, another one at each call. */
export async function freePort(host: string): Promise<number> {
  const port = await new Promise<number>((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, host, () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
  if (given.has(port)) return freePort(host);
  given.add(port);
  return port;
}
