import { createHash } from 'node:crypto';
import type { OpenApiDocument } from './document.js';

type Json = Record<string, unknown>;

const STYLE = `
  :root { color-scheme: light dark; --line: #8884; --soft: #8881; --link: light-dark(#0b57a4, #7db8f5); }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
  h1 { margin-bottom: 0; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
  article { margin: 1.5rem 0 2.5rem; } h3 { font: 600 1rem ui-monospace, monospace; background: var(--soft); padding: .4rem .6rem; }
  a { color: var(--link); } h3, code, td, p { overflow-wrap: anywhere; }
  table { border-collapse: collapse; } td, th { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; }
  pre { background: var(--soft); padding: .6rem; overflow: auto; font-size: .85rem; } code { font-family: ui-monospace, monospace; }
`;

/** Content security policy of the page: no script and nothing loaded; its style is allowed by its hash. */
export const PAGE_POLICY = `default-src 'none'; img-src data:; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** A readable HTML page of the document, without scripts or external resources. */
export function documentPage(document: OpenApiDocument): string {
  const info = document.info as { title: string; version: string; description: string };
  const tags = (document.tags as { name: string }[]).map(({ name }) => name);
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const sections = tags.map((tag) => {
    const own = operations.filter(({ operation }) => (operation.tags as string[]).includes(tag));
    return `<section><h2>${escape(tag)}</h2>${own.map(article).join('')}</section>`;
  });
  const schemas = Object.entries(document.components.schemas).map(
    ([name, schema]) => `<article id="${escape(name)}"><h3>${escape(name)}</h3>${block(schema)}</article>`,
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escape(info.title)}</title><link rel="icon" href="data:,"><style>${STYLE}</style></head>
<body><main><p><a href="/docs">Docs</a></p><h1>${escape(info.title)}</h1><p>Version ${escape(info.version)} · <a href="/openapi.json">openapi.json</a> · <a href="/asyncapi.json">asyncapi.json</a> (/ws)</p>
<p>${escape(info.description)}</p>
${sections.join('\n')}
<section><h2>Shapes</h2>${schemas.join('')}</section></main></body></html>
`;
}

function article({ path, method, operation }: { path: string; method: string; operation: Json }): string {
  const responses = Object.entries(operation.responses as Record<string, Json>);
  return [
    `<article><h3>${method.toUpperCase()} ${escape(path)}</h3><p>${escape(text(operation.summary))}.`,
    operation.description === undefined ? '' : ` ${escape(text(operation.description))}`,
    '</p>',
    parameters((operation.parameters ?? []) as Json[]),
    operation.requestBody === undefined ? '' : `<p>Body:</p>${block(schemaOf(operation.requestBody as Json))}`,
    '<table>',
    ...responses.map(
      ([status, response]) => `<tr><th>${escape(status)}</th><td>${escape(text(response.description))}</td></tr>`,
    ),
    '</table>',
    block(schemaOf(responses[0]?.[1] ?? {})),
    '</article>',
  ].join('');
}

function parameters(list: readonly Json[]): string {
  if (list.length === 0) return '';
  const rows = list.map(
    (one) =>
      `<tr><td><code>${escape(text(one.name))}</code></td><td>${one.required === true ? 'required' : 'optional'}</td>` +
      `<td>${escape(text(one.description))}</td></tr>`,
  );
  return `<table>${rows.join('')}</table>`;
}

function schemaOf(holder: Json): unknown {
  return ((holder.content as Json | undefined)?.['application/json'] as Json | undefined)?.schema;
}

/** A schema as JSON; names of shared shapes are links to them. */
function block(schema: unknown): string {
  if (schema === undefined) return '';
  const json = escape(JSON.stringify(schema, null, 2));
  const linked = json.replace(
    /&quot;#\/components\/schemas\/(\w+)&quot;/g,
    (_all, name: string) => `<a href="#${name}">${name}</a>`,
  );
  return `<pre tabindex="0">${linked}</pre>`;
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

const escape = (value: string): string => value.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
