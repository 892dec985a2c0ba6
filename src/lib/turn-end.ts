/**
 * Defers work to the end of this event-loop turn. Answers written back to back wake the client once; answers written in
 * between other work wake it each time, and waking costs more than writing.
 */
let waiting: (() => void)[] = [];

export function atTurnEnd(work: () => void): void {
  if (waiting.length === 0) setImmediate(run);
  waiting.push(work);
}

function run(): void {
  const works = waiting;
  waiting = [];
  for (const work of works) work();
}
