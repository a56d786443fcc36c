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

/** A port that nobody listens on now. */
export async function freePort(host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, host, () => {
      const address = probe.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}
