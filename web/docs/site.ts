/** What every page of the docs does: search over all of them, and the theme that the console has. */
import MiniSearch from 'minisearch';
import type { SearchResult } from 'minisearch';
import { applyTheme, nextTheme, storedTheme } from '../src/theme.js';
import './docs.css';

interface Found {
  id: string;
  title: string;
  where: string;
  text: string;
}

const RESULTS_MAX = 20;
const SNIPPET_CHARS = 140;

themeButton();
search();

function themeButton(): void {
  applyTheme(storedTheme());
  const button = document.getElementById('theme');
  if (button === null) return;
  const show = (): void => void (button.textContent = `Theme: ${storedTheme()}`);
  button.addEventListener('click', () => {
    applyTheme(nextTheme(storedTheme()));
    show();
  });
  show();
  button.hidden = false;
}

/** The index is asked for when somebody wants to search, once, from this server; the rest happens here. */
function search(): void {
  const form = document.getElementById('search');
  const query = document.getElementById('query');
  const results = document.getElementById('results');
  const index = document.querySelector<HTMLMetaElement>('meta[name="search-index"]')?.content;
  if (form === null || !(query instanceof HTMLInputElement) || results === null || index === undefined) return;
  let loading: Promise<{ mini: MiniSearch<Found>; byId: Map<string, Found> }> | null = null;
  const load = async () => {
    const reply = await fetch(index);
    if (!reply.ok) throw new Error(`the index is not there: ${reply.status}`);
    const all = (await reply.json()) as Found[];
    const mini = new MiniSearch<Found>({
      fields: ['title', 'where', 'text'],
      // Names of codes and settings are one word, and are found by their parts, too.
      tokenize: (text) => text.split(/[^\p{L}\p{N}_]+/u).flatMap((word) => [word, ...wordsOf(word)]),
      searchOptions: { boost: { title: 4, where: 2 }, prefix: true, fuzzy: 0.15, combineWith: 'AND' },
    });
    mini.addAll(all);
    return { mini, byId: new Map(all.map((one) => [one.id, one])) };
  };
  const show = async (): Promise<void> => {
    const wanted = query.value.trim();
    if (wanted === '') {
      results.hidden = true;
      results.replaceChildren();
      return;
    }
    try {
      loading ??= load();
      const { mini, byId } = await loading;
      if (query.value.trim() !== wanted) return;
      const found = mini.search(wanted).slice(0, RESULTS_MAX);
      results.replaceChildren(...drawn(found, byId, wanted));
    } catch {
      loading = null;
      results.replaceChildren(element('p', 'The search index can’t be read: is the server there?'));
    }
    results.hidden = false;
  };
  query.addEventListener('input', () => void show());
  query.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    query.value = '';
    void show();
  });
  // A result on this very page moves the page alone.
  results.addEventListener('click', ({ target }) => {
    if (!(target instanceof Element) || target.closest('a') === null) return;
    query.value = '';
    results.hidden = true;
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void show().then(() => results.querySelector('a')?.click());
  });
  form.hidden = false;
}

const wordsOf = (word: string): string[] => (/_|[a-z][A-Z]/.test(word) ? word.split(/_|(?<=[a-z])(?=[A-Z])/) : []);

function drawn(found: readonly SearchResult[], byId: ReadonlyMap<string, Found>, wanted: string): HTMLElement[] {
  if (found.length === 0) return [element('p', `Nothing is found for “${wanted}”.`)];
  const list = document.createElement('ol');
  for (const { id, terms } of found) {
    const one = byId.get(String(id));
    if (one === undefined) continue;
    const item = document.createElement('li');
    const link = element('a', one.title);
    link.setAttribute('href', one.id);
    item.append(link, element('span', ` ${one.where}`), element('p', snippet(one.text, terms)));
    list.append(item);
  }
  return [element('p', found.length === 1 ? '1 place' : `${found.length} places`), list];
}

/** The text around the first term. */
function snippet(text: string, terms: readonly string[]): string {
  const lower = text.toLowerCase();
  const places = terms.map((term) => lower.indexOf(term)).filter((place) => place !== -1);
  const start = Math.max(0, Math.min(text.length, ...places) - SNIPPET_CHARS / 2);
  const end = start + SNIPPET_CHARS;
  return `${start > 0 ? '… ' : ''}${text.slice(start, end)}${end < text.length ? ' …' : ''}`;
}

function element(tag: string, text: string): HTMLElement {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}
