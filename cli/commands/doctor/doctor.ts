/** `curvebook doctor`: checks everything that can be wrong before money moves, and names remedies. */
import { dirname, join, resolve } from 'node:path';
import { existsSync } from 'node:fs';
import { pino } from 'pino';
import type { Address } from '../../../core/types.js';
import { readConfig, type DeployConfig } from '../../../deploy/config.js';
import { DeployError } from '../../../deploy/errors.js';
import { createRpcPool } from '../../../keepers/chain/pool.js';
import type { CommandLine } from '../../arguments.js';
import { loadConfig, readEnvironment, readPlainSettings, type Config, type PlainSettings } from '../../config.js';
import { ConfigError } from '../../errors.js';
import { EXIT_UNFIT } from '../../exit-codes.js';
import { SIGNING_ROLES, keystoreName } from '../../settings/keystore.js';
import { print, type Io } from '../command.js';
import { paintFor } from '../style.js';
import {
  checkContracts,
  checkDelay,
  checkMarkets,
  checkNamedKeys,
  checkOwner,
  checkPermit2,
  checkRoles,
  checkSwaps,
  readDelay,
} from './contracts.js';
import { checkCosts } from './costs.js';
import { checkDatabase } from './database.js';
import { boundedRpc, checkEndpoints, type Usable } from './endpoints.js';
import { createReport, reasonOf, type Finding, type Level, type Report } from './finding.js';
import { checkAlerts, checkArchive, checkClock, checkHeads, checkNats, checkPort, checkSecrets } from './machine.js';
import { median } from './median.js';

/** Where chains of the OP Stack have Permit2 and others, too. */
const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;

export async function runDoctor(line: CommandLine, io: Io): Promise<number> {
  const env = { ...readEnvironment(line.env), ...line.overrides };
  const report = createReport();
  await examine(line, env, report);
  const { findings } = report;
  const worst = (['fail', 'warn'] as const).find((level) => findings.some((one) => one.level === level)) ?? 'ok';
  const paint = paintFor(io.output, env);
  const count = (level: Level): number => findings.filter((one) => one.level === level).length;
  print(io, line, { ok: worst !== 'fail', worst, findings }, [
    ...findings.flatMap((finding) => linesOf(finding, (text) => paint(COLOURS[finding.level], text))),
    `${count('ok')} ok, ${count('warn')} to look at, ${count('fail')} in the way`,
  ]);
  return worst === 'fail' ? EXIT_UNFIT : 0;
}

function linesOf({ level, code, subject, message, remedy }: Finding, paint: (text: string) => string): string[] {
  const said = `${paint(level.toUpperCase().padEnd(4))} ${code.padEnd(17)} ${subject}: ${message}`;
  return remedy === null ? [said] : [said, `     ${' '.repeat(17)} → ${remedy}`];
}

async function examine(line: CommandLine, env: Readonly<Record<string, string>>, report: Report): Promise<void> {
  const { plain, problems } = readPlainSettings(env);
  for (const problem of problems) report.fail('SETTINGS', 'settings', problem);
  if (plain === null) return;
  const { settings } = plain;
  const config = configOf(line, env, plain, problems, report);
  const keys = config?.keys ?? plain.keys;
  const configuration = configurationOf(resolve(settings.MANIFEST), config, report);
  checkSecrets(secretFiles(line, env), report);

  const urls = config?.rpcUrls ?? settings.RPC_URL ?? [];
  const chainId = config?.manifest.chainId ?? configuration?.chainId ?? null;
  const nowMs = (): number => Date.now();
  const usable = await checkEndpoints(
    urls,
    {
      chainId,
      deploymentBlock: config?.manifest.deploymentBlock ?? null,
      contract: config?.manifest.contracts.custodian ?? null,
      scanMaxBlocks: settings.SCAN_MAX_BLOCKS,
    },
    report,
    nowMs,
  );
  await Promise.all([
    checkClock(urls, report, nowMs),
    checkHeads(config?.headsUrls ?? settings.HEADS_URL ?? [], report),
  ]);
  await guarded('CONTRACTS', report, () => checkChain({ usable, config, plain, configuration, keys }, report));

  const deploymentId = config?.manifest.deploymentId ?? null;
  await checkDatabase(
    { url: settings.DATABASE_URL, deploymentId, requireReplica: settings.REQUIRE_SYNC_REPLICA },
    report,
  );
  await checkNats(settings, report);
  await checkPort({ host: settings.HOST, port: settings.PORT, setting: 'PORT', deploymentId }, report);
  if (settings.METRICS_PORT === undefined)
    report.warn('METRICS', 'METRICS_PORT', 'is not set: nothing watches this process');
  else
    await checkPort(
      { host: settings.HOST, port: settings.METRICS_PORT, setting: 'METRICS_PORT', deploymentId },
      report,
    );
  await checkAlerts(env['ALERT_WEBHOOK_URL'], line.own.has('test-alert'), report, nowMs);
  checkArchive(settings.ARCHIVE_DIR, report);
}

