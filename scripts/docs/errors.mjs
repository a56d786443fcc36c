/** Every error code, from the tables of the guides and from the SDK's advice. */
import { markdown, plain } from './markdown.mjs';

/**
 * @typedef {{ guide: string, section: string, id: string, columns: [name: string, html: string][], text: string }} Place
 * @typedef {{ code: string, places: Place[], remedy: string | null }} ErrorCode
 */

/** Headings of the columns that contain codes. */
const HOLDS_CODES = new Set(['code', 'error', 'reason.code', 'blockedby', 'reason']);
const CODE = /^([A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*)(?:\(.*\))?$/;

/**
 * Codes of one guide's tables, in their order.
 * @param {string} name the guide's, for links
 * @param {import('./markdown.mjs').Guide} guide
 * @param {(href: string) => string | null} linkOf
 * @returns {{ code: string, place: Place }[]}
 */
export function codesOf(name, guide, linkOf) {
  const marked = markdown(linkOf);
  const inline = (cell) => marked.parser([{ type: 'text', raw: cell.text, text: cell.text, tokens: cell.tokens }]);
  const found = [];
  let at = { title: guide.title, id: '' };
  for (const token of guide.tokens) {
    if (token.type === 'heading') at = { title: plain(token), id: token.id };
    if (token.type !== 'table') continue;
    const names = token.header.map((cell) => plain(cell));
    const column = names.findIndex((one) => HOLDS_CODES.has(one.toLowerCase()));
    if (column === -1) continue;
    for (const row of token.rows) {
      const codes = row[column].tokens.flatMap((one) => (one.type === 'codespan' ? [CODE.exec(one.text)?.[1]] : []));
      const others = row.flatMap((cell, i) =>
        i === column || cell.text === '' ? [] : [[names[i] === '' ? 'means' : names[i], inline(cell)]],
      );
      const text = row.flatMap((cell, i) => (i === column ? [] : [plain(cell)])).join(' ');
      const place = { guide: name, section: at.title, id: at.id, columns: others, text };
      found.push(...codes.flatMap((code) => (code === undefined ? [] : [{ code, place }])));
    }
  }
  return found;
}

/**
 * All of them, by code, sorted as people look them up.
 * @param {{ code: string, place: Place }[]} found
 * @param {Readonly<Record<string, string>>} remedies of the SDK, by code
 * @returns {ErrorCode[]}
 */
export function errorCodes(found, remedies) {
  /** @type {Map<string, ErrorCode>} */
  const byCode = new Map();
  for (const { code, place } of found) {
    const known = byCode.get(code) ?? { code, places: [], remedy: remedies[code] ?? null };
    byCode.set(code, { ...known, places: [...known.places, place] });
  }
  return [...byCode.values()].sort((a, b) => a.code.localeCompare(b.code, 'en'));
}
