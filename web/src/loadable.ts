/**
 * A value that comes from the server: what is known stays, with the time at which it was, while a newer one is asked for or can't be had.
 */
export interface Loadable<T> {
  data: T | null;
  atMs: number | null;
  error: string | null;
}
