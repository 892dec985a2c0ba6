/**
 * Whatever a failed test leaves open is closed at the end of its file, which would otherwise never end.
 *
 *   const closed = closeAtEnd(() => server.close());
 *   …
 *   closed(); // it was closed in time
 */
import { after } from "node:test";

const open = new Set<() => unknown>();

/** Helpers of tests are also loaded by processes that tests start; those have no tests to come after. */
if (/(\.(test|long|cluster)|\/runner\/together)\.ts$/.test(process.argv[1] ?? "")) {
  after(async () => {
    for (const close of [...open].reverse()) await close();
  });
}

export function closeAtEnd(close: () => unknown): () => void {
  open.add(close);
  return () => open.delete(close);
}
