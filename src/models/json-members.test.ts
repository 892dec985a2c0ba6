import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../../test/properties.ts";
import { editMembers, lastValueNamed, memberValue, topLevelMembers } from "./json-members.ts";

const members = (text: string) => topLevelMembers(Buffer.from(text));

test("members are found with the bounds of their values", () => {
  const json = Buffer.from('  { "a" : 1.0 , "b\\n":[1,{"a":"}\\""}],"c":"x\\\\" } ');
  const found = topLevelMembers(json) ?? [];
  assert.deepEqual(
    found.map((member) => [member.key, json.toString("utf8", member.start, member.end)]),
    [
      ["a", "1.0"],
      ["b\n", '[1,{"a":"}\\""}]'],
      ["c", '"x\\\\"'],
    ],
  );
});

test("what is not one object is refused", () => {
  for (const text of [
    "",
    "[]",
    "1",
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1}}',
    '{"a" 1}',
    '{"a":"',
    "{1:2}",
    '{"a":1,}',
    '{"a":[}',
  ]) {
    assert.equal(members(text), null, text);
  }
  assert.deepEqual(members("{}"), []);
});

test("an edit leaves every other byte alone", () => {
  const text = '{"model":"a","seed":9007199254740993, "temperature":1.0,"m":{"model":"inner"}}';
  const json = Buffer.from(text);
  const edited = editMembers(json, topLevelMembers(json) ?? [], {
    model: '"b"',
    stream_options: '{"include_usage":true}',
  });
  assert.equal(
    edited.toString(),
    '{"model":"b","seed":9007199254740993, "temperature":1.0,"m":{"model":"inner"},"stream_options":{"include_usage":true}}',
  );
});

test("an escaped or repeated key cannot escape the edit", () => {
  const json = Buffer.from('{"mod\\u0065l":"a","x":1,"model":"c"}');
  const edited = editMembers(json, topLevelMembers(json) ?? [], { model: '"b"' });
  assert.equal(edited.toString(), '{"model":"b","x":1,"model":"b"}');
});

test("no change gives back the same buffer; removal keeps the rest valid", () => {
  const json = Buffer.from('{"a":1,"b":2,"c":3}');
  const found = topLevelMembers(json) ?? [];
  assert.equal(editMembers(json, found, { a: "1", absent: null }), json);
  assert.equal(editMembers(json, found, { a: null, c: null }).toString(), '{"b":2}');
  assert.equal(editMembers(json, found, { a: null, b: null, c: null }).toString(), "{}");
});

test("for any object the members are those of JSON.parse, and edits behave like assignment", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue()).map((object) => ({ ...object })),
      fc.string(),
      fc.jsonValue(),
      fc.constantFrom(0, 2),
      (object, key, value, indent) => {
        fc.pre(key !== "__proto__" && !Object.hasOwn(object, "__proto__"));
        const json = Buffer.from(JSON.stringify(object, null, indent));
        const plain = JSON.parse(json.toString()) as Record<string, unknown>;
        const found = topLevelMembers(json) ?? [];
        assert.deepEqual(new Set(found.map((member) => member.key)), new Set(Object.keys(plain)));
        for (const name of Object.keys(plain)) assert.deepEqual(memberValue(json, found, name), plain[name]);
        const edited = editMembers(json, found, { [key]: JSON.stringify(value) });
        assert.deepEqual(JSON.parse(edited.toString()), { ...plain, [key]: JSON.parse(JSON.stringify(value)) });
      },
    ),
  );
});

test("any bytes at all end in members or null, never in an exception", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void topLevelMembers(Buffer.from(bytes))));
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'{}[]",:\\ a1'), maxLength: 60 }), (text) => void members(text)),
  );
});

test("strings end where they end, whatever their length and escapes", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom("a", "\\", '"', "é"), maxLength: 120 }),
      fc.string(),
      (text, other) => {
        const json = Buffer.from(JSON.stringify({ a: text, b: { [text]: [text, other] }, c: other }));
        const found = topLevelMembers(json) ?? [];
        assert.deepEqual(
          found.map((member) => member.key),
          ["a", "b", "c"],
        );
        assert.equal(memberValue(json, found, "a"), text);
        assert.equal(memberValue(json, found, "c"), other);
      },
    ),
  );
});

test("the last value of a name is found in the tail of a text", () => {
  const tail = (text: string) => lastValueNamed(Buffer.from(text), "usage");
  assert.deepEqual(tail('0.1,0.2]}],"usage": {"total_tokens":3}}'), { total_tokens: 3 });
  assert.deepEqual(tail('say \\"usage\\":1","usage":{"a":1},"x":[]}'), { a: 1 });
  for (const text of ['"usage"', '"usage" 1', '"usage":', '"usage":{"a"', "nothing"])
    assert.equal(tail(text), undefined, text);
});