/** Null before there is a deployment, and when it does not fit the settings. */
function configOf(
  line: CommandLine,
  env: Readonly<Record<string, string>>,
  { settings }: PlainSettings,
  known: readonly string[],
  report: Report,
): Config | null {
  if (!existsSync(settings.MANIFEST)) {
    report.warn('MANIFEST', settings.MANIFEST, 'nothing is deployed yet, or not recorded here');
    if (known.length === 0)
      report.ok('SETTINGS', 'settings', 'are valid, as far as they can be judged without a deployment');
    return null;
  }
  try {
    const config = loadConfig(line.overrides, env);
    report.ok('SETTINGS', 'settings', 'are valid');
    report.ok(
      'MANIFEST',
      settings.MANIFEST,
      `deployment ${config.manifest.deploymentId} on chain ${config.manifest.chainId}`,
    );
    return config;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const problem of error.problems.filter((one) => !known.includes(one)))
      report.fail(problem.startsWith('MANIFEST') ? 'MANIFEST' : 'SETTINGS', 'settings', problem);
    return null;
  }
}

/** The configuration beside the manifest; null where there is none, which is no mistake of a server. */
function configurationOf(manifest: string, config: Config | null, report: Report): DeployConfig | null {
  const path = join(
    dirname(manifest),
    `${manifest.slice(dirname(manifest).length + 1).replace(/\.json$/, '')}.config.json`,
  );
  if (!existsSync(path)) {
    if (config === null) report.fail('CONFIGURATION', path, 'is not there');
    return null;
  }
  try {
    const configuration = readConfig(path);
    report.ok('CONFIGURATION', path, `${configuration.markets.length} markets on chain ${configuration.chainId}`);
    return configuration;
  } catch (error) {
    if (!(error instanceof DeployError)) throw error;
    for (const problem of error.message.split('\n')) report.fail('CONFIGURATION', path, problem);
    return null;
  }
}

function secretFiles(line: CommandLine, env: Readonly<Record<string, string>>): string[] {
  const named = [line.env, ...SIGNING_ROLES.map((role) => env[keystoreName(role)]), env['KEYSTORE_PASSWORD_FILE']];
  return named.filter((file) => file !== undefined);
}

interface Chain {
  usable: readonly Usable[];
  config: Config | null;
  plain: PlainSettings;
  configuration: DeployConfig | null;
  keys: Config['keys'];
}

async function checkChain({ usable, config, plain, configuration, keys }: Chain, report: Report): Promise<void> {
  if (usable.length === 0) return;
  const { settings } = plain;
  const eth = createRpcPool(
    usable.map(({ url }) => url),
    { nowMs: () => performance.now(), logger: pino({ level: 'silent' }), connect: boundedRpc },
  );
  let markets = configuration?.markets.length ?? 0;
  if (config === null) {
    if (configuration !== null) {
      checkNamedKeys(keys, configuration, report);
      checkDelay(BigInt(configuration.withdrawDelaySec), { isSandbox: false }, report);
    }
  } else if (await checkContracts(eth, config, report)) {
    await guarded('OWNER', report, () => checkOwner(eth, config.manifest, configuration, report));
    await guarded('WITHDRAW_DELAY', report, async () =>
      checkDelay(await readDelay(eth, config.manifest), { isSandbox: config.manifest.accounts.length > 0 }, report),
    );
    await guarded('ROLES', report, () => checkRoles(eth, config, report));
    await guarded(
      'MARKETS',
      report,
      async () => void (markets = await checkMarkets(eth, config, configuration, report)),
    );
    await guarded('SWAPS', report, () => checkSwaps(eth, config, report));
  }
  const permit2 = config?.swap?.permit2 ?? (configuration?.permit2.toLowerCase() as Address | undefined);
  if (permit2 !== undefined) await guarded('PERMIT2', report, () => checkPermit2(eth, permit2, report));
  await guarded('COST', report, async () => {
    await checkCosts(
      eth,
      {
        baseFeeWei: median(usable.map((one) => one.baseFeeWei)) ?? 0n,
        blockTimeMs: median(usable.map((one) => one.blockTimeMs).filter((one) => one !== null)),
        ...{ markets, keys, isDeployed: config !== null },
        gasPriceOracle: settings.GAS_PRICE_ORACLE,
        feeCeilingWei: settings.FEE_CEILING_GWEI,
        postBudgetWei: settings.POST_BUDGET_GWEI_PER_HOUR,
        lowBalanceWei: settings.LOW_BALANCE_ETHER,
      },
      report,
    );
  });
}

/** A malformed answer of an endpoint ends one check, not all. */
async function guarded(code: Finding['code'], report: Report, check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    report.fail(code, 'chain', reasonOf(error));
  }
}
