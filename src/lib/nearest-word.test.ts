import assert from "node:assert/strict";
import { test } from "node:test";
import { nearestWord } from "./nearest-word.ts";

const KNOWN = ["host", "port", "data", "database_url", "log_level", "public_ips"];

const CASES: [given: string, meant: string | null][] = [
  ["prot", "port"],
  ["prt", "port"],
  ["datbase_url", "database_url"],
  ["databas", "database_url"],
  ["Port", "port"],
  ["loglevel", "log_level"],
  ["colour", null],
  ["x", null],
  ["", null],
];

for (const [given, meant] of CASES) {
  test(`'${given}' probably means ${meant ?? "nothing known"}`, () => assert.equal(nearestWord(given, KNOWN), meant));
}
