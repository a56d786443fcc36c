/** A guide in Markdown as HTML, with the anchors that GitHub gives its headings, and as plain text to search in. */
import { Marked } from 'marked';

/**
 * @typedef {{ id: string, title: string, depth: number, text: string }} Section
 * @typedef {{ title: string, lead: string, html: string, sections: Section[], tokens: import('marked').Token[] }} Guide
 */

/** @param {string} text */
export const escape = (text) =>
  text.replace(/[&<>"]/g, (character) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[character] ?? '');

/**
 * The anchor of a heading; `taken` counts those that a page has had.
 * @param {string} title
 * @param {Map<string, number>} taken
 */
function slugOf(title, taken) {
  const slug = title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
  const before = taken.get(slug) ?? 0;
  taken.set(slug, before + 1);
  return before === 0 ? slug : `${slug}-${before}`;
}

/**
 * What a reader sees of a token.
 * @param {any} token
 * @returns {string}
 */
export function plain(token) {
  if (token.type === 'html' || token.type === 'space') return ' ';
  if (token.type === 'table')
    return [token.header, ...token.rows].map((row) => row.map((cell) => plain(cell)).join(' ')).join(' ');
  if (token.type === 'list') return token.items.map((item) => plain(item)).join(' ');
  if (Array.isArray(token.tokens) && token.tokens.length > 0) return token.tokens.map((inner) => plain(inner)).join('');
  return token.text ?? token.raw ?? '';
}

/**
 * @param {(href: string) => string | null} linkOf where a link of this guide leads on the site; null for a place that is not there
 */
export function markdown(linkOf) {
  const region = (name, html) =>
    `<div class="scroll" tabindex="0" role="region" aria-label="${escape(name)}">${html}</div>\n`;
  let heading = '';
  return new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth, id, text }) {
        heading = text.replaceAll('`', '');
        const title = this.parser.parseInline(tokens);
        const link =
          depth === 1 ? '' : ` <a class="anchor" href="#${id}" aria-label="Link to ${escape(heading)}">#</a>`;
        return `<h${depth} id="${id}">${title}${link}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const to = linkOf(href);
        const inner = this.parser.parseInline(tokens);
        return to === null ? inner : `<a href="${escape(to)}">${inner}</a>`;
      },
      code({ text, lang }) {
        const kind = /^\w+$/.test(lang ?? '') ? ` class="language-${lang}"` : '';
        return `<pre tabindex="0"><code${kind}>${escape(text)}\n</code></pre>\n`;
      },
      // Comments are instructions to tests and are left out; other HTML is escaped.
      html: ({ text }) => (/^\s*<!--[\s\S]*-->\s*$/.test(text) ? '' : escape(text)),
      table({ header, rows }) {
        const row = (cells, tag) =>
          `<tr>${cells.map(({ tokens }) => `<${tag}${tag === 'th' ? ' scope="col"' : ''}>${this.parser.parseInline(tokens)}</${tag}>`).join('')}</tr>`;
        // The header cell of a column without a heading is a plain cell.
        const head = row(header, 'th').replaceAll('<th scope="col"></th>', '<td></td>');
        return region(
          `Table of ${heading}`,
          `<table><thead>${head}</thead><tbody>${rows.map((cells) => row(cells, 'td')).join('')}</tbody></table>`,
        );
      },
    },
  });
}

/**
 * @param {string} text
 * @param {(href: string) => string | null} linkOf
 * @returns {Guide}
 */
export function renderGuide(text, linkOf) {
  const marked = markdown(linkOf);
  const tokens = marked.lexer(text);
  const taken = new Map();
  /** @type {Section[]} */
  const sections = [];
  let lead = '';
  for (const token of tokens) {
    if (token.type === 'heading') {
      const title = plain(token);
      Object.assign(token, { id: slugOf(title, taken) });
      sections.push({ id: token.id, title, depth: token.depth, text: '' });
      continue;
    }
    const said = plain(token).replace(/\s+/g, ' ').trim();
    if (lead === '' && token.type === 'paragraph') lead = said;
    const section = sections.at(-1);
    if (section !== undefined && said !== '') section.text += `${said} `;
  }
  return { title: sections[0]?.title ?? '', lead, html: marked.parser(tokens), sections, tokens };
}
