/** Reads the key records of a database file for a process that does not own the file. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { SQLITE_FILE } from "../store.ts";
import { type KeyState, keyStateOf } from "./key-records.ts";

export function readKeyState(dataDir: string): KeyState {
  const database = new DatabaseSync(join(dataDir, SQLITE_FILE), { readOnly: true });
  try {
    database.exec("PRAGMA busy_timeout = 5000");
    const rows = database.prepare("SELECT key, value FROM records WHERE key LIKE 'secret-key-%'").all();
    return keyStateOf(rows as unknown as { key: string; value: string }[]);
  } finally {
    database.close();
  }
}
