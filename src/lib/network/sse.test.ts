import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../../../test/properties.ts";
import { formatSseEvent, parseSseEvent, SseSplitter } from "./sse.ts";

const STREAM = [
  "\n\n: keep-alive\n\n",
  "data: one\n\n",
  "event: named\r\ndata: two\r\n\r\n",
  "data: a\ndata: b é\n\n",
  "data:no space\nid: 4\n\n",
  "data\n\n",
].join("");

const EXPECTED = [
  null,
  { event: "", data: "one" },
  { event: "named", data: "two" },
  { event: "", data: "a\nb é" },
  { event: "", data: "no space" },
  { event: "", data: "" },
];

function split(bytes: Buffer, cuts: number[]): { events: Buffer[]; rest: Buffer } {
  const splitter = new SseSplitter();
  const events: Buffer[] = [];
  let from = 0;
  for (const cut of [...cuts, bytes.length]) {
    events.push(...splitter.push(bytes.subarray(from, cut)));
    from = cut;
  }
  return { events, rest: splitter.drain() };
}

test("events are the same for a cut at every byte boundary", () => {
  const bytes = Buffer.from(STREAM);
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const { events, rest } = split(bytes, [cut]);
    assert.deepEqual(events.map(parseSseEvent), EXPECTED, `cut at ${cut}`);
    assert.equal(rest.length, 0);
    assert.equal(Buffer.concat(events).toString(), STREAM);
  }
});

test("no byte is lost or changed, whatever the bytes and the chunking", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom("\n", "\r", "d", ":", "x"), maxLength: 80 }),
      fc.array(fc.nat(80), { maxLength: 8 }),
      (text, cuts) => {
        const bytes = Buffer.from(text);
        const sorted = cuts.filter((cut) => cut <= bytes.length).sort((a, b) => a - b);
        const { events, rest } = split(bytes, sorted);
        assert.equal(Buffer.concat([...events, rest]).toString(), text);
        const whole = split(bytes, []);
        assert.deepEqual(events.map(String), whole.events.map(String));
      },
    ),
  );
});

test("an unfinished event is counted and can be given up", () => {
  const splitter = new SseSplitter();
  assert.deepEqual(splitter.push(Buffer.from("data: half")), []);
  assert.equal(splitter.pendingBytes, 10);
  assert.equal(splitter.drain().toString(), "data: half");
  assert.equal(splitter.pendingBytes, 0);
});

test("a formatted event reads back", () => {
  assert.deepEqual(parseSseEvent(Buffer.from(formatSseEvent('{"a":1}', "delta"))), { event: "delta", data: '{"a":1}' });
});
