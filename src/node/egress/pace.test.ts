import assert from "node:assert/strict";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { describe, test } from "node:test";
import { flow, Pace } from "./pace.ts";

describe("a pace", () => {
  test("lets a burst pass and then makes bytes wait for those before them", () => {
    let now = 1000;
    const pace = new Pace(() => now);
    pace.take(10 ** 9);
    assert.equal(pace.waitMs, 0, "without a limit");
    pace.set(8); // 1000 bytes each millisecond
    pace.take(100_000);
    assert.equal(pace.waitMs, 0);
    pace.take(50_000);
    assert.equal(pace.waitMs, 50);
    now += 30;
    assert.equal(pace.waitMs, 20);
    pace.take(20_000);
    assert.equal(pace.waitMs, 40);
  });

  test("a change holds for bytes that wait", () => {
    const pace = new Pace(() => 1000);
    pace.set(8);
    pace.take(10 ** 9);
    pace.set(16);
    assert.equal(pace.waitMs, 0);
    pace.take(300_000);
    assert.equal(pace.waitMs, 50);
    pace.set(null);
    assert.equal(pace.waitMs, 0);
  });
});

describe("a flow", () => {
  test("gives every byte in order, with its end, also to a reader that is slower", async () => {
    const [from, to] = [new PassThrough(), new PassThrough({ highWaterMark: 10 })];
    const pace = new Pace();
    pace.set(8);
    flow(from, to, pace);
    const sent = Array.from({ length: 300 }, (_, n) => `${n} `.repeat(100));
    for (const text of sent) from.write(text);
    from.end();
    let got = "";
    for await (const chunk of to) got += chunk;
    assert.equal(got, sent.join(""));
  });

  test("takes at least the time of its limit", async () => {
    const [from, to] = [new PassThrough(), new PassThrough()];
    const pace = new Pace();
    pace.set(8); // 300 KB take 300 ms less the burst
    flow(from, to, pace);
    const begun = performance.now();
    to.resume();
    for (let n = 0; n < 30; n++) from.write(Buffer.alloc(10_000));
    from.end(Buffer.alloc(1));
    await once(to, "end");
    assert.ok(performance.now() - begun >= 190);
  });

  test("a destination that is gone ends it, and nothing is written any more", async () => {
    const [from, to] = [new PassThrough(), new PassThrough()];
    flow(from, to, new Pace());
    from.write("a");
    to.destroy();
    await once(to, "close");
    from.write("b");
    assert.equal(from.listenerCount("data"), 0);
  });
});
