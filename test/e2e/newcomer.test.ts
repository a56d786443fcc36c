/**
 * From an empty folder to a filled order on a plain chain with id 8453, by nothing but the commands that docs/operators.md shows under
 * "From nothing", as they stand there: on SQLite served by one process, on PostgreSQL by the processes of the compose file.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { ExchangeClient, HttpTransport } from '@nktkas/hyperliquid';
import { expect } from 'chai';
import {
  Contract,
  Wallet,
  parseEther,
  parseUnits,
  type HDNodeWallet,
  type InterfaceAbi,
  type JsonRpcProvider,
} from 'ethers';
import { placePermit2, placeWeth } from '../../deploy/sandbox/canonical.js';
import { freePort } from '../../deploy/sandbox/ports.js';
import { connect, mined } from '../../deploy/transactions.js';
import { MintableToken__factory } from '../../typechain-types/factories/mocks/MintableToken__factory.js';
import { blocksOf } from '../support/console/docs.js';
import { containerOf, isOurs, ofProfile } from '../support/console/compose.js';
import { openReader, type Reader, type Running } from '../support/api/reader.js';
import { startProgram, type Program } from '../support/console/program.js';
import { forEachDatabaseUrl, until, type TestDatabase } from '../support/stack.js';
import type { Decomposition } from '../support/audit.js';

const BLOCKS = (() => {
  const text = readFileSync('docs/operators.md', 'utf8');
  const section = text.slice(text.indexOf('\n## From nothing\n')).split('\n### ')[0]!;
  return blocksOf(section).map(({ code }) => code);
})();
/** What each block of the section is for. */
const [INIT = '', DEPLOY = '', SERVE = '', OPERATE = '', ...MORE] = BLOCKS;

interface Deployment {
  sandbox: boolean;
  contracts: Record<string, { address: string; abi: InterfaceAbi }>;
  tokens: { symbol: string; address: string }[];
  markets: { pair: string; asset: number }[];
}

