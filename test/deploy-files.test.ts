/** Files in deploy/ that no other test reads. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "yaml";
import { SETTINGS } from "../src/config.ts";

interface Compose {
  services: Record<string, { environment: Record<string, string>; volumes: string[] }>;
}

test("the compose file sets settings that exist, and shares the data folder under one path", () => {
  const { services } = parse(readFileSync("deploy/compose.yaml", "utf8")) as Compose;
  const { environment = {}, volumes = [] } = services.berth ?? {};
  const known = new Set(Object.values(SETTINGS).map(({ env }) => env as string));
  assert.deepEqual(
    Object.keys(environment).filter((name) => !known.has(name)),
    [],
  );
  const folder = environment.BERTH_DATA;
  assert.ok(volumes.includes(`${folder}:${folder}`), volumes.join());
});
