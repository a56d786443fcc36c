import { execFile } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { JsonRpcProvider, keccak256 } from 'ethers';
import { sandboxAccounts } from '../../../deploy/sandbox/accounts.js';
import type { Proposal } from '../../../deploy/actions.js';
import { readEnvironment } from '../../../deploy/environment.js';
import type { DeploymentRecord } from '../../../deploy/record.js';
import type { VerificationTarget } from '../../../deploy/checks/verify.js';
import { loadConfig } from '../../../cli/config.js';
import { programOf, startChild, type Child } from '../../support/child.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const run = promisify(execFile);

/** What somebody types into a terminal, and what comes back. */
interface Outcome {
  code: number;
  out: string;
  err: string;
}

describe('npm run deploy', function () {
  this.timeout(240_000);
  const [owner, poster, settler, executor, maker] = sandboxAccounts();
  let chain: Child;
  let rpcUrl: string;
  let folder: string;

  before(async () => {
    chain = startChild('deploy/sandbox/chain-main.ts', ['--port', '0', '--block-time-ms', '50']);
    ({ rpcUrl } = JSON.parse(await chain.line((text) => text.startsWith('{'), 120_000)) as { rpcUrl: string });
    folder = mkdtempSync(join(tmpdir(), 'curvebook-cli-'));
    writeFileSync(
      join(folder, '8453.config.json'),
      JSON.stringify({
        chainId: 8453,
        owner: maker!.address,
        withdrawDelaySec: 600,
        tokens: [],
        markets: [],
        curvePosters: [poster!.address],
        claimPosters: [settler!.address],
        executors: [executor!.address],
      }),
    );
  });
  after(async () => {
    await chain.end('SIGTERM');
    rmSync(folder, { recursive: true, force: true });
  });

  async function deploy(command: string, args: readonly string[] = [], key = owner!.privateKey): Promise<Outcome> {
    const where = command.startsWith('-') ? [] : ['--rpc', rpcUrl, '--deployments', folder];
    const env = { ...process.env, DEPLOY_PRIVATE_KEY: key, DEPLOY_RPC_URL: '', HOME: folder, XDG_CONFIG_HOME: folder };
    const all = [...programOf('deploy/main.ts'), command, ...where, ...args];
    return run(process.execPath, all, { cwd: root, env, maxBuffer: 1e8 }).then(
      ({ stdout, stderr }) => ({ code: 0, out: stdout, err: stderr }),
      ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
        code,
        out: stdout,
        err: stderr,
      }),
    );
  }
  const record = () => JSON.parse(readFileSync(join(folder, '8453.json'), 'utf8')) as DeploymentRecord;

  it('explains itself, and names mistakes by their code', async () => {
    const help = await deploy('--help');
    expect(help.code).to.equal(0);
    for (const command of ['deploy', 'configure', 'upgrade', 'rollback', 'transfer-ownership', 'verify']) {
      expect(help.out).to.contain(`  ${command} `);
    }
    expect(await deploy('undeploy')).to.include({ code: 2, out: '' });
    expect(await deploy('constructor')).to.deep.include({
      code: 2,
      err: 'BAD_ARGUMENT: there is no command constructor; try --help\n',
    });
    const both = await deploy('configure', ['--dry-run', '--propose', 'calls.json']);
    expect(both.err).to.match(/^BAD_ARGUMENT: /);
    expect((await deploy('status', ['--only', 'lens'])).err).to.match(/^BAD_ARGUMENT: /);
    expect((await deploy('status')).err).to.match(/^NOT_DEPLOYED: /);
  });

  it('wants a key only for what it sends, and finds none that is not there', async () => {
    const dry = await deploy('deploy', ['--dry-run', '--from', owner!.address], '');
    expect(dry).to.include({ code: 0, err: '' });
    expect(dry.out).to.match(/adapter 0x\w{40}: PropAmmAdapter, nonce \d+, code hash 0x\w{64}, \d+ bytes/);
    expect(await deploy('deploy', ['--dry-run'])).to.deep.equal(dry);
    expect((await deploy('deploy', ['--dry-run'], '')).err).to.match(/^BAD_ARGUMENT: .*--from.*DEPLOY_PRIVATE_KEY/);
    expect((await deploy('deploy', ['--from', maker!.address])).err).to.match(
      /^BAD_ARGUMENT: --from .* is not the account/,
    );
    const sent = await deploy('deploy', [], '');
    expect(sent.code).to.equal(1);
    expect(sent.err)
      .to.match(/^NO_KEY: /)
      .and.to.contain('npx hardhat keystore set DEPLOY_PRIVATE_KEY');
    for (const key of ['0x12', `0x${'0'.repeat(64)}`, `0x${'f'.repeat(64)}`]) {
      const refused = await deploy('deploy', [], key);
      expect(refused.err)
        .to.match(/^NO_KEY: DEPLOY_PRIVATE_KEY is no private key/)
        .and.not.to.contain(key);
    }
    expect(existsSync(join(folder, '8453.json'))).to.equal(false);
  });

  it('takes endpoint and folder from the settings that init wrote, and a key from no file', () => {
    const path = join(folder, 'settings');
    writeFileSync(
      path,
      `DEPLOY_RPC_URL=http://one\nMANIFEST=/srv/x/8453.json\nDEPLOY_PRIVATE_KEY=${owner!.privateKey}\n`,
    );
    const read = { rpcUrl: 'http://one', privateKey: null, deployments: '/srv/x' };
    expect(readEnvironment(path, {})).to.deep.equal(read);
    const given = { DEPLOY_RPC_URL: 'http://two', DEPLOY_PRIVATE_KEY: '0x12' };
    expect(readEnvironment(path, given)).to.deep.equal({ ...read, rpcUrl: 'http://two', privateKey: '0x12' });
    expect(() => readEnvironment(join(folder, 'none'), {})).to.throw(/--env: can't read/);
    expect(readEnvironment(undefined, {})).to.deep.equal({ rpcUrl: null, privateKey: null, deployments: null });
  });

  it('deploys, configures, and passes on to the owner of the configuration', async () => {
    expect((await deploy('deploy')).err).to.equal('');
    const { contracts, deploymentId } = record();
    expect((await deploy('configure')).out).to.contain(`+ curve poster ${poster!.address}`);
    expect((await deploy('configure')).out).to.contain('configured already');
    expect((await deploy('transfer-ownership')).err).to.equal('');

    const proposal = join(folder, 'accept.json');
    expect((await deploy('accept-ownership', ['--propose', proposal], '')).code).to.equal(0);
    const { transactions, meta, chainId } = JSON.parse(readFileSync(proposal, 'utf8')) as Proposal;
    expect(chainId).to.equal('8453');
    expect(meta.createdFromSafeAddress).to.equal(maker!.address);
    expect(transactions.map(({ to }) => to)).to.deep.equal(
      ['custodian', 'curveBook', 'entrypoint', 'orderSettler'].map((name) => Reflect.get(contracts, name)),
    );
    expect((await deploy('accept-ownership', [], executor!.privateKey)).err).to.match(/^NOT_OWNER: /);
    expect((await deploy('accept-ownership', [], maker!.privateKey)).code).to.equal(0);
    const status = await deploy('status', [], '');
    expect(status.out).to.contain(`curveBook ${contracts.curveBook}: owner ${maker!.address}`);
    expect(status.out).to.contain(deploymentId).and.to.contain(`executors: ${executor!.address}`);
  });

  it('leaves a record that the server starts from', () => {
    const keys = { POSTER_PRIVATE_KEY: poster!.privateKey, OPERATOR_ADDRESS: owner!.address, RPC_URL: rpcUrl };
    const config = loadConfig({ MANIFEST: join(folder, '8453.json'), ROLES: 'watcher,gateway' }, keys);
    expect(config.manifest.deploymentId).to.equal(record().deploymentId);
    expect(config.manifest.contracts.custodian).to.equal(record().contracts.custodian.toLowerCase());
  });

  it('verifies what is deployed by compiling the very input that explorers get', async () => {
    const verified = await deploy('verify', [], '');
    expect(verified.err).to.equal('');
    const { contracts, implementations } = record();
    const provider = new JsonRpcProvider(rpcUrl);
    const targets = JSON.parse(
      readFileSync(join(folder, '8453.verify', 'contracts.json'), 'utf8'),
    ) as VerificationTarget[];
    const proxies = ['custodian', 'curveBook', 'entrypoint'] as const;
    const names = [...proxies, 'orderSettler', 'lens', 'adapter', ...proxies.map((name) => `${name} implementation`)];
    expect(targets.map(({ name }) => name)).to.deep.equal(names);
    const deployed = new Map<string, string>([
      ...Object.entries(contracts),
      ...proxies.map((name) => [`${name} implementation`, implementations[name].address] as const),
    ]);
    for (const { name, address, qualifiedName, codeHash } of targets) {
      expect(address, name).to.equal(deployed.get(name));
      expect(keccak256(await provider.getCode(address)), name).to.equal(codeHash);
      expect(verified.out).to.contain(`${name} ${address} is ${qualifiedName}`);
    }
    provider.destroy();
    const [proxy] = targets;
    expect(proxy).to.include({ name: 'custodian', contract: 'PlatformProxy' });
    expect(proxy!.compilerVersion).to.match(/^v0\.8\.37\+commit\.\w{8}$/);
    const input = JSON.parse(readFileSync(join(folder, proxy!.inputFile), 'utf8')) as { language: string };
    expect(input.language).to.equal('Solidity');
    expect((await deploy('verify', ['--only', 'nothing'], '')).err).to.match(/^BAD_ARGUMENT: /);
  });

  it('does not verify what was made with other arguments', async () => {
    const path = join(folder, '8453.json');
    const text = readFileSync(path, 'utf8');
    const changed = record();
    const args = changed.constructorArgs['lens']!;
    changed.constructorArgs['lens'] = `${args.slice(0, -40)}${'ab'.repeat(20)}`;
    writeFileSync(path, JSON.stringify(changed));
    const { code, err } = await deploy('verify', ['--only', 'lens'], '');
    writeFileSync(path, text);
    expect(code).to.equal(1);
    expect(err).to.match(/^UNVERIFIED: lens /);
  });

  describe('with an explorer', () => {
    let explorer: Server;
    let apiUrl: string;
    const submitted: URLSearchParams[] = [];

    before(async () => {
      explorer = createServer((request, response) => {
        const action = new URL(request.url ?? '/', 'http://explorer').searchParams.get('action');
        let body = '';
        request.on('data', (chunk) => (body += String(chunk)));
        request.on('end', () => {
          const answers: Record<string, object> = {
            getsourcecode: { status: '0', message: 'NOTOK', result: [] },
            checkverifystatus: { status: '1', message: 'OK', result: 'Pass - Verified' },
          };
          if (body !== '') submitted.push(new URLSearchParams(body));
          response.setHeader('content-type', 'application/json');
          response.end(JSON.stringify(answers[action ?? ''] ?? { status: '1', message: 'OK', result: 'guid' }));
        });
      });
      await new Promise<void>((resolve) => explorer.listen(0, '127.0.0.1', resolve));
      apiUrl = `http://127.0.0.1:${(explorer.address() as AddressInfo).port}/api`;
    });
    after(() => void explorer.close());

    it('submits source and constructor arguments', async () => {
      const args = ['--only', 'lens', '--explorer', 'blockscout', '--api-url', apiUrl];
      const outcome = await deploy('verify', args, '');
      expect(outcome.err).to.equal('');
      expect(outcome.out).to.contain(`lens ${record().contracts.lens} is verified`);
      expect(submitted).to.have.length(1);
      const [form] = submitted;
      expect(form!.get('contractaddress')).to.equal(record().contracts.lens);
      expect(form!.get('contractname')).to.equal('project/contracts/periphery/CurveLens.sol:CurveLens');
      expect(form!.get('sourceCode')).to.contain('Everything that can be traded now');
      expect(form!.toString()).to.contain(record().constructorArgs['lens']!.slice(2));
    });
  });
});
