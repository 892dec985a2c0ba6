/** Limits for one image, shared by its layers. */
import { refused } from "./refusal.ts";
import type { TarEntry } from "./tar-reader.ts";

export interface Budget {
  bytes: number;
  entries: number;
  /** Bytes read from archives, whether or not they hold files. */
  readBytes: number;
}

export const TOO_LARGE = "it is larger than an image may be";

export function spend(budget: Budget, { size }: TarEntry): void {
  budget.entries -= 1;
  budget.bytes -= size;
  if (budget.entries < 0 || budget.bytes < 0) throw refused(TOO_LARGE);
}
