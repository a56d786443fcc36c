/** Text of others on a terminal. */

/** Endpoints and tokens say what they want: nothing of it may move the cursor, or overwrite what a terminal shows. Ends of lines and tabs stay. */
export const printable = (text: string): string =>
  // eslint-disable-next-line no-control-regex
  text.replaceAll(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '?');
