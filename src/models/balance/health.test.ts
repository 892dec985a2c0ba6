import assert from "node:assert/strict";
import { test } from "node:test";
import { ModelHealth, type Visit } from "./health.ts";

function start() {
  const clock = { nowMs: 1_000_000 };
  const ejected: [string, number][] = [];
  const health = new ModelHealth(
    () => clock.nowMs,
    (uid, forMs) => void ejected.push([uid, forMs]),
  );
  const visit = (act: (visit: Visit) => void, stream = false): void => {
    const one = health.visit("m", stream);
    act(one);
    one.over();
  };
  const fail = (times = 1, headers: string[] = []): void => {
    for (let n = 0; n < times; n += 1) visit((one) => one.failed(headers));
  };
  return { clock, ejected, health, visit, fail };
}

test("three failures in a row eject a model, a success between them does not let it come to that", () => {
  const { health, visit, fail, ejected } = start();
  fail(2);
  visit((one) => one.succeeded());
  fail(2);
  assert.equal(health.standing("m"), "well");
  fail();
  assert.equal(health.standing("m"), "out");
  assert.deepEqual(ejected, [["m", 10_000]]);
});

test("one request is the trial; each failed trial doubles the ejection, up to five minutes, and a success ends it", () => {
  const { health, fail, clock, ejected, visit } = start();
  fail(3);
  for (let n = 0; n < 8; n += 1) {
    clock.nowMs = health.ejectedUntilMs("m") - 1;
    assert.equal(health.standing("m"), "out");
    clock.nowMs += 1;
    assert.equal(health.standing("m"), "due");
    const trial = health.visit("m", false);
    assert.equal(health.standing("m"), "out", "a second request is no second trial");
    trial.failed([]);
    trial.over();
  }
  assert.deepEqual(
    ejected.map(([, forMs]) => forMs / 1000),
    [10, 20, 40, 80, 160, 300, 300, 300, 300],
  );
  clock.nowMs = health.ejectedUntilMs("m");
  visit((one) => one.succeeded());
  assert.equal(health.standing("m"), "well");
  fail(3);
  assert.deepEqual(ejected.at(-1), ["m", 10_000], "the ejections before the success are forgotten");
});

test("a trial whose caller goes away is no verdict: the next request is the trial", () => {
  const { health, fail, clock, visit } = start();
  fail(3);
  clock.nowMs = health.ejectedUntilMs("m");
  visit((one) => one.abandoned(5));
  assert.equal(health.standing("m"), "due");
});

test("a trial that begins to stream ends the ejection; the next failure ejects again, for longer", () => {
  const { health, fail, clock, ejected } = start();
  fail(3);
  clock.nowMs = health.ejectedUntilMs("m");
  const trial = health.visit("m", true);
  trial.began(10);
  assert.equal(health.standing("m"), "well");
  fail();
  assert.deepEqual(ejected.at(-1), ["m", 20_000]);
});

test("answers to requests from before the ejection neither end nor lengthen it", () => {
  const { health, fail, ejected } = start();
  const [early, late] = [health.visit("m", false), health.visit("m", false)];
  fail(3);
  early.succeeded();
  late.failed([]);
  assert.equal(health.standing("m"), "out");
  assert.equal(ejected.length, 1);
});

test("Retry-After ejects at once for as long as it says, at most five minutes", () => {
  for (const [value, seconds] of [
    ["7", 7],
    ["86400", 300],
  ] as const) {
    const { health, fail, clock } = start();
    fail(1, ["retry-after", value]);
    assert.equal(health.ejectedUntilMs("m"), clock.nowMs + seconds * 1000);
  }
  const { health, fail } = start();
  fail(1, ["retry-after", "0"]);
  assert.equal(health.standing("m"), "well");
});

test("latency is an average that follows, fades without samples, and is kept apart for streams", () => {
  const { health, visit, clock } = start();
  assert.equal(health.latencyMs("m", false), null);
  visit((one) => one.began(100));
  visit((one) => one.began(200));
  assert.equal(health.latencyMs("m", false), 120);
  assert.equal(health.latencyMs("m", true), null);
  clock.nowMs += 30_000;
  assert.equal(health.latencyMs("m", false), 60);
});

test("a caller that gave up makes a model slower, never faster, and its time gives way to the first measured one", () => {
  const { health, visit } = start();
  visit((one) => one.abandoned(5000));
  visit((one) => one.abandoned(1));
  assert.equal(health.latencyMs("m", false), 5000);
  visit((one) => one.began(100));
  assert.equal(health.latencyMs("m", false), 100);
});

test("memory is bounded: the models seen first are forgotten", () => {
  const { health } = start();
  for (let n = 0; n < 10_001; n += 1) {
    const visit = health.visit(`m-${n}`, false);
    visit.began(50);
    visit.over();
  }
  assert.equal(health.latencyMs("m-0", false), null);
  assert.equal(health.latencyMs("m-1", false), 50);
});
