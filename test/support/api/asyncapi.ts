/** Checks frames of /ws against the AsyncAPI document: the server must send nothing that it does not describe. */
import { Ajv } from 'ajv';
import type { ValidateFunction } from 'ajv';
import { asyncApiDocument } from '../../../server/stream/document.js';

export const STREAM_DOCUMENT = asyncApiDocument({ title: 'Curvebook', version: '0', description: '', url: null });

const BASE = 'https://curvebook.test/asyncapi.json';

const ajv = new Ajv({ strict: false });
ajv.addSchema({ ...STREAM_DOCUMENT, $id: BASE });

const validators = new Map<string, ValidateFunction>();

/** Throws unless the value has the shape of the message that the document calls so. */
export function conformMessage(name: string, value: unknown): void {
  if (STREAM_DOCUMENT.components.messages[name] === undefined) throw new Error(`the document does not know ${name}`);
  const validate =
    validators.get(name) ?? ajv.compile({ $ref: `${BASE}#/components/messages/${encodeURIComponent(name)}/payload` });
  validators.set(name, validate);
  if (!validate(value)) {
    const shown = JSON.stringify(value).slice(0, 500);
    throw new Error(`${name} differs from the document: ${ajv.errorsText(validate.errors)}: ${shown}`);
  }
}

/** The same for a frame of the server, whose message is named by its channel. */
export const conformFrame = (frame: { channel: string }): void => conformMessage(frame.channel, frame);
