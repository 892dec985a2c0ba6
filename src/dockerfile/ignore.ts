/** The rules of a `.dockerignore`: which paths of a build's context are left out. */
import { type PathPattern, pathPattern } from "../lib/path-pattern.ts";

/** Whether the path, relative to the context and without a slash at its end, is left out. */
export type Ignores = (path: string) => boolean;

const RULES_MAX = 1000;

interface Rule {
  pattern: PathPattern;
  isException: boolean;
}

/** The last rule that fits a path, or a folder above it, decides. Rules that cannot be read are left out. */
export function ignoreRules(text: string): Ignores {
  const rules = text.split(/\r?\n/).flatMap(ruleOf).slice(0, RULES_MAX);
  if (rules.length === 0) return () => false;
  return (path) => {
    const names = path.split("/");
    const places = names.map((_, index) => names.slice(0, index + 1).join("/"));
    const last = rules.findLast(({ pattern }) => places.some((place) => pattern.test(place)));
    return last !== undefined && !last.isException;
  };
}

function ruleOf(line: string): Rule[] {
  if (line.startsWith("#")) return [];
  const bare = line.trim();
  const isException = bare.startsWith("!");
  const path = (isException ? bare.slice(1) : bare)
    .trim()
    .split("/")
    .filter((name) => name !== "" && name !== ".")
    .join("/");
  const pattern = path === "" ? null : pathPattern(path, { deep: true });
  return pattern === null ? [] : [{ pattern, isException }];
}
