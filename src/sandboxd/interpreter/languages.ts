/** The languages of the code interpreter, and the program that runs the code of each. */
import { ApiError } from "../http/api-error.ts";
import { scriptOf } from "./javascript.ts";
import nodeSource from "./workers/javascript.cjs" with { type: "text" };
import pythonSource from "./workers/python.py" with { type: "text" };

export interface Language {
  name: string;
  /** Other names that clients use. */
  aliases: readonly string[];
  /** Starts a program that reads its own source, a JSON string in one line, from descriptor 3. */
  argv: readonly string[];
  source: string;
  /** Changes the code before the worker runs it; throws CodeProblem for code that cannot be parsed. */
  prepare(code: string): string;
}

const NODE = {
  argv: [
    "node",
    "--no-warnings",
    "-e",
    'let s="",b=Buffer.alloc(1);while(fs.readSync(3,b,0,1,null)&&b[0]!==10)s+=b.toString("latin1");' +
      'new Function("require",JSON.parse(Buffer.from(s,"latin1").toString()))(require)',
  ],
  source: nodeSource,
};

export const LANGUAGES: readonly Language[] = [
  {
    name: "python",
    aliases: ["python3", "py"],
    argv: ["python3", "-c", 'import json,os;exec(json.loads(os.fdopen(os.dup(3),"rb",0).readline()))'],
    source: pythonSource,
    prepare: (code) => code,
  },
  { name: "javascript", aliases: ["js", "node"], ...NODE, prepare: (code) => scriptOf(code, "js") },
  { name: "typescript", aliases: ["ts"], ...NODE, prepare: (code) => scriptOf(code, "ts") },
];

export const DEFAULT_LANGUAGE = "python";

export function languageNamed(name: string): Language {
  const wanted = name.toLowerCase();
  const found = LANGUAGES.find((each) => each.name === wanted || each.aliases.includes(wanted));
  if (found) return found;
  const all = LANGUAGES.map((each) => each.name).join(", ");
  throw new ApiError(400, `The interpreter does not run ${JSON.stringify(name)}; it runs ${all}.`);
}
