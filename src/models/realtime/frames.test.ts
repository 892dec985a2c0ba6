import assert from "node:assert/strict";
import { test } from "node:test";
import { queryObjects } from "node:v8";
import { closeFrame, FrameError, FrameReader, textFrame } from "./frames.ts";

const ping = Buffer.from([0x89, 0x01, 0x41]);
const half = (opcode: number, final: boolean, text: string): Buffer =>
  Buffer.concat([Buffer.from([(final ? 0x80 : 0) | opcode, text.length]), Buffer.from(text)]);

test("messages are found wherever the bytes are cut, and the bytes stay the same", () => {
  const long = "x".repeat(70_000);
  const stream = Buffer.concat([
    ...[textFrame("one"), ping, half(1, false, "tw"), ping, half(0, true, "o"), half(2, true, "binary")],
    ...[textFrame(""), textFrame("y".repeat(300)), textFrame(long), closeFrame(1000, "bye")],
  ]);
  for (const size of [1, 2, 3, 7, 1000, stream.length]) {
    const reader = new FrameReader();
    const passed: Buffer[] = [];
    const texts: string[] = [];
    for (let at = 0; at < stream.length; at += size)
      for (const { bytes, text } of reader.push(stream.subarray(at, at + size))) {
        passed.push(bytes);
        if (text) texts.push(text.toString());
      }
    assert.deepEqual(texts, ["one", "two", "", "y".repeat(300), long], `pieces of ${size}`);
    assert.ok(Buffer.concat(passed).equals(stream));
  }
});

test("a message in a great many parts is kept in one piece", () => {
  const count = 20_000;
  const reader = new FrameReader();
  const buffers = (): number => queryObjects(Uint8Array, { format: "count" });
  const before = buffers();
  reader.push(half(1, false, "x"));
  for (let part = 2; part < count; part += 1) reader.push(half(0, false, "x"));
  assert.ok(buffers() - before < 100, "buffers that are kept");
  assert.equal(reader.push(half(0, true, "x"))[0]?.text?.toString(), "x".repeat(count));
});

test("a message that is too long to keep passes unread, and the next one is read", () => {
  const reader = new FrameReader();
  const pieces = [textFrame("z".repeat(2 * 1024 * 1024)), textFrame("after")].flatMap((frame) => reader.push(frame));
  assert.deepEqual(
    pieces.map(({ text }) => text?.toString() ?? null),
    [null, "after"],
  );
});

test("frames that nobody agreed on are refused", () => {
  for (const bytes of [
    [0xc1, 0x01],
    [0x81, 0x81],
    [0x81, 127, 255, 255, 255, 255, 255, 255, 255, 255],
  ])
    assert.throws(() => new FrameReader().push(Buffer.from(bytes)), FrameError);
});
