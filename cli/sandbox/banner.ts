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
    `${program} status --manifest ${quoted(manifestPath)} --database ${databaseWord(databaseUrl)}`,
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

/** The database as a shell takes it; one with a password is named by the variable that it came from. */
export const databaseWord = (databaseUrl: string): string =>
  withoutPassword(databaseUrl) === databaseUrl ? quoted(databaseUrl) : '"$DATABASE_URL"';

/** A word as a shell takes it. */
export const quoted = (word: string): string =>
  /^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
