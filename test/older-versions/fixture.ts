/** What an older version left behind (test/fixtures), unpacked for a newer one to open. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import pg from "pg";
import type { TestPlace } from "../databases.ts";
import type { Person } from "../identity/program.ts";
import type { Shown } from "./shown.ts";

const FIXTURES = join(import.meta.dirname, "../fixtures");

interface Given {
  machine: string;
  deviceCode: string;
  access: string;
  refresh: string;
  cookies: [string, string][];
}

/** What the version wrote down about itself; see make.ts. */
export interface Expected {
  madeAt: string;
  publicUrl: string;
  secret: string;
  credentials: {
    apiKey: string;
    robot: { client_id: string; client_secret: string };
    robotKey: string;
    person: Person;
    given: Given;
    /** By the bundle of 0.1.0, whose records have no model name. */
    broken: Given;
  };
  shown: Shown;
  metrics: { path: string; data: { billingDimension: string; summary: { usage: number } }[] };
}

export const olderVersions: readonly string[] = readdirSync(FIXTURES);

export const expectedOf = (version: string, database: string): Expected =>
  JSON.parse(gunzipSync(readFileSync(join(FIXTURES, version, `${database}.json.gz`))).toString());

/** Puts the version's data into an empty place. */
export async function unpack(version: string, database: string, place: TestPlace): Promise<void> {
  execFileSync("tar", ["-xzf", join(FIXTURES, version, `${database}.tar.gz`), "-C", place.dataDir]);
  if (place.databaseUrl === null) return;
  const client = new pg.Client({ connectionString: place.databaseUrl });
  await client.connect();
  try {
    await client.query(readFileSync(join(place.dataDir, "dump.sql"), "utf8"));
  } finally {
    await client.end();
  }
}
