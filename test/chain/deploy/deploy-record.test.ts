/** What keeps commands from using another chain's configuration, and from overwriting what another command recorded. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { NonceManager, Wallet, type JsonRpcProvider } from 'ethers';
import { CONTRACT_NAMES, connectContracts } from '../../../deploy/contracts.js';
import { lockFiles } from '../../../deploy/owner/lock.js';
import { readDeployLine } from '../../../deploy/options.js';
import { deploymentFiles, writeJson, type DeploymentRecord } from '../../../deploy/record.js';
import { runCommand } from '../../../deploy/run-command.js';
import { sandboxAccounts } from '../../../deploy/sandbox/accounts.js';
import { startChain } from '../../../deploy/sandbox/chain.js';
import { connect } from '../../../deploy/transactions.js';
import { addressesOf } from '../../../deploy/upgrade/upgrade.js';
import { startChild } from '../../support/child.js';
import { refusal } from '../../support/contracts/owner.js';

describe('commands on one record', function () {
  this.timeout(240_000);
  const [owner, poster, settler, executor, maker, next] = sandboxAccounts();
  let chain: Awaited<ReturnType<typeof startChain>>;
  let provider: JsonRpcProvider;
  let folder: string;
  let otherChain: string;
  let files: ReturnType<typeof deploymentFiles>;
  const settings = {
    ...{ chainId: 8453, owner: next!.address, withdrawDelaySec: 600, tokens: [], markets: [] },
    ...{ curvePosters: [poster!.address], claimPosters: [settler!.address], executors: [executor!.address] },
  };

  before(async () => {
    chain = await startChain({ host: '127.0.0.1', port: 0, blockTimeMs: 30 });
    provider = connect(chain.rpcUrl);
    folder = mkdtempSync(join(tmpdir(), 'curvebook-record-'));
    files = deploymentFiles(folder, 8453);
    otherChain = join(folder, 'other.json');
    writeFileSync(join(folder, '8453.config.json'), JSON.stringify(settings));
    writeFileSync(otherChain, JSON.stringify({ ...settings, chainId: 1, owner: maker!.address }));
  });
  after(async () => {
    provider?.destroy();
    await chain?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  let printed: string[] = [];
  /** Runs a command line; calls back with each line that it prints. */
  async function run(args: string, key = owner!.privateKey, told: (line: string) => void = () => undefined) {
    printed = [];
    const print = (line: string): void => {
      printed.push(line);
      told(line);
    };
    const [command = '', ...rest] = args.split(' ');
    const line = readDeployLine([command, '--rpc', chain.rpcUrl, '--deployments', folder, ...rest])!;
    await runCommand(line, { print, env: { DEPLOY_PRIVATE_KEY: key } });
  }
  const record = (): DeploymentRecord => files.read()!;
  const nonce = () => provider.getTransactionCount(owner!.address);

  it('refuse the configuration of another chain before they use anything of it', async () => {
    expect(await refusal(run(`deploy --config ${otherChain}`))).to.include({ code: 'WRONG_CHAIN' });
    await run('deploy');
    const before = await nonce();
    for (const command of ['transfer-ownership', 'configure', 'deploy'])
      for (const mode of ['', ' --dry-run', ` --propose ${join(folder, 'calls.json')}`]) {
        if (command === 'deploy' && mode.includes('propose')) continue;
        const { code, message } = await refusal(run(`${command} --config ${otherChain}${mode}`));
        expect([command + mode, code]).to.deep.equal([command + mode, 'WRONG_CHAIN']);
        expect(message).to.contain(`${otherChain} is for chain 1, this is 8453`);
      }
    expect(await nonce(), 'nothing is sent').to.equal(before);
    expect(existsSync(join(folder, 'calls.json'))).to.equal(false);
  });

  it('accept the rest after an acceptance that was cut off, whoever asks', async () => {
    const dry = await refusal(run('accept-ownership --dry-run'));
    expect(dry).to.include({ code: 'NOT_OWNER', message: 'the ownership was offered to nobody' });
    await run('transfer-ownership');
    const signer = new NonceManager(new Wallet(next!.privateKey, provider));
    await (await connectContracts(addressesOf(record()), signer).custodian.acceptOwnership()).wait();
    await run('accept-ownership --dry-run');
    expect(printed).to.have.length(CONTRACT_NAMES.length - 1);
    await run(`transfer-ownership --to ${next!.address}`, next!.privateKey).catch(() => undefined);
    await run('accept-ownership', next!.privateKey);
    await run(`transfer-ownership --to ${owner!.address}`, next!.privateKey);
    await run('accept-ownership');
  });

  it('are one at a time as far as they write it, and those that only look are not in the way', async () => {
    let second: Promise<{ code: string; message: string }> | undefined;
    let looked: Promise<void> | undefined;
    await run('configure', owner!.privateKey, () => {
      second ??= refusal(run(`configure --propose ${join(folder, 'calls.json')}`, ''));
      looked ??= run('status', '');
    });
    expect(await second).to.include({ code: 'INTERRUPTED' });
    expect((await second)!.message).to.contain(`another command is at work with ${files.path}`);
    await looked;
    expect(existsSync(join(folder, 'calls.json'))).to.equal(false);
    await run('configure');
    expect(printed.join('\n')).to.contain('everything is configured already');
  });

  it('wait for no process that was killed', async () => {
    const holder = startChild('test/support/children/lock-child.ts', [folder, '8453']);
    try {
      await holder.line((line) => line === 'held', 60_000);
      const before = await nonce();
      for (const command of ['configure', 'deploy', `transfer-ownership --to ${maker!.address}`])
        expect([command, (await refusal(run(command))).code]).to.deep.equal([command, 'INTERRUPTED']);
      expect(await nonce()).to.equal(before);
      await run('configure --dry-run');
    } finally {
      await holder.end('SIGKILL');
    }
    await run('configure');
  });

  it('that only look write what the chain says unless another one is at work, or has written meanwhile', async () => {
    const real = record();
    const { entrypoint } = real.implementations;
    const elsewhere = { ...entrypoint, address: maker!.address };
    const before = { ...real, implementations: { ...real.implementations, entrypoint: elsewhere } };
    files.write({ ...before, previous: { entrypoint: [entrypoint] } });
    const unlock = lockFiles(files);
    await run('status', '');
    expect(printed.join('\n')).to.contain(`entrypoint runs Entrypoint ${entrypoint.address} now`);
    expect(record().implementations.entrypoint, 'another one is at work').to.deep.equal(elsewhere);
    unlock();
    // Another command records a proposal after this one has read the record.
    const proposal = { custodian: [{ ...real.implementations.custodian, address: settler!.address }] };
    let written = false;
    await run('status', '', () => {
      if (!written) files.write({ ...record(), proposed: proposal });
      written = true;
    });
    expect(record().proposed, 'not lost').to.deep.equal(proposal);
    expect(record().implementations.entrypoint).to.deep.equal(elsewhere);
    await run('status', '');
    expect(record().implementations.entrypoint).to.deep.equal(entrypoint);
    // What the chain does not have did not run; it may yet.
    expect(record().proposed).to.deep.equal({ ...proposal, entrypoint: [elsewhere] });
    files.write(real);
  });

  it('say which lock they can not take', async () => {
    const text = readFileSync(files.path, 'utf8');
    const copy = join(folder, 'copy');
    mkdirSync(join(copy, '8453.lock'), { recursive: true });
    writeFileSync(join(copy, '8453.json'), text);
    const config = ` --config ${join(folder, '8453.config.json')}`;
    const { code, message } = await refusal(run(`configure${config} --deployments ${copy}`));
    expect(code).to.equal('BAD_ARGUMENT');
    expect(message).to.contain(`can't lock ${join(copy, '8453.lock')}: `);
    await run(`status --deployments ${copy}`, '');
  });

  it('make no folder and no lock where nothing is deployed', async () => {
    const none = join(folder, 'none');
    const config = ` --config ${join(folder, '8453.config.json')}`;
    for (const command of [`configure${config}`, 'status', 'rollback --only custodian', `transfer-ownership${config}`])
      expect((await refusal(run(`${command} --deployments ${none}`))).code).to.equal('NOT_DEPLOYED');
    expect(existsSync(none)).to.equal(false);
  });

  it('write files whole, each beside whatever another one is writing', () => {
    const path = join(folder, 'file.json');
    writeFileSync(`${path}.partial`, 'half of anoth');
    writeJson(path, { a: 1 });
    expect(readFileSync(`${path}.partial`, 'utf8')).to.equal('half of anoth');
    expect(JSON.parse(readFileSync(path, 'utf8'))).to.deep.equal({ a: 1 });
    expect(() => writeJson(folder, {})).to.throw();
    const left = [
      ...readdirSync(folder),
      ...readdirSync(tmpdir()).filter((name) => name.startsWith('curvebook-record-')),
    ];
    expect(left.filter((name) => name.endsWith('.partial'))).to.deep.equal(['file.json.partial']);
  });

  it('take no call that is no call data', async () => {
    const { code, message } = await refusal(run('upgrade --dry-run --call custodian=0x123'));
    expect(code).to.equal('BAD_ARGUMENT');
    expect(message).to.contain('0x123 is no call data');
  });
});
