/** What was written comes back, and what came back can be written: for every kind, with generated bodies. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { z } from "zod";
import * as fields from "../src/contract/fields.ts";
import type { Kind } from "../src/contract/kind.ts";
import { KINDS } from "../src/kinds/index.ts";
import { LONG } from "./long.ts";
import { startTestPlatform, type TestPlatform } from "./platform.ts";
import fc from "./properties.ts";
import { goodValue, type JsonSchema } from "./schema-values.ts";

const RUNS = LONG ? 60 : 6;

let platform: TestPlatform;
before(async () => {
  platform = await startTestPlatform();
});
after(() => platform.stop());

/** Top-level kinds that can be written and replaced. */
const kinds = KINDS.filter(
  (kind) => !kind.within && ["create", "get", "update"].every((verb) => kind.operation[verb as "get"]),
);

describe("write, read, write back, read", () => {
  for (const kind of kinds) {
    test(kind.name, async () => {
      const schema = z.toJSONSchema(kind.spec, { io: "input", unrepresentable: "any" }) as JsonSchema;
      let n = 0;
      let written = 0;
      await fc.assert(
        fc.asyncProperty(
          goodValue(schema),
          fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.string({ maxLength: 20 }), { maxKeys: 3 }),
          async (generated, labels) => {
            const spec = { ...(generated as Record<string, unknown>) };
            for (const member of ["region", "vpc", ...(MUST_EXIST[kind.name] ?? [])]) delete spec[member];
            const name = kind.name === "customdomain" ? `r${n++}.example.test` : `r${n++}`;
            const clean = Object.fromEntries(Object.entries(labels).filter(([, value]) => !value.includes("\0")));
            const created = await platform.call("POST", kind.collectionPath, {
              body: { metadata: { name, labels: clean }, spec },
            });
            // Generated references lead nowhere and generated words may break rules that a schema cannot say.
            if (created.status !== 200) return assert.ok(created.status < 500, JSON.stringify(created.body));
            written += 1;
            const item = `${kind.collectionPath}/${name}`;
            const read = await platform.call("GET", item);
            await checkSummary(kind, name, clean);
            assert.deepEqual(read.body.metadata.labels ?? {}, clean);
            const replaced = await platform.call("PUT", item, { body: read.body });
            assert.equal(replaced.status, 200, JSON.stringify(replaced.body));
            const again = await platform.call("GET", item);
            assert.deepEqual(again.body.spec, read.body.spec, "writing back what was read changes nothing");
            assert.deepEqual(again.body.metadata.labels, read.body.metadata.labels);
            await platform.call("DELETE", item);
          },
        ),
        { numRuns: RUNS, seed: 11 },
      );
      assert.ok(written > 0 || NEEDS_MORE.has(kind.name), "at least one generated body was accepted");
    });
  }
});

/** The list in short has the resource, also when it is filtered by a label of the resource. */
async function checkSummary(kind: Kind, name: string, labels: Record<string, string>): Promise<void> {
  const [key = ""] = Object.keys(labels).filter((word) => word.length > 1);
  const query = new URLSearchParams({ fields: "summary", ...(key ? { label: key } : {}) });
  const { status, body } = await platform.call("GET", `${kind.collectionPath}?${query}`);
  assert.equal(status, 200, JSON.stringify(body));
  const rows = kind.paged ? body.data : body;
  const row = rows.find(({ metadata }) => metadata.name === name);
  assert.ok(row, `${name} with the label ${key}`);
  assert.deepEqual(row.spec, {});
  assert.deepEqual(kind.operation.list?.response.safeParse(body).error?.issues ?? [], []);
}

/** Members that name what must be there already, or whose rules a generated word seldom meets. */
const MUST_EXIST: Readonly<Record<string, readonly string[]>> = {
  agent: ["policies", "volumes", "drives", "network", "urls"],
  application: ["snapshot", "network"],
  function: ["integrationConnections", "policies", "volumes", "drives", "network", "urls"],
  job: ["githubRunner", "policies", "volumes", "network"],
  model: ["balance", "cache", "fallbacks", "guardrails", "integrationConnections"],
  vpc: ["routes"],
};

/** Kinds whose rules generated bodies rarely meet; their own suites cover them. */
const NEEDS_MORE = new Set(["customdomain", "sandbox", "volume", "volumetemplate", "image"]);

test("names: what the rule says is what is accepted", async () => {
  const RULE = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;
  await fc.assert(
    fc.property(fc.oneof(fc.string({ maxLength: 60 }), fc.stringMatching(/^[a-z0-9-]{0,60}$/)), (name) => {
      assert.equal(fields.name.safeParse(name).success, RULE.test(name) && name.length <= fields.NAME_MAX);
    }),
    { numRuns: 2000, seed: 3 },
  );
});
