/** What one can do with a sandbox that is up. */
import type { SandboxManifest } from '../../deploy/manifest.js';
import { withoutPassword } from '../../ledger/db/db.js';

interface BannerOptions {
  manifest: SandboxManifest;
  manifestPath: string;
  /** Whether bots trade. */
  demo: boolean;
  /** `node …/curvebook.mjs`, from where the user is. */
  program: string;
  databaseUrl: string;
}

/** Lines for the terminal: where everything is, who has which account, and three commands to try. */
export function bannerLines({ manifest, manifestPath, demo, program, databaseUrl }: BannerOptions): string[] {
  const { serverUrl, rpcUrl, chainId, accounts, markets } = manifest;
  const pair = markets[0]?.pair ?? '';
  const account = (role: string): string => `${role} ${accounts.find((one) => one.role === role)?.address ?? ''}`;
  const commands = [
    `curl -s ${serverUrl}/v0/book/${pair}`,
    demo
      ? `curl -s '${serverUrl}/v0/fills?pair=${pair}'`
      : `node --import tsx examples/maker.ts ${manifestPath} maker1`,
    onDatabase(databaseUrl, `${program} status --manifest ${quoted(manifestPath)}`),
  ];
  return [
    'In another terminal:',
    `  console   ${serverUrl}/`,
    `  API       ${serverUrl}/docs`,
    `  chain     ${rpcUrl}, chain id ${chainId}`,
    `  accounts  ${account('maker3')} has tokens and waits for \`maker approve\`; ${account('owner')} owns the contracts;`,
    `            makers, takers and all keys are in ${manifestPath}`,
    ...commands.map((command, i) => `  ${i === 0 ? 'try' : '   '}       ${command}`),
  ];
}

/**
 * A command of the program on a database, as a shell takes it. One with a password stays in the variable that it came from, since everybody on the
 * machine can read the words of a command.
 */
export const onDatabase = (databaseUrl: string, command: string): string =>
  withoutPassword(databaseUrl) === databaseUrl
    ? `${command} --database ${quoted(databaseUrl)}`
    : `DATABASE_URL="$DATABASE_URL" ${command}`;

/** A word as a shell takes it. */
export const quoted = (word: string): string =>
  /^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
