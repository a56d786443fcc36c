/** `curvebook init`: what it writes is what `deploy` and `serve` read, and nobody loses a file or tells a key by it. */
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { expect } from 'chai';
import { Wallet, computeAddress, getAddress } from 'ethers';
import { ROLES as REGISTERED } from '../../cli/roles/registry.js';
import { loadConfig, readPlainSettings, settingsSchema } from '../../cli/config.js';
import { SIGNING_ROLES, keystoreText, openKeystore } from '../../cli/settings/keystore.js';
import type { Hex } from '../../core/types.js';
import { readConfig } from '../../deploy/config.js';
import { runCurvebook, type Ran } from '../support/console/terminal.js';

const OWNER = getAddress(`0x${'ab'.repeat(20)}`);
const USUAL = ['--rpc', 'https://one.example/?key=a#b$c,http://127.0.0.1:1', '--owner', OWNER];
const PASSWORD = 'correct horse';
/** As cheap as may be. */
const sealed = (key: string): string => keystoreText(key as Hex, PASSWORD, 2);
const ROLES = SIGNING_ROLES;

describe('curvebook init', function () {
  this.timeout(60_000);
  let folder: string;

  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'curvebook-init-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  const at = (...names: string[]): string => join(folder, ...names);
  const read = (...names: string[]): string => readFileSync(at(...names), 'utf8');
  const modeOf = (...names: string[]): number => statSync(at(...names)).mode & 0o777;
  const init = (...args: string[]): Promise<Ran> => runCurvebook(['init', '--dir', folder, ...args]);
  const env = (): Record<string, string> => parseEnv(read('.env')) as Record<string, string>;

  /** Keystores under one password, by their role. */
  function keystores(): { args: string[]; addresses: string[]; keys: string[] } {
    writeFileSync(at('password'), `${PASSWORD}\n`);
    const made = ROLES.map(() => Wallet.createRandom());
    ROLES.forEach((role, i) => writeFileSync(at(`${role}.json`), sealed(made[i]!.privateKey)));
    return {
      args: [...ROLES.flatMap((role) => [`--${role}-keystore`, at(`${role}.json`)]), '--password-file', at('password')],
      addresses: made.map(({ address }) => address),
      keys: made.map(({ privateKey }) => privateKey),
    };
  }

  it('knows every role that signs', () => {
    const signing = REGISTERED.filter(({ signs }) => signs).map(({ name }) => name);
    expect([...ROLES]).to.have.members(signing);
  });

  it('writes what deploy and serve read, from keystores, of which no key is told', async () => {
    const { args, addresses, keys } = keystores();
    const { code, output, errors } = await init(...USUAL, ...args, '--alerts', 'https://alerts.example/x');
    expect([code, errors]).to.deep.equal([0, '']);
    const config = readConfig(at('deployments', '8453.config.json'));
    expect(config).to.deep.include({ chainId: 8453, owner: OWNER, withdrawDelaySec: 600 });
    expect([config.curvePosters, config.claimPosters, config.executors].flat()).to.deep.equal(addresses);
    expect(config.tokens.map(({ symbol, decimals }) => [symbol, decimals])).to.deep.equal([
      ['WETH', 18],
      ['USDC', 6],
    ]);
    expect(modeOf('.env')).to.equal(0o600);
    expect(readPlainSettings(env()).problems).to.deep.equal([]);
    const written = read('.env') + read('deployments', '8453.config.json') + output;
    for (const key of keys) expect(written.toLowerCase()).to.not.include(key.slice(2).toLowerCase());

    const manifest = { chainId: 8453, deploymentId: '0123456789abcdef', deploymentBlock: 1 };
    const contracts = Object.fromEntries(
      ['custodian', 'curveBook', 'entrypoint', 'orderSettler', 'permit2'].map((name) => [name, OWNER]),
    );
    writeFileSync(at('deployments', '8453.json'), JSON.stringify({ ...manifest, contracts }));
    const served = loadConfig({}, env());
    expect(ROLES.map((role) => computeAddress(served.keys[role]!))).to.deep.equal(addresses);
    expect(served.rpcUrls).to.deep.equal(USUAL[1]!.split(','));
    expect(served.operator).to.equal(OWNER.toLowerCase());
    const watching = loadConfig({ ROLES: 'watcher' }, env());
    expect(watching.keys, 'only keys that are used are opened').to.deep.equal({});
  });

  it('lists every setting in .env, as a shell, too, reads it', async () => {
    expect((await init(...USUAL, '--new-keys')).code).to.equal(0);
    const text = read('.env');
    for (const name of Object.keys(settingsSchema.shape).filter((one) => !one.endsWith('_PRIVATE_KEY')))
      expect(text, name).to.match(new RegExp(`^#?${name}=`, 'm'));
    for (const name of ['DATABASE_PASSWORD', 'GRAFANA_PASSWORD', 'ALERT_WEBHOOK_URL'])
      expect(env()[name]).to.not.equal('');
    const { execFileSync } = await import('node:child_process');
    const shown = execFileSync('sh', ['-c', `. ${at('.env')}; printf %s "$RPC_URL"`], { encoding: 'utf8' });
    expect(shown).to.equal(USUAL[1]);
  });

  it('makes keys that only their password opens, and that nothing overwrites', async () => {
    expect((await init(...USUAL, '--new-keys')).code).to.equal(0);
    for (const name of ['poster.json', 'settler.json', 'executor.json', 'password'])
      expect(modeOf('keys', name), name).to.equal(0o600);
    const key = openKeystore(at('keys', 'poster.json'), at('keys', 'password'), 'test');
    expect([computeAddress(key)]).to.deep.equal(readConfig(at('deployments', '8453.config.json')).curvePosters);
    expect(readPlainSettings(env()).problems).to.deep.equal([]);
    writeFileSync(at('wrong'), 'wrong');
    expect(readPlainSettings({ ...env(), KEYSTORE_PASSWORD_FILE: at('wrong') }).problems[0]).to.match(
      /the password is not its/,
    );
    const before = read('keys', 'poster.json');
    const again = await init(...USUAL, '--new-keys', '--force');
    expect([again.code, read('keys', 'poster.json')]).to.deep.equal([1, before]);
    expect(again.errors).to.match(/a key is never overwritten/);
  });

  it('puts the manifest where deploy will: in any folder, by the name of the chain', async () => {
    for (const name of ['other.json', '8453', '8454.json', '8453.config.json']) {
      const { code, errors } = await init(...USUAL, '--new-keys', '--manifest', at('records', name), '--alerts', 'x');
      expect(code, name).to.equal(1);
      expect(errors).to.match(/--manifest: must end with 8453\.json, as `npm run deploy` calls its record/);
      expect(errors, 'with all that is wrong').to.match(/--alerts: must be/);
      expect(readdirSync(folder), 'nothing is written').to.deep.equal([]);
    }
    expect((await init(...USUAL, '--new-keys', '--manifest', at('records', '8453.json'))).code).to.equal(0);
    expect(env()['MANIFEST']).to.equal(at('records', '8453.json'));
    expect(readConfig(at('records', '8453.config.json')).chainId).to.equal(8453);
  });

  it('overwrites nothing without being told, and leaves nothing half done', async () => {
    writeFileSync(at('.env'), 'MINE=1\n', { mode: 0o644 });
    const refused = await init(...USUAL, '--new-keys');
    expect(refused.code).to.equal(1);
    expect(refused.errors).to.match(/\.env is there already; --force replaces it, and keeps the old one/);
    expect([read('.env'), existsSync(at('deployments')), existsSync(at('keys'))]).to.deep.equal([
      'MINE=1\n',
      false,
      false,
    ]);
    expect((await init(...USUAL, '--new-keys', '--force')).code).to.equal(0);
    expect([modeOf('.env'), env()['MINE']], 'nobody else reads it').to.deep.equal([0o600, undefined]);
  });

  it('keeps what it replaces: keys, and the passwords that a database knows', async () => {
    const wallets = ROLES.map(() => Wallet.createRandom());
    const given = ROLES.map((role, i) => `${role.toUpperCase()}_PRIVATE_KEY=${wallets[i]!.privateKey}`);
    writeFileSync(at('given'), `${given.join('\n')}\n`);
    expect((await init(...USUAL, '--env', at('given'))).code).to.equal(0);
    // Of a deployment whose replica took over.
    appendFileSync(at('.env'), 'DATABASE_HOST=replica\n');
    const before = [read('.env'), env()] as const;
    const replaced = await init(...USUAL, '--new-keys', '--force');
    expect([replaced.code, replaced.errors]).to.deep.equal([0, '']);
    expect(env()['SETTLER_PRIVATE_KEY']).to.equal(undefined);
    for (const name of [
      'DATABASE_PASSWORD',
      'DATABASE_HOST',
      'GRAFANA_PASSWORD',
      'NATS_PASSWORD',
      'NATS_EDGE_PASSWORD',
      'EDGE_SECRET',
    ])
      expect(env()[name], name).to.equal(before[1][name]).and.not.equal('');
    const [old, ...more] = readdirSync(folder).filter((name) => name.startsWith('.env.replaced-'));
    expect([read(old!), modeOf(old!), more]).to.deep.equal([before[0], 0o600, []]);
    expect(replaced.output).to.include(old!);
    expect(readdirSync(at('deployments'))).to.have.length(2);
  });

  it('writes a key that is in the environment, and never shows it', async () => {
    const wallets = ROLES.map(() => Wallet.createRandom());
    const given = ROLES.map((role, i) => `${role.toUpperCase()}_PRIVATE_KEY=${wallets[i]!.privateKey}`);
    writeFileSync(at('given'), `${given.join('\n')}\n`);
    const { code, output, errors } = await init(...USUAL, '--env', at('given'));
    expect([code, errors]).to.deep.equal([0, '']);
    expect(env()['SETTLER_PRIVATE_KEY']).to.equal(wallets[1]!.privateKey);
    for (const { privateKey } of wallets) expect(output).to.not.include(privateKey.slice(2));
    expect(readConfig(at('deployments', '8453.config.json')).claimPosters).to.deep.equal([wallets[1]!.address]);
  });

  it('names everything that is missing or wrong at once, and writes nothing', async () => {
    const nothing = await init();
    expect(nothing.code).to.equal(1);
    for (const option of ['--rpc', '--owner', '--poster-keystore', '--settler-keystore', '--executor-keystore'])
      expect(nothing.errors).to.include(`${option}: required`);
    const wrong: [string[], RegExp][] = [
      [['--market', 'ABC-USDC'], /say <BASE>-<QUOTE>=<tick>\/<lot>/],
      [['--market', 'ABC-USDC=0.1/0.1'], /not known for ABC: say ABC=<address>:<decimals>/],
      [['--market', 'WETH-USDC=0.01/0.0000000000000000001'], /WETH-USDC/],
      [['--market', 'WETH-USDC,WETH-USDC'], /names WETH-USDC twice/],
      [
        ['--market', 'cbBTC-WETH=0.000000001/0.00001'],
        /cbBTC-WETH: a tick of 0.000000001 is finer than the 8 decimals that orders are/,
      ],
      [['--market', 'WETH-USDC', '--token', `DAI=0x${'12'.repeat(20)}:18`], /--token: no market trades DAI/],
      [['--owner', '0x12'], /owner: must be an address/],
      [['--rpc', 'ftp://x'], /RPC_URL/],
      [['--rpc', "http://x/'"], /can't hold; encode it/],
      [['--port', '70000'], /PORT/],
      [['--alerts', 'mailto:me'], /--alerts: must be an http/],
      [['--chain', '1'], /chain 1 is not known for WETH/],
      [['--chain', 'x'], /--chain: x is no whole number/],
      [['--max-ttl', '70000'], /maxTtlSec/],
      [['--withdraw-delay', '600000000'], /withdrawDelaySec: Too big/],
    ];
    for (const [args, reason] of wrong) {
      const { code, errors, output } = await init(...USUAL, '--new-keys', ...args);
      expect([code, output, existsSync(at('.env')), existsSync(at('keys'))], args.join(' ')).to.deep.equal([
        1,
        '',
        false,
        false,
      ]);
      expect(errors, args.join(' ')).to.match(reason);
    }
    const keys = ROLES.map((role, i) => `${role.toUpperCase()}_PRIVATE_KEY=0x${`${i + 1}`.repeat(64)}\n`);
    writeFileSync(at('given'), keys.join(''));
    const unsealed = await init(...USUAL, '--env', at('given'), '--password-file', at('password'));
    expect(unsealed.errors).to.match(/--password-file: no keystore is named/);
    const same = sealed(Wallet.createRandom().privateKey);
    for (const role of ROLES) writeFileSync(at(`${role}.json`), same);
    writeFileSync(at('password'), PASSWORD);
    const shared = ROLES.flatMap((role) => [`--${role}-keystore`, at(`${role}.json`)]);
    const refused = await init(...USUAL, ...shared, '--password-file', at('password'));
    expect(refused.errors)
      .to.match(/one key must not both price and pay/)
      .and.match(/must not be the key of the poster/);
  });

  it('asks for what it is not told, takes a default for nothing, and stops where the terminal does', async () => {
    const token = ['--token', `AAA=0x${'12'.repeat(20)}:18`, '--token', `USDX=0x${'34'.repeat(20)}:6`];
    const said = ['31337', 'http://127.0.0.1:1', '', OWNER, '', 'AAA-USDX=0.01/0.001', '', '', '', ''];
    const { code, errors } = await runCurvebook(['init', '--dir', folder, ...token], `${said.join('\n')}\n`);
    expect(code, errors).to.equal(0);
    expect(readConfig(at('deployments', '31337.config.json'))).to.deep.include({ chainId: 31337, owner: OWNER });
    expect(env()['OPERATOR_ADDRESS']).to.equal(OWNER);
    const cut = await runCurvebook(['init', '--dir', at('other')], '8453\n');
    expect(cut.code).to.equal(1);
    expect(cut.errors).to.match(/the terminal ended/);
    expect(existsSync(at('other'))).to.equal(false);
  });
});
