/** Servers read these as one and the same path; an odd spelling must not pass by the meter. */
export function plainPath(path: string): string {
  const decoded = path.replace(/%[2-7][0-9a-f]/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));
  return decoded.replace(/[/\s]+$/, "").replace(/\/{2,}/g, "/");
}

const IS_ODD = /%|\/\/|\s/;

/** Whether a path is one of the pattern's, in any spelling. */
export const isAt = (path: string, pattern: RegExp): boolean =>
  pattern.test(path) || (IS_ODD.test(path) && pattern.test(plainPath(path)));
