/** The console in Chromium, on a sandbox of its own. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { chromium, type Browser, type Page } from 'playwright-core';
import { openReader, type Reader, type Running } from '../api/reader.js';

const BROWSERS = [process.env.CHROMIUM ?? '', '/usr/bin/chromium'];
const executablePath = BROWSERS.find((path) => path !== '' && existsSync(path));
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
/** Pictures of every page, for people to look at. */
const PICTURES = fileURLToPath(new URL('../../../cache/console/', import.meta.url));
/** Height of a picture; the rest of a longer page is cut off. */
const PICTURE_MAX_PX = 3_000;
/** What a browser notes of a server that is away or says by 503 that it is behind: the page shows it, and has no part in it. */
const NO_FAULT = /ERR_CONNECTION_REFUSED|status of 503/;
/** A bound, not an expectation: machines that run tests are busy. */
const SOON_MS = 60_000;
/** Of what a page showed when its test failed, so much is told. */
const TOLD_CHARS = 4_000;
const TOLD_LINES = 25;
/** In the reason of a failure, which is listed with others. */
const REASON_CHARS = 1_200;

/** Whether there is a browser; if not, prints which tests are skipped. */
export function hasBrowser(): boolean {
  if (executablePath === undefined)
    console.log('skipped: the console in a browser, since there is no Chromium; Debian has it as the package chromium');
  return executablePath !== undefined;
}

export interface ConsoleInBrowser {
  url: string;
  sandbox: Running;
  /** Runs a command of the operator on this sandbox; resolves with what it printed. */
  curvebook(...words: string[]): Promise<string>;
  /** Kills the server's process, as a crash does; the chain goes on. */
  killServer(): void;
  /** Starts it again by the command that the sandbox prints then. */
  startServer(): Promise<void>;
  page: Page;
  /** Errors of the page, and whatever was asked of another machine, since the last call. */
  problems(): string[];
  /** Serious faults of accessibility, and a line if the page is wider than the window. */
  faults(): Promise<string[]>;
  picture(name: string): Promise<void>;
  /** Where the page is, what it shows, its problems so far and the newest lines of the sandbox: for a test that failed. */
  told(): Promise<string>;
  close(): Promise<void>;
}

/** Starts a sandbox, with these options of `npm start`, and opens a browser on it. Nothing is asked of any machine but this one. */
export async function openConsole(env: Record<string, string> = {}, options = ''): Promise<ConsoleInBrowser> {
  const reader: Reader = openReader({ PORT: '0', RPC_PORT: '0', BLOCK_TIME_MS: '500', ...env });
  let browser: Browser | null = null;
  try {
    const sandbox = reader.start(`SANDBOX_DIR=${reader.folder}/.curvebook npm start -- ${options}`);
    const said = await sandbox.line((line) => line.includes('server at http'));
    const url = /server at (http:\S+);/.exec(said)?.[1] ?? '';
    mkdirSync(PICTURES, { recursive: true });
    browser = await chromium.launch({
      ...(executablePath === undefined ? {} : { executablePath }),
      args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
    });
    const page = await browser.newPage();
    page.setDefaultTimeout(SOON_MS);
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
    page.on('console', (message) => {
      if (message.type() === 'error' && !NO_FAULT.test(message.text()))
        problems.push(`${message.text()} ${message.location().url}`);
    });
    page.on('request', (request) => {
      const { protocol, hostname } = new URL(request.url());
      if (protocol !== 'data:' && hostname !== new URL(url).hostname) problems.push(`asked ${request.url()}`);
    });
    const opened = browser;
    return {
      ...{ url, sandbox, page },
      problems: () => problems.splice(0),
      killServer: () => void expect(reader.signal('SIGKILL', ' serve ')).to.equal(1),
      async startServer() {
        const command = /node \S*curvebook\.mjs serve .*/;
        const line = await sandbox.line((one) => command.test(one));
        reader.start(command.exec(line)?.[0] ?? '');
      },
      async curvebook(...words) {
        const home = `${reader.folder}/.curvebook`;
        const where = `--manifest ${home}/sandbox.json --database sqlite:${home}/curvebook.sqlite`;
        return (await reader.run(`node scripts/curvebook.mjs ${words.join(' ')} ${where}`)).output;
      },
      async faults() {
        const wide = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
        // Put in by the browser's own door, which the policy of the page does not bar.
        await page.evaluate(readFileSync(AXE, 'utf8'));
        const { violations } = await page.evaluate<{
          violations: { id: string; impact: string; nodes: { html: string }[] }[];
        }>("axe.run({ resultTypes: ['violations'] })");
        const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
        return [
          ...(wide === 0 ? [] : [`wider than the window by ${String(wide)} pixels`]),
          ...serious.map(({ id, nodes }) => `${id}: ${nodes[0]?.html ?? ''}`),
        ];
      },
      async picture(name) {
        const height = await page.evaluate<number>('document.documentElement.scrollHeight');
        const { width = 0 } = page.viewportSize() ?? {};
        const clip = { x: 0, y: 0, width, height: Math.min(height, PICTURE_MAX_PX) };
        await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true, clip });
      },
      async told() {
        const body = await page
          .locator('body')
          .innerText({ timeout: 5_000 })
          .catch((error: unknown) => String(error));
        const text = body.replace(/\s*\n\s*/g, '\n');
        return [
          `at ${page.url()}`,
          ...problems.map((problem) => `problem: ${problem}`),
          `the page shows:\n${text.length > TOLD_CHARS ? `${text.slice(0, TOLD_CHARS)} …` : text}`,
          `the sandbox printed at last:\n${sandbox.lines().slice(-TOLD_LINES).join('\n')}`,
        ].join('\n');
      },
      async close() {
        await opened.close();
        await reader.close();
      },
    };
  } catch (error) {
    await browser?.close();
    await reader.close();
    throw error;
  }
}

/**
 * Opens a console before the tests of a suite and closes it after them. Each test must leave no problem of the page. One that fails says what the
 * page showed, in its output and, shorter, in its reason, and leaves a picture in cache/console/.
 */
export function withConsole(
  onOpened: (opened: ConsoleInBrowser) => void,
  env: Record<string, string> = {},
  options = '',
): void {
  let opened: ConsoleInBrowser | undefined;
  before(async () => {
    opened = await openConsole(env, options);
    onOpened(opened);
  });
  after(() => opened?.close());
  afterEach(async function () {
    const { currentTest } = this;
    if (opened === undefined) return;
    if (currentTest?.state === 'failed') {
      const name = `failed-${currentTest.title.replace(/[^a-z\d]+/gi, '-').slice(0, 60)}`;
      const told = `${await opened.told()}\na picture of it: cache/console/${name}.png`;
      console.log(`what the page showed when "${currentTest.title}" failed\n${told}`);
      if (currentTest.err !== undefined) currentTest.err.message += `\n${told.slice(0, REASON_CHARS)}`;
      await opened.picture(name).catch((error: unknown) => console.log(`no picture: ${String(error)}`));
    }
    expect(opened.problems()).to.deep.equal([]);
  });
}

/** Draws a page in both themes and at two widths, and judges each. */
export async function inAllLooks(
  { page, faults, picture }: ConsoleInBrowser,
  name: string,
): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const theme of ['light', 'dark'] as const) {
    for (const width of [390, 1_440]) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme: theme });
      const look = `${name}-${theme}-${width}`;
      await picture(look);
      const faulty = await faults();
      if (faulty.length > 0) found[look] = faulty;
    }
  }
  return found;
}
