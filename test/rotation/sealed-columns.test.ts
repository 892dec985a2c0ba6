/** Who seals a value says where it is kept: a rotation knows only the columns of SEALED_COLUMNS. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { nameOf, SEALED_COLUMNS } from "../../src/store/sealing/sealed-columns.ts";

/** Every call of `seal` in the sources, by file, with the column that keeps what it returns. */
const SEALERS: Readonly<Record<string, readonly string[]>> = {
  // A token for the client; nothing is kept.
  "src/api/registry/tokens.ts": [""],
  "src/kinds/integration-connection/access-token.ts": ["records.value.connectiontoken"],
  "src/kinds/workload/workspace-authority.ts": ["records.value.workspaceauthority"],
  // An address for the client; the database keeps only its nonce, and its key hangs on the derivation root.
  "src/kinds/uploads.ts": [""],
  // Chunks and notes of a backup lie outside of the database; a restore asks for the key that sealed them.
  "src/operator/backup/repository/repository.ts": ["", ""],
  "src/store/deliveries/deliveries.ts": ["deliveries.sealed", "deliveries.sealed"],
  "src/store/executions/executions.ts": ["executions.env_override"],
  "src/store/idempotency.ts": ["idempotency.response"],
  "src/store/people/oauth-records.ts": ["oauth_records.sealed_payload"],
  // A revision keeps a copy of what the resource has.
  "src/store/resources/resources.ts": ["resources.secrets"],
  "src/store/resources/rows.ts": ["revisions.secrets"],
  "src/store/sealing/key-records.ts": ["records.value.derivationroot"],
  "src/store/certificates.ts": ["certificates.sealed_key", "certificates.sealed_key", "acme_accounts.sealed_key"],
  "src/store/people/signing-keys.ts": ["signing_keys.sealed_key"],
  "src/store/threads.ts": ["thread_messages.sealed"],
};
/** The two that call `seal` for others, and the one that copies without calling it. */
const NOT_SEALERS = ["src/store/sealing/keyring.ts", "src/store/sealing/reseal.ts"];
const COPIES = /secrets: row\.secrets,\n\s+\}\)/g;

test("every call of seal has its column in the list of a rotation", () => {
  const found: Record<string, number> = {};
  for (const file of globSync("src/**/*.ts")) {
    if (file.endsWith(".test.ts") || NOT_SEALERS.includes(file)) continue;
    const text = readFileSync(file, "utf8");
    const calls = [
      ...text.matchAll(/\.seal\(/g),
      ...(file === "src/store/resources/rows.ts" ? text.matchAll(COPIES) : []),
    ];
    if (calls.length > 0) found[file] = calls.length;
  }
  const expected = Object.fromEntries(Object.entries(SEALERS).map(([file, columns]) => [file, columns.length]));
  assert.deepEqual(
    Object.entries(found).sort(),
    Object.entries(expected).sort(),
    "a new call of seal: add its column to SEALED_COLUMNS (src/store/sealing) and to SEALERS here",
  );
  const columns = new Set(Object.values(SEALERS).flat().filter(Boolean));
  assert.deepEqual([...columns].sort(), SEALED_COLUMNS.map(nameOf).sort());
});
