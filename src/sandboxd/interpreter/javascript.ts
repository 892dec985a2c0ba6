/**
 * Turns the code of one execution into a script that Node.js runs: declarations become variables that later executions
 * see, `import` and top-level `await` work, types are removed, and the script's value is `{ value }` of the last
 * expression, or a promise of it.
 */
import { transpilerForCells } from "../bun.ts";

export class CodeProblem extends Error {
  override readonly name = "SyntaxError";
}

export function scriptOf(code: string, loader: "js" | "ts"): string {
  try {
    return withoutDeclaredValue(transpilerForCells(loader).transformSync(code), code);
  } catch (error) {
    throw problemOf(error);
  }
}

const ASSIGNED_VALUE = /\n\s*return \{\n\s*__proto__: null,\n\s*value: ([A-Za-z_$][\w$]*) = /;

/** A declaration at the end of the code has no value, in contrast to an assignment. */
function withoutDeclaredValue(script: string, code: string): string {
  const name = ASSIGNED_VALUE.exec(script)?.[1];
  if (name === undefined) return script;
  const declared = new RegExp(`\\b(?:const|let|var)\\s+${name.replaceAll("$", "\\$")}\\b`);
  return declared.test(code) ? `${script.replace(/;?\s*$/, "")}, undefined;\n` : script;
}

interface Place {
  line: number;
  column: number;
  lineText: string;
}

function problemOf(error: unknown): CodeProblem {
  const { message = "The code cannot be parsed.", position } = firstOf(error);
  const place = position ? `\n    ${position.lineText}\n    ${" ".repeat(Math.max(0, position.column - 1))}^` : "";
  const where = position ? ` (line ${position.line})` : "";
  return Object.assign(new CodeProblem(`${message}${where}`), { stack: `SyntaxError: ${message}${where}${place}` });
}

/** The runtime throws the problem itself, or several in `errors`. */
function firstOf(error: unknown): { message?: string; position?: Place | null } {
  const { errors } = error as { errors?: unknown };
  return (Array.isArray(errors) && errors.length > 0 ? errors[0] : error) as ReturnType<typeof firstOf>;
}
