/** Code blocks of pages, to be run as they are written. */
import { readFileSync } from "node:fs";

export interface Example {
  /** The heading above it. */
  title: string;
  code: string;
}

export function examplesOf(page: string, language: string): Example[] {
  let title = "";
  const examples: Example[] = [];
  const parts = readFileSync(page, "utf8").matchAll(/^#+ (.*)$|^```(\w+)\n([\s\S]*?)^```$/gm);
  for (const [, heading, fence, code = ""] of parts) {
    if (heading !== undefined) title = heading;
    else if (fence === language) examples.push({ title, code });
  }
  return examples;
}
