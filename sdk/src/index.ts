export { CurvebookError } from './errors.js';
export type { HttpOptions } from './http.js';
export { createReadClient } from './read/client.js';
export type { Answer, Asked, ReadClient, ReadPath, Schemas } from './read/client.js';
