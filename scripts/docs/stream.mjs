/** The AsyncAPI document as a page. */
import { escape } from './markdown.mjs';

const nameOf = (ref) => ref.slice(ref.lastIndexOf('/') + 1);

/**
 * A schema as JSON; names of shared shapes are links to them.
 * @param {unknown} schema
 */
function block(schema) {
  const json = escape(JSON.stringify(schema, null, 2));
  return `<pre tabindex="0"><code>${json.replace(
    /&quot;#\/components\/schemas\/(\w+)&quot;/g,
    (_all, name) => `<a href="#${name}">${name}</a>`,
  )}</code></pre>`;
}

/**
 * @param {any} document
 * @returns {{ html: string, sections: { id: string, title: string, text: string }[] }}
 */
export function streamPage(document) {
  const { channels, operations, components } = document;
  const sections = [];
  const ways = Object.entries(operations).map(([name, { action, summary, messages, reply }]) => {
    const list = (all) =>
      all.map(({ $ref }) => `<a href="#${nameOf($ref)}"><code>${nameOf($ref)}</code></a>`).join(', ');
    const answered = reply === undefined ? '' : ` Answered by ${list(reply.messages)}.`;
    return `<li><strong>${escape(name)}</strong>, ${action === 'receive' ? 'sent by you' : 'sent to you'}: ${escape(summary)}. ${list(messages)}.${answered}</li>`;
  });
  const parts = (all, prefix) =>
    Object.entries(all).map(([id, one]) => {
      const summary = one.summary ?? one.description ?? '';
      sections.push({ id, title: id, text: `${prefix} ${summary}` });
      const said = summary === '' ? '' : `<p>${escape(summary)}.</p>`;
      return `<h3 id="${escape(id)}"><code>${escape(id)}</code></h3>${said}${block(one.payload ?? one)}`;
    });
  const html = `<h1 id="the-websocket">The WebSocket</h1>
<p><code>${escape(channels.ws.address)}</code>. ${escape(channels.ws.description)} <a href="/docs/orders#websocket">How to use it</a>, and
<a href="/docs/orders#reconnecting">how to reconnect</a>. As a document: <a href="/asyncapi.json">asyncapi.json</a>.</p>
<h2 id="ways">What is sent</h2><ul>${ways.join('')}</ul>
<h2 id="messages">Messages</h2>${parts(components.messages, 'message of the WebSocket').join('')}
<h2 id="shapes">Shapes</h2>${parts(components.schemas, 'shape in messages of the WebSocket').join('')}`;
  return { html, sections };
}
