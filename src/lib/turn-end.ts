/**
 * What is left to do at the end of this turn of the event loop. Answers that are written one after the other wake the
 * client once; written each in the middle of other work, each wakes it again, and waking costs more than writing.
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
