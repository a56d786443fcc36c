/** The docs site: every guide, error code and document of the API as a page, and the index for the search. */
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { projectRoot } from '../console.mjs';
import { codesOf, errorCodes } from './errors.mjs';
import { escape, renderGuide } from './markdown.mjs';
import { NAVIGATION, shell } from './shell.mjs';
import { streamPage } from './stream.mjs';

/** A longer source file is not shown. */
const SOURCE_MAX_BYTES = 200_000;
/** Folders whose files guides link to. These files become pages, too, so that such links work on the site. */
const SOURCES = /^(?:contracts|examples|snapshots|deploy|test)\//;

/**
 * @typedef {{ title: string, body: string, own?: 'api' | 'exchange' }} Page
 * @typedef {{ id: string, title: string, where: string, text: string }} Found one entry of the search index; `id` is the place on the site
 * @typedef {{ pages: Map<string, Page>, search: Found[], inputs: string[], problems: string[] }} Site
 */

/**
 * The site without the frame of its pages. `problems` are links that lead nowhere; `inputs` are the files that it was made of.
 * @param {{ remedies: Readonly<Record<string, string>> }} facts
 * @returns {Site}
 */
export function readSite({ remedies }) {
  /** @type {Site} */
  const site = { pages: new Map(), search: [], inputs: [], problems: [] };
  const sources = new Set();
  const text = (file) => {
    site.inputs.push(file);
    return readFileSync(join(projectRoot, file), 'utf8');
  };

  const linkOf = (guide) => (href) => {
    if (/^https?:/.test(href)) return href;
    const [path = '', anchor] = href.split('#');
    const end = anchor === undefined ? '' : `#${anchor}`;
    if (path === '') return end;
    const file = posix.normalize(posix.join('docs', path));
    if (/^docs\/[a-z]+\.md$/.test(file)) return `/docs/${file.slice(5, -3)}${end}`;
    if (/^docs\/(?:open|async)api\.json$/.test(file)) return `/${file.slice(5)}`;
    if (SOURCES.test(file) && existsSync(join(projectRoot, file))) {
      sources.add(file);
      return `/docs/source/${file}`;
    }
    site.problems.push(`docs/${guide}.md links to ${href}`);
    return null;
  };

  const found = [];
  const leads = {};
  for (const file of readdirSync(join(projectRoot, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .sort()) {
    const name = file.slice(0, -3);
    const guide = renderGuide(text(`docs/${file}`), linkOf(name));
    leads[`/docs/${name}`] = guide.lead;
    const fromElsewhere = (href) => (href.startsWith('#') ? `/docs/${name}${href}` : linkOf(name)(href));
    found.push(...codesOf(name, guide, fromElsewhere));
    site.pages.set(`/docs/${name}`, { title: guide.title, body: `${contents(guide)}${guide.html}` });
    for (const { id, title, text: said } of guide.sections)
      site.search.push({ id: `/docs/${name}#${id}`, title, where: guide.title, text: said });
  }
  addErrors(site, errorCodes(found, remedies));
  addStream(site, JSON.parse(text('docs/asyncapi.json')));
  addEndpoints(site, JSON.parse(text('docs/openapi.json')));
  addSources(site, sources, text);
  site.pages.set('/docs', { title: 'Docs', body: front(leads) });
  site.pages.set('404', {
    title: 'No such page',
    body: '<h1>No such page</h1><p>Search above, or start at <a href="/docs">the front page</a>.</p>',
  });
  return site;
}

/** The sections of a long guide, to jump to. */
function contents({ sections }) {
  const list = sections.filter(({ depth }) => depth === 2);
  if (list.length < 3) return '';
  const links = list.map(({ id, title }) => `<li><a href="#${id}">${escape(title)}</a></li>`).join('');
  return `<details class="contents"><summary>On this page</summary><ul>${links}</ul></details>`;
}

function addErrors(site, codes) {
  const spelled = (code) => code.toLowerCase().replaceAll('_', '');
  const link = (code) => `<a href="/docs/errors/${code}"><code>${code}</code></a>`;
  for (const { code, places, remedy } of codes) {
    const alike = codes.filter((one) => one.code !== code && spelled(one.code) === spelled(code));
    const parts = places.map(({ guide, section, id, columns }) => {
      const rows = columns.map(([name, html]) => `<dt>${escape(name)}</dt><dd>${html}</dd>`).join('');
      return `<h2><a href="/docs/${guide}#${id}">${escape(section)}</a></h2><dl class="columns">${rows}</dl>`;
    });
    const body = [
      `<p class="caption"><a href="/docs/errors">Error codes</a></p><h1><code>${code}</code></h1>`,
      remedy === null ? '' : `<p><strong>What to do:</strong> ${escape(remedy)}.</p>`,
      ...parts,
      alike.length === 0
        ? ''
        : `<p>Spelled alike, of another interface: ${alike.map((one) => link(one.code)).join(', ')}.</p>`,
    ];
    site.pages.set(`/docs/errors/${code}`, { title: code, body: body.join('\n') });
    const text = `${places.map((place) => place.text).join(' ')} ${remedy ?? ''}`;
    site.search.push({ id: `/docs/errors/${code}`, title: code, where: 'Error codes', text });
  }
  // Grouped by guide and section, in the order of the guides; a code that several places have is listed in each.
  const groups = new Map();
  for (const { code, places } of codes)
    for (const { guide, section, id, text } of places) {
      const key = `/docs/${guide}#${id}`;
      const group = groups.get(key) ?? { title: `${site.pages.get(`/docs/${guide}`).title}: ${section}`, rows: [] };
      group.rows.push(`<tr><td>${link(code)}</td><td>${escape(text)}</td></tr>`);
      groups.set(key, group);
    }
  const tables = [...groups].map(
    ([href, { title, rows }]) =>
      `<h2><a href="${href}">${escape(title)}</a></h2><div class="scroll" tabindex="0" role="region" aria-label="${escape(title)}"><table><thead><tr><th scope="col">Code</th><th scope="col">Means</th></tr></thead><tbody>${rows.join('')}</tbody></table></div>`,
  );
  site.pages.set('/docs/errors', {
    title: 'Error codes',
    body: `<h1>Error codes</h1><p>Every code that a request, an order, a transaction or a command is refused by, by the page that says more. Codes are stable: match on them, not on texts.</p>${tables.join('\n')}`,
  });
}

function addStream(site, document) {
  const { html, sections } = streamPage(document);
  site.pages.set('/docs/stream', { title: 'The WebSocket', body: html });
  for (const { id, title, text } of sections)
    site.search.push({ id: `/docs/stream#${id}`, title, where: 'WebSocket', text });
}

/** Adds the endpoints to the search index; the pages' own scripts draw them. */
function addEndpoints(site, { paths }) {
  for (const [path, methods] of Object.entries(paths))
    for (const [method, { tags, operationId, summary, description = '' }] of Object.entries(methods))
      site.search.push({
        id: `/docs/api#/${encodeURIComponent(tags[0])}/${operationId}`,
        title: `${method.toUpperCase()} ${path}`,
        where: 'Endpoints',
        text: `${summary}. ${description}`,
      });
  site.pages.set('/docs/api', {
    title: 'Endpoints',
    own: 'api',
    body: `<h1>Endpoints</h1><p>Every endpoint of this server, to read and to try: requests go to the server that this page came from. What has to be
signed is sent from <a href="/docs/exchange">Sign and send</a>. The same without script is <a href="/docs/reference">on one page</a>; as a document:
<a href="/openapi.json">openapi.json</a>.</p><div id="swagger"><p role="status">Reading the document …</p></div>`,
  });
  site.pages.set('/docs/exchange', {
    title: 'Sign and send',
    own: 'exchange',
    body: `<h1>Sign and send</h1><p><code>POST /exchange</code> takes signed actions, <code>POST /info</code> queries; both are sent to the server that this
page came from. What an action is and how it is signed says <a href="/docs/orders">the order interface</a>. In a sandbox, on the machine that it runs on, one of
its accounts signs here; anywhere else, sign by <a href="/docs/sdk">the SDK</a> or a published client.</p><div id="exchange"><p role="status">Asking the server …</p></div>`,
  });
}

/** The files of a linked folder that are shown: sources only, never settings or keys beside them. */
const SHOWN = /^[^.].*\.(sol|txt|ts|md)$/;

/** Adds pages for the files that guides link to, and for the files of linked folders. */
function addSources(site, sources, text) {
  for (const source of sources) {
    const path = join(projectRoot, source);
    if (!statSync(path).isDirectory()) continue;
    const names = readdirSync(path)
      .filter((name) => SHOWN.test(name) && statSync(join(path, name)).isFile())
      .sort();
    names.forEach((name) => sources.add(posix.join(source, name)));
    const items = names.map(
      (name) => `<li><a href="/docs/source/${posix.join(source, name)}">${escape(name)}</a></li>`,
    );
    site.pages.set(`/docs/source/${source}`, {
      title: source,
      body: `<h1><code>${escape(source)}</code></h1><ul>${items.join('')}</ul>`,
    });
  }
  for (const source of sources) {
    if (statSync(join(projectRoot, source)).isDirectory()) continue;
    const content = text(source);
    const shown = content.length > SOURCE_MAX_BYTES ? 'This file is too long to be shown here.' : content;
    site.pages.set(`/docs/source/${source}`, {
      title: source,
      body: `<h1><code>${escape(source)}</code></h1><pre tabindex="0"><code>${escape(shown)}</code></pre>`,
    });
  }
}

/** The front page: what there is, for whom. */
function front(leads) {
  const cards = NAVIGATION.map(([name, pages]) => {
    const links = pages.map(
      ([path, title]) =>
        `<li><a href="${path}">${escape(title)}</a>${leads[path] === undefined ? '' : `<p>${escape(firstSentence(leads[path]))}</p>`}</li>`,
    );
    return `<section><h2>${name}</h2><ul>${links.join('')}</ul></section>`;
  });
  return `<h1>Docs</h1><p>Makers sign limit orders; all of them are merged into one book and posted on-chain as a curve; takers swap against it, and each
maker is paid its own price.</p><div class="cards">${cards.join('')}</div>`;
}

const firstSentence = (text) => /^.*?[.:;](?=\s|$)/.exec(text)?.[0].replace(/[:;]$/, '.') ?? text;

/**
 * The whole site as one file's value, by path.
 * @param {Site} site
 * @param {{ style: string, script: string, search: string, api: string[], exchange: string[] }} files as the pages name them
 * @returns {Record<string, string>}
 */
export function framed({ pages }, { style, script, search, ...own }) {
  return Object.fromEntries(
    [...pages].map(([path, page]) => {
      const assets = { style, script, search, own: page.own === undefined ? [] : own[page.own] };
      return [path, shell({ path, title: page.title, body: page.body, assets, wide: page.own === 'api' })];
    }),
  );
}
