/** What the pages of the docs are made of, before any browser shows them. */
import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

interface Site {
  pages: Map<string, { title: string; body: string }>;
  search: { id: string; title: string; text: string }[];
  problems: string[];
}

describe('pages of the docs', () => {
  let site: Site;
  let renderGuide: (
    text: string,
    linkOf: (href: string) => string | null,
  ) => { html: string; sections: { id: string }[] };

  before(async () => {
    const load = async (name: string): Promise<unknown> =>
      import(pathToFileURL(join(ROOT, `scripts/docs/${name}`)).href);
    const { readSite } = (await load('site.mjs')) as { readSite(facts: { remedies: Record<string, string> }): Site };
    ({ renderGuide } = (await load('markdown.mjs')) as { renderGuide: typeof renderGuide });
    site = readSite({ remedies: { off_tick: 'take another price' } });
  });

  it('have a link for each of the guides', () => {
    expect(site.problems).to.deep.equal([]);
    const guides = execFileSync('git', ['ls-files', 'docs/*.md'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
    expect(guides.length).to.be.greaterThan(10);
    for (const guide of guides) expect(site.pages.has(`/${guide.slice(0, -3)}`), guide).to.equal(true);
  });

  it('link to anchors that are there', () => {
    const idsOf = (body: string): string[] => [...body.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!);
    const ids = new Map([...site.pages].map(([path, { body }]) => [path, idsOf(body)]));
    const missing = [...site.pages].flatMap(([path, { body }]) => {
      const links = [...body.matchAll(/ href="((?:\/docs[^"#]*)?)#([^"/]+)"/g)];
      expect(new Set(ids.get(path)).size, path).to.equal(ids.get(path)?.length);
      return links
        .filter(([, to, anchor]) => ids.get(to === '' ? path : to!)?.includes(anchor!) !== true)
        .map(([link]) => `${path}: ${link}`);
    });
    expect(missing).to.deep.equal([]);
  });

  it('tell of each code that the server, its contracts and the SDK refuse by', () => {
    const sources = execFileSync('git', ['ls-files', 'server/*.ts', 'sdk/src/*.ts', 'web/src/*.ts'], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    const text = sources.trim().split('\n').map(read).join('\n');
    const codes = new Set(
      [
        ...text.matchAll(/new ApiError\(\s*\d+,\s*'(\w+)'/g),
        ...text.matchAll(/new CurvebookError\(\s*'(\w+)'/g),
        ...read('sdk/src/errors.ts').matchAll(/^ {2}(\w+): '/gm),
        ...read('server/orders/refusals.ts').matchAll(/refusal\(\s*'(\w+)'/g),
        ...execFileSync('git', ['ls-files', 'contracts/interfaces/*.sol'], { cwd: ROOT, encoding: 'utf8' })
          .trim()
          .split('\n')
          .map(read)
          .join('\n')
          .matchAll(/^\s*error (\w+)\(/gm),
      ].map(([, code]) => code!),
    );
    expect(codes.size).to.be.greaterThan(100);
    expect([...codes].filter((code) => !site.pages.has(`/docs/errors/${code}`))).to.deep.equal([]);
    const { body } = site.pages.get('/docs/errors/off_tick')!;
    expect(body).to.include('take another price').and.to.include('the price is between two ticks');
    expect(body).to.include('href="/docs/orders#refusals"');
    expect(site.pages.get('/docs/errors/not_ready')!.body).to.include('/docs/errors/NOT_READY');
  });

  it('are searched by their sections, codes and endpoints, each once', () => {
    const ids = site.search.map(({ id }) => id);
    expect(new Set(ids).size).to.equal(ids.length);
    for (const id of [
      '/docs/orders#reconnecting',
      '/docs/errors/CurveExpired',
      '/docs/api#/Orders/postExchange',
      '/docs/stream#l2Book',
    ])
      expect(ids).to.include(id);
  });

  it('have the anchors that GitHub gives, and nothing of a guide runs', () => {
    const { sections } = renderGuide(
      "# How it is made (`core/curve/`)\n## Late fills, and why the operator can't lose\n## Again\n## Again\n",
      () => null,
    );
    expect(sections.map(({ id }) => id)).to.deep.equal([
      'how-it-is-made-corecurve',
      'late-fills-and-why-the-operator-cant-lose',
      'again',
      'again-1',
    ]);
    const { html } = renderGuide(
      '# T\n\n<script>alert(1)</script>\n\n[a](javascript:x) <img src=x onerror=y>\n\n<!-- not run: x -->\n\n```sh\n<b>\n```\n',
      () => null,
    );
    expect(html).not.to.match(/<script|<img|<b>|javascript:|not run/);
    expect(html).to.include('&lt;script&gt;');
  });
});
