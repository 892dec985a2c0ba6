/** Paths of sources below the context, or below the root of a stage or image. */
import { posix } from "node:path";
import { DockerfileRefused, shown } from "./refusal.ts";

/** A path of the context stays in it; the parent of a root is the root. */
export function sourcePath(source: string, from: string | null, line: number): string {
  const path = posix.normalize(`./${source}`);
  if (from === null && (path === ".." || path.startsWith("../")))
    throw new DockerfileRefused(line, `${shown(source)} leads out of the context.`);
  return posix.resolve("/", source).slice(1) + (/[^/]\/$/.test(source) ? "/" : "");
}
