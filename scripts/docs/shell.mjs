/** The frame around each page of the docs. It has no inline script or style, which the pages' Content-Security-Policy forbids: both are files. */
import { escape } from './markdown.mjs';

/** Groups of the list beside each page: path and name. */
export const NAVIGATION = [
  [
    'Trade',
    [
      ['/docs/takers', 'For takers'],
      ['/docs/swap', 'Gasless swaps'],
      ['/docs/contracts', 'The contracts'],
    ],
  ],
  [
    'Quote',
    [
      ['/docs/makers', 'For makers'],
      ['/docs/orders', 'The order interface'],
      ['/docs/curve', 'From book to curve'],
    ],
  ],
  [
    'Call',
    [
      ['/docs/api', 'Endpoints, to try'],
      ['/docs/exchange', 'Sign and send'],
      ['/docs/stream', 'WebSocket'],
      ['/docs/sdk', 'The SDK'],
      ['/docs/errors', 'Error codes'],
      ['/docs/reference', 'All on one page'],
    ],
  ],
  [
    'Operate',
    [
      ['/docs/operators', 'For operators'],
      ['/docs/runbook', 'Runbook'],
      ['/docs/settings', 'Settings'],
      ['/docs/scale', 'How far it scales'],
    ],
  ],
  [
    'Build on it',
    [
      ['/docs/architecture', 'Architecture'],
      ['/docs/glossary', 'Glossary'],
    ],
  ],
];

/**
 * @param {{ path: string, title: string, body: string, assets: { style: string, script: string, search: string, own?: string[] }, wide?: boolean }} page
 * `own` are further files that this page alone loads, in their order
 * @returns {string}
 */
export function shell({ path, title, body, assets, wide = false }) {
  const link = ([to, name]) =>
    `<li><a href="${to}"${to === path ? ' aria-current="page"' : ''}>${escape(name)}</a></li>`;
  const groups = NAVIGATION.map(([name, pages]) => `<h2>${name}</h2><ul>${pages.map(link).join('')}</ul>`).join('');
  const own = (assets.own ?? []).map((file) =>
    file.endsWith('.css')
      ? `<link rel="stylesheet" href="${file}">`
      : file.includes('/swagger')
        ? `<script src="${file}" defer></script>`
        : `<script type="module" src="${file}"></script>`,
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="search-index" content="${assets.search}">
<title>${escape(title)} · Curvebook docs</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="${assets.style}">${own.filter((one) => one.startsWith('<link')).join('')}
<script type="module" src="${assets.script}"></script>${own.filter((one) => one.startsWith('<script')).join('')}</head>
<body><a class="skip" href="#content">To the content</a>
<header class="top"><strong class="brand"><a href="/docs">Curvebook docs</a></strong>
<nav aria-label="Site"><a href="/">Console</a> <a href="#pages" class="narrow">All pages</a></nav>
<form role="search" id="search" hidden><label for="query" class="unseen">Search the docs</label>
<input type="search" id="query" placeholder="Search the docs" autocomplete="off" spellcheck="false" aria-controls="results"></form>
<button type="button" id="theme" hidden></button></header>
<div class="docs${wide ? ' wide' : ''}"><main id="content" tabindex="-1"><section id="results" aria-live="polite" aria-label="Search results" hidden></section>
${body}</main>
<nav class="side" id="pages" aria-label="Docs">${groups}</nav></div></body></html>
`;
}
