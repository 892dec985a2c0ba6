/** Code blocks of pages, to be run as they are written. */
import { spawnSync } from "node:child_process";
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

const hasPython = spawnSync("/usr/bin/python3", ["--version"]).status === 0;

/** Whether the base image, which has the programs of this machine, can run what an example starts in a sandbox. */
export const isPossible = (code: string): boolean => hasPython || !code.includes("python3 -m");
