import { existsSync } from 'node:fs';
import SqliteDatabase from 'better-sqlite3';

/**
 * Whether anybody has the SQLite file of `sqlite:<path>` open, this process included; false where there is none. SQLite lets the journal
 * mode be changed only by whoever is alone with a file, and the next to open the database sets it again; what a killed process left does
 * not count.
 */
export function isSqliteInUse(url: string): boolean {
  const path = url.replace(/^sqlite:/, '');
  if (!existsSync(path)) return false;
  let file: SqliteDatabase.Database | null = null;
  try {
    file = new SqliteDatabase(path, { fileMustExist: true, timeout: 0 });
    file.pragma('journal_mode = delete');
    return false;
  } catch (error) {
    // Whatever else is wrong with the file is told when it is opened.
    return String((error as { code?: unknown }).code).startsWith('SQLITE_BUSY');
  } finally {
    file?.close();
  }
}
