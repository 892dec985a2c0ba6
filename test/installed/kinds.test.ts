/** One whole life of every kind: created, read, listed, changed and deleted through the API of an installation. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { KINDS } from "../../src/kinds/index.ts";
import { EVERY_KIND, type Specimen, WRITTEN_BY_THE_PLATFORM } from "../every-kind.ts";
import type { Answer } from "../platform.ts";
import { projectArchive } from "../project-archive.ts";
import { eventually } from "../sandboxd-harness.ts";
import { installation } from "./installation.ts";
import { workloadsSkip } from "./isolation.ts";
import { apiOf } from "./suite.ts";

const WORKSPACE = "every-kind";
/** What lives on the machine: the rest is only records. */
const ON_THE_MACHINE = /^\/(sandboxes|agents|functions|applications|jobs|volumes)/;
/** A record that is kept for a while after the end says so. */
const OVER = ["TERMINATED", "DELETED"];

const { call } = apiOf(await installation(), WORKSPACE);
const made = new Map<Specimen, string>();

const skipOf = ({ collection }: Specimen): string | false => ON_THE_MACHINE.test(collection) && workloadsSkip;
const nameOf = ({ metadata, id }: { metadata?: { name?: string }; id?: string }): string => metadata?.name ?? id ?? "";
const listOf = ({ body }: Answer): Answer["body"] => body.data ?? body;
const itemOf = (specimen: Specimen): string => `${specimen.collection}/${made.get(specimen)}`;
const verbsOf = ({ kind }: Specimen): readonly string[] =>
  Object.keys(KINDS.find(({ name }) => name === kind)?.operation ?? {});
const describeOf = ({ kind, body, name }: Specimen): string => `${kind} ${name ?? nameOf(body)}`.trim();

before(async () => {
  const answer = await call("POST", "/workspaces", { body: { name: WORKSPACE } });
  assert.ok([200, 409].includes(answer.status), JSON.stringify(answer.body));
});

test("there is something of every kind", () => {
  const there = new Set([...EVERY_KIND.map(({ kind }) => kind), ...WRITTEN_BY_THE_PLATFORM]);
  assert.deepEqual(
    KINDS.map(({ name }) => name).filter((name) => !there.has(name)),
    [],
  );
});

for (const specimen of EVERY_KIND)
  test(`${describeOf(specimen)} is created and listed`, { skip: skipOf(specimen) }, async () => {
    const { collection, query = "", body, files } = specimen;
    const answer = await call("POST", `${collection}${query}`, { body });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    const name = nameOf(answer.body);
    made.set(specimen, name);
    if (files) {
      const address = answer.headers.get("x-service-upload-url") ?? "";
      const sent = await fetch(address, { method: "PUT", body: new Uint8Array(projectArchive(files)) });
      assert.equal(sent.status, 200, await sent.text());
    }
    assert.ok(listOf(await call("GET", collection)).some((each) => nameOf(each) === name));
  });

for (const specimen of EVERY_KIND.filter((each) => verbsOf(each).includes("get") && each.name !== undefined))
  test(`${describeOf(specimen)} is read, and runs where it is something that runs`, {
    skip: skipOf(specimen),
  }, async () => {
    const { status, body: first } = await call("GET", itemOf(specimen));
    assert.equal(status, 200, JSON.stringify(first));
    if (first.status === undefined || !ON_THE_MACHINE.test(specimen.collection)) return;
    let body = first;
    await eventually(
      async () => {
        ({ body } = await call("GET", itemOf(specimen)));
        return ["DEPLOYED", "FAILED"].includes(body.status);
      },
      `${describeOf(specimen)} to settle`,
    );
    assert.equal(body.status, "DEPLOYED", JSON.stringify(body.events));
  });

test("a schedule that is due has run", { skip: workloadsSkip }, async () => {
  await eventually(async () => listOf(await call("GET", "/sandboxes/box/schedule-executions")).length > 0);
});

for (const specimen of EVERY_KIND.filter(({ change }) => change))
  test(`${describeOf(specimen)} is changed`, { skip: skipOf(specimen) }, async () => {
    const { metadata, spec, ...flat } = specimen.change ?? {};
    const { body: now } = await call("GET", itemOf(specimen));
    const body = {
      ...now,
      ...flat,
      ...(now.metadata ? { metadata: { ...now.metadata, ...metadata }, spec: { ...now.spec, ...spec } } : {}),
    };
    const changed = await call("PUT", itemOf(specimen), { body });
    assert.equal(changed.status, 200, JSON.stringify(changed.body));
    const { body: after } = await call("GET", itemOf(specimen));
    assert.partialDeepStrictEqual(after, specimen.change);
  });

for (const specimen of EVERY_KIND.toReversed())
  test(`${describeOf(specimen)} is deleted`, { skip: skipOf(specimen) }, async () => {
    const item = itemOf(specimen);
    const isGone = async (): Promise<boolean> => {
      const listed = listOf(await call("GET", specimen.collection));
      return !listed.some((each) => nameOf(each) === made.get(specimen) && !OVER.includes(each.status));
    };
    if (specimen.name === undefined && (await isGone())) return;
    const answer = await call("DELETE", item);
    // What runs once may go in this very moment.
    const expected = specimen.name === undefined && specimen.kind === "schedule" ? [200, 404] : [200, 202, 204];
    assert.ok(expected.includes(answer.status), `${answer.status} ${JSON.stringify(answer.body)}`);
    await eventually(isGone, `${describeOf(specimen)} to be gone`);
  });
