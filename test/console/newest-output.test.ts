/** A terminal that is slower than its program shows the newest output. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createNewestOutput } from "../../console/lib/newest-output.ts";

/** A screen whose owner decides when a text is shown. */
function slowScreen() {
  const shown: string[] = [];
  let onShown: (() => void) | null = null;
  return {
    shown,
    write(text: string, done: () => void) {
      assert.equal(onShown, null, "the screen has one text at a time");
      shown.push(text);
      onShown = done;
    },
    /** Shows all that waits; tells how many letters that were. */
    catchUp(): number {
      const before = shown.join("").length;
      while (onShown !== null) {
        const done = onShown;
        onShown = null;
        done();
      }
      return shown.join("").length - before;
    },
  };
}

test("output that the screen keeps up with is shown whole and in order", () => {
  const screen = slowScreen();
  const show = createNewestOutput(screen);
  for (const text of ["one ", "two ", "three"]) show(text);
  screen.catchUp();
  show(" four");
  screen.catchUp();
  assert.equal(screen.shown.join(""), "one two three four");
});

test("of a flood the newest lines are shown on a cleared screen, and what follows it soon", () => {
  const screen = slowScreen();
  const show = createNewestOutput(screen);
  for (let line = 0; line < 1_000_000; line += 1) show(`line ${line}\r\n`);
  show("prompt$ ");
  assert.ok(screen.catchUp() < 300_000);
  const [, after = ""] = screen.shown.join("").split("\u001bc");
  assert.match(after, /^line \d+\r\n/);
  assert.match(after, /line 999998\r\nline 999999\r\nprompt\$ $/);
});
