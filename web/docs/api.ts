/** Swagger UI over the document of this server. Requests go to where the page came from, whatever the document names. */
interface Options {
  domNode: Element;
  spec: object;
  deepLinking: boolean;
  tryItOutEnabled: boolean;
  defaultModelsExpandDepth: number;
  docExpansion: 'list';
  validatorUrl: null;
  plugins: ((system: { React: { createElement(tag: 'span', props: null, text: unknown): unknown } }) => object)[];
}

async function show(place: Element): Promise<void> {
  const { SwaggerUIBundle } = window as unknown as { SwaggerUIBundle?: (options: Options) => unknown };
  const reply = await fetch('/openapi.json');
  if (!reply.ok || SwaggerUIBundle === undefined) throw new Error(`the document can't be read (${reply.status})`);
  const document = (await reply.json()) as object;
  place.replaceChildren();
  SwaggerUIBundle({
    domNode: place,
    spec: { ...document, servers: [{ url: window.location.origin }] },
    deepLinking: true,
    tryItOutEnabled: true,
    defaultModelsExpandDepth: -1,
    docExpansion: 'list',
    validatorUrl: null,
    // Its links stand inside of buttons, which screen readers can't tell apart; the address changes with the button, too.
    plugins: [
      ({ React }) => ({
        wrapComponents: {
          DeepLink: () => (props: { text: unknown }) => React.createElement('span', null, props.text),
        },
      }),
    ],
  });
}

const place = document.getElementById('swagger');
if (place !== null)
  void show(place).catch((error: unknown) => {
    place.textContent = error instanceof Error ? error.message : String(error);
  });