forEachDatabaseUrl((name, _open, openBare) =>
  describe(`A newcomer, ${name}`, function () {
    this.timeout(600_000);
    let database: TestDatabase;
    let folder: string;
    let chain: Program;
    let rpcUrl: string;
    let provider: JsonRpcProvider;
    let receiver: Server;
    let serverUrl: string;
    let usdc: string;
    let reader: Reader;
    let server: Running | undefined;
    const serving = new Map<string, Program>();
    /** Commands in a container have its environment. */
    let inContainers: Record<string, string>;
    const [owner, maker, taker] = [Wallet.createRandom(), Wallet.createRandom(), Wallet.createRandom()];

    before(async () => {
      expect([BLOCKS.length, MORE]).to.deep.equal([4, []]);
      database = await openBare();
      inContainers = name === 'SQLite' ? {} : { DATABASE_URL: database.url };
      reader = openReader({});
      folder = mkdtempSync(join(tmpdir(), 'curvebook-newcomer-'));
      receiver = createServer((_, response) => response.end());
      await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
      const port = await freePort('127.0.0.1');
      rpcUrl = `http://127.0.0.1:${port}`;
      const node = ['node_modules/.bin/hardhat', 'node', '--network', 'node', '--hostname', '127.0.0.1'];
      chain = startProgram([process.execPath, ...node, '--port', `${port}`], {});
      await until('the chain to listen', async () => chain.output().includes(rpcUrl));
      provider = connect(rpcUrl);
      expect((await provider.getNetwork()).chainId).to.equal(8453n);
      // What the real chain has at well-known addresses; everything else comes about by transactions.
      const rich = await provider.getSigner(0);
      await placePermit2(provider, rich);
      await placeWeth(provider);
      const token = await (await new MintableToken__factory(rich).deploy('USD Coin', 'USDC', 6)).waitForDeployment();
      usdc = await token.getAddress();
      await mined(token.mint(taker.address, parseUnits('10000', 6)));
      for (const { address } of [owner, maker, taker]) await give(address, '10');
    });

    after(async () => {
      for (const program of [...serving.values(), chain]) program?.kill('SIGKILL');
      for (const program of [...serving.values(), chain]) await program?.ended;
      await reader?.close();
      provider?.destroy();
      receiver?.closeAllConnections();
      receiver?.close();
      await database?.drop();
      rmSync(folder, { recursive: true, force: true });
    });

    async function give(address: string, ether: string): Promise<void> {
      const rich = await provider.getSigner(0);
      await mined(rich.sendTransaction({ to: address, value: parseEther(ether) }));
    }

    /** A block of the documentation with this run's places in it, and nothing else changed. */
    function filled(code: string, address: string): string {
      const alerts = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
      const text = code
        .replaceAll('/srv/curvebook', folder)
        .replace('--alerts https://…', `--alerts ${alerts}`)
        .replaceAll('https://…,https://…,https://…', rpcUrl)
        .replaceAll('https://…', rpcUrl)
        .replaceAll('0x…', address);
      expect(text, 'something is left for the reader to fill in').not.to.contain('…');
      return text;
    }

    const settings = (): Record<string, string> =>
      parseEnv(readFileSync(join(folder, '.env'), 'utf8')) as Record<string, string>;

    it('starts from an empty folder', async () => {
      const ports = { PORT: `${await freePort('127.0.0.1')}`, METRICS_PORT: `${await freePort('127.0.0.1')}` };
      // This chain's dollar is not where the real one is.
      const init = filled(INIT, owner.address).trimEnd() + ` --token USDC=${usdc}:6`;
      const output = (await reader.run(init, { ...ports, ...inContainers })).output;
      const signers = [...output.matchAll(/^\w+: (0x\w{40}) needs ether for gas$/gm)].map(([, address]) => address!);
      expect(signers).to.have.length(3);
      for (const address of signers) await give(address, '5');
      serverUrl = `http://127.0.0.1:${ports.PORT}`;
      for (const next of output.split('\nnext:\n')[1]!.trim().split('\n'))
        expect(BLOCKS.map((block) => filled(block, '')).join(''), 'is documented').to.include(next.trim());
    });

    it('deploys and configures, and doctor has no objection', async () => {
      const key = { DEPLOY_PRIVATE_KEY: owner.privateKey };
      const { output } = await reader.run(filled(DEPLOY, ''), { ...key, ...inContainers });
      expect(output).to.contain('+ market WETH-USDC');
      expect(output.split('\n').filter((line) => line.startsWith('FAIL'))).to.deep.equal([]);
    });

    it('serves', async () => {
      if (name === 'SQLite') {
        server = reader.start(filled(SERVE, ''));
        await server.line((line) => line.startsWith('serving '));
      } else {
        for (const [role, service] of ofProfile('roles').filter(([, one]) => isOurs(one))) {
          const { command, env } = containerOf(service, settings(), {
            databaseUrl: database.url,
            volumes: folder,
            port: Number.parseInt(settings()['PORT']!, 10),
            metricsPort: await freePort('127.0.0.1'),
          });
          serving.set(role, startProgram(command, env));
        }
      }
      await until('the platform to be ready', async () => {
        for (const [role, program] of serving)
          if (program.exitCode() !== null) throw new Error(`${role} ended:\n${program.output()}`);
        const answer = await fetch(`${serverUrl}/v0/status`).catch(() => null);
        return answer?.ok === true && ((await answer.json()) as { ready: boolean }).ready;
      });
    });

    it("approves a maker, whose order over the wire fills a taker's swap", async () => {
      const deployment = (await (await fetch(`${serverUrl}/v0/deployment`)).json()) as Deployment;
      expect(deployment.sandbox).to.equal(false);
      const { contracts, tokens, markets } = deployment;
      const contract = (which: string, wallet: HDNodeWallet): Contract =>
        new Contract(contracts[which]!.address, contracts[which]!.abi, wallet.connect(provider));
      const [weth = '', dollar = ''] = ['WETH', 'USDC'].map(
        (symbol) => tokens.find((one) => one.symbol === symbol)!.address,
      );
      const ERC20 = ['function approve(address, uint256)', 'function deposit() payable'];
      const [approve, ...looks] = filled(OPERATE, maker.address).trim().split('\n');
      expect(looks).to.have.length(2);
      const operate = async (command = ''): Promise<string> => (await reader.run(command, inContainers)).output;
      await operate(approve);

      const ownWeth = new Contract(weth, ERC20, maker.connect(provider));
      await mined(ownWeth.getFunction('deposit').send({ value: parseEther('2') }));
      await mined(ownWeth.getFunction('approve').send(contracts['custodian']!.address, parseEther('2')));
      await mined(contract('custodian', maker).getFunction('deposit').send(weth, parseEther('2')));
      await until('the deposit to be quotable', async () => {
        const { ledger } = (await (await fetch(`${serverUrl}/v0/makers/${maker.address}/limits`)).json()) as {
          ledger: { ready: boolean; balances: { token: string; available: string }[] };
        };
        return ledger.ready && ledger.balances.some(({ token, available }) => token === 'WETH' && available === '2');
      });
      const exchange = new ExchangeClient({ transport: new HttpTransport({ apiUrl: serverUrl }), wallet: maker });
      const asset = markets.find(({ pair }) => pair === 'WETH-USDC')!.asset;
      const ask = { a: asset, b: false, p: '2500.5', s: '0.5', r: false, t: { limit: { tif: 'Alo' as const } } };
      const { response } = await exchange.order({ orders: [ask], grouping: 'na' });
      expect(JSON.stringify(response.data.statuses)).to.match(/^\[\{"resting":\{"oid":\d+\}\}\]$/);

      const entrypoint = contract('entrypoint', taker);
      const pays = parseUnits('250.05', 6);
      const ownDollars = new Contract(dollar, ERC20, taker.connect(provider));
      await mined(ownDollars.getFunction('approve').send(contracts['entrypoint']!.address, pays));
      let quoted = 0n;
      await until('a quote', async () => {
        quoted = (await entrypoint.getFunction('quoteFor')(taker.address, dollar, weth, pays)) as bigint;
        return quoted > 0n;
      });
      const deadline = (await provider.getBlock('latest'))!.timestamp + 60;
      const args = [dollar, weth, pays, (quoted * 995n) / 1_000n, taker.address, deadline] as const;
      await mined(entrypoint.getFunction('swap').send(...args));

      const answer = async (path: string): Promise<Decomposition> =>
        (await (await fetch(`${serverUrl}${path}`)).json()) as Decomposition;
      await until('the fill to be attributed', async () => (await answer(PATH)).status === 'final');
      const { legs } = await answer(PATH);
      expect(legs.map((leg) => [leg.maker, leg.price, leg.size])).to.deep.equal([
        [maker.address.toLowerCase(), '2500.5', '0.1'],
      ]);
      // On a machine with much else to do, the chain in this process may not make blocks for a while, which is said, and rightly.
      await until('the platform to be ready', async () => /^ready$/m.test(await operate(looks[0])));
      expect(await operate(looks[1])).to.not.match(/differ/i);
    });

    it('and what was started stops when it is told to', async () => {
      // `npx` hands Ctrl-C on and ends by the signal itself.
      if (server !== undefined) expect(await server.stop()).to.be.oneOf([0, null]);
      for (const [role, program] of serving) {
        program.kill('SIGTERM');
        expect(await program.ended, `${role}:\n${program.output()}`).to.equal(0);
      }
      expect(await fetch(serverUrl).catch(() => null), 'nobody answers any more').to.equal(null);
    });
  }),
);

const PATH = '/v0/fills/1/decomposition?pair=WETH-USDC';
