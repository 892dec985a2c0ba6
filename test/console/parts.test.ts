/** The parts of the console that need no browser: addresses, the window of a long list, forms, and copied lines. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fieldsOf, withMember } from "../../console/form/schema.ts";
import { KINDS } from "../../console/generated/kinds.ts";
import { OPERATIONS as LISTED } from "../../console/generated/operations.ts";
import { shapeOf } from "../../console/lib/chart-path.ts";
import { eventsOf } from "../../console/lib/events.ts";
import { stays } from "../../console/lib/facts.ts";
import { countOf } from "../../console/lib/format.ts";
import { collectionPath, createPlaces, itemPath } from "../../console/lib/places.ts";
import { labelsOf, sentenceOf } from "../../console/lib/titles.ts";
import { ROW_PX, windowOf } from "../../console/table/window.ts";
import { firstCommand, linesOf } from "../../console/views/lines.ts";
import { OPERATIONS } from "../../src/kinds/index.ts";

test("a count has the plural of its noun", () => {
  assert.deepEqual(
    ["sandbox", "egress address", "MCP server"].map((noun) => [countOf(1, noun), countOf(1900, noun)]),
    [
      ["1 sandbox", "1,900 sandboxes"],
      ["1 egress address", "1,900 egress addresses"],
      ["1 MCP server", "1,900 MCP servers"],
    ],
  );
});

test("members of the API are headings, and names that people chose stay as they are", () => {
  const paths = [
    ["txtRecords", "_service-verification.apps.example.com"],
    ["labels", "team"],
    ["network", "proxy", "allowedDomains"],
    ["headers", "X-Api_Key"],
    ["runtime", "MY_TOKEN"],
  ];
  assert.deepEqual(paths.map(labelsOf), [
    ["Txt records", "_service-verification.apps.example.com"],
    ["Labels", "team"],
    ["Network", "Proxy", "Allowed domains"],
    ["Headers", "X-Api_Key"],
    ["Runtime", "MY_TOKEN"],
  ]);
});

test("the VPC that every workspace has is not offered for deletion, and the reason is told", () => {
  const found = KINDS.flatMap((kind) => ["default", "lab"].flatMap((name) => stays(kind, name) ?? []));
  assert.deepEqual(found, ["'default' belongs to the workspace and stays with it."]);
});

test("a sentence begins with a large letter, unless it begins with an address or a path", () => {
  assert.equal(sentenceOf("it shows the past"), "It shows the past.");
  assert.equal(sentenceOf("https://127.0.0.1:1 answers 401"), "https://127.0.0.1:1 answers 401.");
  assert.equal(sentenceOf("credentials.json holds no key."), "credentials.json holds no key.");
});

test("a chart has a round upper edge, and a gap where there is no value", () => {
  const { line, area, top } = shapeOf([1, 3, null, 4]);
  assert.equal(top, 5);
  assert.equal(line, "M0 80L33.33 40M100 20L100 20");
  assert.equal(area, "M0 100L0 80L33.33 40L33.33 100ZM100 100L100 20L100 20L100 100Z");
  assert.equal(shapeOf([150 * 2 ** 20], 2 ** 20).top, 200 * 2 ** 20);
  assert.deepEqual(shapeOf([null, null]), { line: "", area: "", top: 1 });
});

describe("addresses", () => {
  for (const base of ["", "/console"])
    test(`every kind's list, resource and form is found again below '${base}'`, () => {
      const places = createPlaces(base, KINDS);
      for (const kind of KINDS) {
        const parents = places
          .lineOf(kind)
          .slice(1)
          .map((_, at) => `parent ${at}/%`);
        const collection = { kind, parents };
        const list = places.read(places.list("main", collection));
        assert.deepEqual(list, { page: "list", workspace: "main", kind, parents });
        const item = places.read(places.item("main", collection, "a b/c"));
        assert.deepEqual(item, { page: "item", workspace: "main", kind, parents, name: "a b/c" });
        assert.deepEqual(places.read(places.create("main", collection)), { ...list, page: "new" });
        assert.ok(!collectionPath(collection).includes("{"), collectionPath(collection));
        assert.ok(itemPath(collection, "x/y").endsWith("/x%2Fy"));
      }
      assert.deepEqual(places.read(places.page("main", "logs")), { page: "logs", workspace: "main" });
      assert.deepEqual(places.read(`${base}/`), { page: "start" });
      for (const wrong of ["/main/nothing", "/main/-/nothing", "/main/-/new/nothing", "/main/-/new/sandboxes/x"])
        assert.deepEqual(places.read(base + wrong), { page: "nowhere", workspace: "main" });
    });
});

test("the table of operations is that of the platform", () => {
  assert.deepEqual(
    LISTED.map(({ id }) => id),
    OPERATIONS.map(({ id }) => id),
  );
});

test("of a million rows at most 200 are in the document, and together with the gaps all have their place", () => {
  for (const scrollPx of [0, 1000, 500_000 * ROW_PX, 1_000_000 * ROW_PX]) {
    const { first, end, abovePx, belowPx } = windowOf(1_000_000, scrollPx, 1200);
    assert.ok(end - first <= 200);
    assert.equal(abovePx + (end - first) * ROW_PX + belowPx, 1_000_000 * ROW_PX);
    assert.ok(first * ROW_PX <= scrollPx);
  }
  assert.deepEqual(windowOf(3, 0, 1200), { first: 0, end: 3, abovePx: 0, belowPx: 0 });
});

test("a form changes one member and leaves nothing empty behind", () => {
  const body = withMember({ metadata: { name: "x" } }, "spec.runtime.memory", 512);
  assert.deepEqual(body, { metadata: { name: "x" }, spec: { runtime: { memory: 512 } } });
  assert.deepEqual(withMember(body, "spec.runtime.memory", undefined), { metadata: { name: "x" } });
  const [name, size] = fieldsOf({
    type: "object",
    required: ["name"],
    properties: { name: { type: "string" }, size: { enum: ["s", "l"] }, deep: { type: "array", items: {} } },
  });
  assert.deepEqual([name?.type, name?.isRequired, size?.type, size?.choices], ["text", true, "choice", ["s", "l"]]);
});

test("events are read across chunks, with comments and both ends of lines", async () => {
  const text = 'id: a-1\nevent: change\ndata: {"kind":"é"}\n\n: still here\n\ndata: one\r\ndata: two\r\n\r\n';
  const bytes = new TextEncoder().encode(text);
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  const seen: string[] = [];
  for await (const { id, event, data } of eventsOf(stream)) if (data !== "") seen.push(`${id}|${event}|${data}`);
  assert.deepEqual(seen, ['a-1|change|{"kind":"é"}', "|message|one\ntwo"]);
});

test("copied lines quote what a shell would read, and name the parameters of the SDK", () => {
  const asked = { method: "POST", path: "/drives", workspace: "main", body: { a: "it's" }, operation: "driveCreate" };
  const [curl, sdk] = linesOf("http://127.0.0.1:8080", { ...asked, params: {}, command: null });
  assert.ok(curl?.text.includes(`-d '{"a":"it'\\''s"}'`), curl?.text);
  assert.equal(sdk?.text, `await berth.api.driveCreate({"body":{"a":"it's"}});`);
  for (const kind of KINDS) assert.match(firstCommand(kind, "main"), /^berth /);
});
