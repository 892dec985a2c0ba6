/** Patterns of paths as Docker has them: `*` and `?` within a name, `[a-z]`, `\` before a plain character, `**`. */

/** Longest pattern; every `*` may be tried at each character of a path. */
const PATTERN_MAX = 1000;

/** Null when the pattern cannot be read. `deep`: `**` stands for any number of folders. */
export function pathPattern(pattern: string, { deep = false } = {}): RegExp | null {
  if (pattern.length > PATTERN_MAX) return null;
  let source = "";
  for (let at = 0; at < pattern.length; ) {
    const char = pattern[at] ?? "";
    if (deep && pattern.startsWith("**", at)) {
      const isFolders = pattern[at + 2] === "/";
      source += isFolders ? "(?:[^/]+/)*" : ".*";
      at += isFolders ? 3 : 2;
    } else if (char === "*") {
      while (pattern[at] === "*") at += 1;
      source += "[^/]*";
    } else if (char === "?") {
      source += "[^/]";
      at += 1;
    } else if (char === "[") {
      const end = pattern.indexOf("]", at + 2);
      if (end < 0) return null;
      const [, not = "", members = ""] = /^([!^]?)([\s\S]*)$/.exec(pattern.slice(at + 1, end)) ?? [];
      source += `(?!/)[${not === "" ? "" : "^"}${members.replace(/[\\\]^[]/g, "\\$&")}]`;
      at = end + 1;
    } else {
      const isEscaped = char === "\\" && at + 1 < pattern.length;
      source += (isEscaped ? (pattern[at + 1] ?? "") : char).replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
      at += isEscaped ? 2 : 1;
    }
  }
  try {
    return new RegExp(`^${source}$`, "su");
  } catch {
    return null; // a range whose end is before its start
  }
}

export const hasPattern = (path: string): boolean => /[*?[\\]/.test(path);
