/**
 * Walks openapi.json with good and bad input for every operation: no 5xx, no hang, and every answer matches the schema
 * that the contract promises for it.
 */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { lower } from "../src/contract/versions/index.ts";
import { OPERATIONS } from "../src/kinds/index.ts";
import { type TestDatabase, testDatabases } from "./databases.ts";
import { LONG } from "./long.ts";
import { inlined } from "./openapi/document.ts";
import { type Answer, startTestPlatform, type TestPlatform } from "./platform.ts";
import fc from "./properties.ts";
import { anyValue, goodValue, type JsonSchema, NASTY, spoiled } from "./schema-values.ts";

const CASES = LONG ? 200 : 3;
const VERSIONS = ["2026-04-16", "2026-04-28"] as const;
/** Longer than any answer should take here; a request that hangs fails by it. */
const ANSWER_MAX_MS = 120_000;

interface Described {
  parameters: { name: string; in: string; schema: JsonSchema }[];
  requestBody?: { content: Record<string, { schema: JsonSchema }> };
}

const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.all)
  describe(`${CASES} requests to each operation on ${database.name}`, { concurrency: 4, skip: database.skip }, () =>
    suite(database),
  );

function suite(database: TestDatabase): void {
  let platform: TestPlatform;
  let paths: Record<string, Record<string, Described>>;
  before(async () => {
    platform = await startTestPlatform(await database.migrated());
    const document = (await (await fetch(`${platform.url}/openapi.json`)).json()) as { paths: typeof paths };
    paths = inlined(document).paths;
  });
  after(() => platform.stop());

  // The workspace that the fuzzing happens in must survive it.
  for (const operation of OPERATIONS.filter(({ id }) => !["workspaceDelete", "workspaceLeave"].includes(id))) {
    test(operation.id, async () => {
      const described = paths[`/v0${operation.path}`]?.[operation.method.toLowerCase()];
      assert.ok(described, "the operation is in openapi.json");
      const [type, { schema: bodySchema } = {}] = Object.entries(described.requestBody?.content ?? {})[0] ?? [];
      const body = bodySchema ? fc.oneof(goodValue(bodySchema), spoiled(bodySchema), anyValue) : fc.constant(undefined);
      const query = fc.dictionary(
        fc.constantFrom(
          "nonsense",
          ...described.parameters.filter((parameter) => parameter.in === "query").map((parameter) => parameter.name),
        ),
        fc.oneof(
          fc.constantFrom(...NASTY.filter((text) => text.isWellFormed())),
          fc.constantFrom("1", "true", "abc", "2026-01-01T00:00:00Z"),
        ),
        { maxKeys: 3 },
      );
      // A name of dots alone would be resolved away by the client before it is sent.
      const params = fc.tuple(
        ...operation.params.map(() =>
          fc.constantFrom(
            "a",
            "main",
            "no-such-thing",
            ...NASTY.filter((text) => !/^\.*$/.test(text) && text.isWellFormed()),
          ),
        ),
      );
      await fc.assert(
        fc.asyncProperty(params, query, body, fc.constantFrom(...VERSIONS), async (values, search, sent, version) => {
          const names = [...values];
          const path = operation.path.replace(/\{\w+\}/g, () => encodeURIComponent(String(names.shift())));
          const url = `${path}?${new URLSearchParams(search)}`;
          const answer = await withLimit(
            platform.call(operation.method, url, {
              version,
              workspace: "main",
              ...(sent === undefined ? {} : { body: JSON.stringify(sent), headers: { "content-type": String(type) } }),
            }),
          );
          check(operation, answer, version);
        }),
        { numRuns: CASES, seed: 7, endOnFailure: true },
      );
    });
  }
}

function check(
  operation: (typeof OPERATIONS)[number],
  { status, body }: Answer,
  version: (typeof VERSIONS)[number],
): void {
  assert.ok(status < 500, `${status}: ${JSON.stringify(body)}`);
  if (status >= 400) {
    assert.equal(typeof body.message, "string");
    assert.ok(typeof body.code === "number" || typeof body.code === "string");
    assert.doesNotMatch(body.message, /\bat \w+ \(|node:internal|SQLITE|syntax error at/, "no internals leak");
    return;
  }
  // The promised schema is the newest version's; an older answer is that, lowered.
  if (status === 204 || operation.events || lower(version, operation, { data: null }) === null) return;
  const parsed = operation.response.safeParse(body);
  assert.ok(
    parsed.success,
    `${JSON.stringify(parsed.error?.issues.slice(0, 3))} in ${JSON.stringify(body).slice(0, 500)}`,
  );
}

async function withLimit<T>(work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error("no answer")), ANSWER_MAX_MS);
  return Promise.race([work, promise]).finally(() => clearTimeout(timer));
}
