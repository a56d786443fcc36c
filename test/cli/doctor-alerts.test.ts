/** How doctor asks the receiver of alerts: with the login that Alertmanager would send, and without telling anybody its secrets. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { createReport, type Finding } from '../../cli/commands/doctor/finding.js';
import { checkAlerts } from '../../cli/commands/doctor/machine.js';

const SECRETS = ['us:er', 'us%3Aer', 'se cret', 'se%20cret', 'token'];

describe('the receiver of alerts', () => {
  let server: Server;
  let host: string;
  let status: number;
  /** Method, path and login of each request. */
  let asked: string[];

  beforeEach(async () => {
    [status, asked] = [200, []];
    server = createServer(({ method, url, headers }, response) => {
      asked.push(`${method} ${url} ${headers.authorization ?? 'nobody'}`);
      response.statusCode = status;
      if (status === 302) response.setHeader('location', '/elsewhere/token');
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  async function check(url: string, test = false): Promise<Finding> {
    const report = createReport();
    await checkAlerts(url, test, report, () => 0);
    expect(report.findings).to.have.length(1);
    const said = JSON.stringify(report.findings);
    for (const secret of SECRETS) expect(said).to.not.include(secret);
    return report.findings[0]!;
  }

  it('is asked with the login of its URL', async () => {
    const login = `Basic ${Buffer.from('us:er:se cret').toString('base64')}`;
    const url = `http://us%3Aer:se%20cret@${host}/hook/token?key=token`;
    expect(await check(url)).to.include({ level: 'ok', subject: host, message: 'answers (200)' });
    expect(await check(url, true)).to.include({ level: 'ok', subject: host, message: 'took a test alert (200)' });
    expect(asked).to.deep.equal([`HEAD /hook/token?key=token ${login}`, `POST /hook/token?key=token ${login}`]);
    await check(`http://${host}/hook`);
    await check(`http://100%25@${host}/hook`);
    expect(asked.slice(2)).to.deep.equal([
      'HEAD /hook nobody',
      `HEAD /hook Basic ${Buffer.from('100%:').toString('base64')}`,
    ]);
  });

  it('is named by its host alone, whatever goes wrong', async () => {
    status = 404;
    expect((await check(`http://us%3Aer:se%20cret@${host}/token`)).message).to.equal('answers 404');
    status = 302;
    expect((await check(`http://us%3Aer:se%20cret@${host}/token`)).message).to.equal("can't be asked");
    server.closeAllConnections();
    server.close();
    for (const [url, message] of [
      [`http://us%3Aer:se%20cret@${host}/token`, "can't be reached (ECONNREFUSED)"],
      [`https://us%3Aer:se%20cret@receiver.invalid/token`, /^can't be reached \((ENOTFOUND|EAI_AGAIN)\)$/],
      ['http://127.0.0.1:1/token', "can't be asked"],
      ['mailto:us:er@receiver/token', 'is no URL of http:// or https://'],
      ['us:er:se cret@receiver/token', 'is no URL of http:// or https://'],
      ['http://us%zzer:x@receiver/token', 'is no URL of http:// or https://'],
      ['http://us:er:se cret@rece iver/token', 'is no URL of http:// or https://'],
    ] as const) {
      const found = await check(url);
      expect(found, url).to.include({ level: 'fail', code: 'ALERTS' });
      if (typeof message === 'string') expect(found.message, url).to.equal(message);
      else expect(found.message, url).to.match(message);
    }
  });
});
