/** Runs code in the interpreter of a sandbox, whose image is `service/code-interpreter` or sets `BERTH_SERVE_49999`. */
import type { Berth } from "../berth.ts";
import type { CallOptions } from "../core/call.ts";
import { linesOf } from "../core/lines.ts";

const PORT_PATH = "/port/49999";

export type CodeLanguage = "python" | "javascript" | "typescript";

export interface CodeOptions {
  /** The language's default context is used. Default: Python. */
  language?: CodeLanguage | undefined;
  /** The id of a context that `createCodeContext` made, in place of a language. */
  context?: string | undefined;
  /** Variables of this execution alone. */
  env?: Readonly<Record<string, string>> | undefined;
  /** Called with output as it is printed. */
  onStdout?: ((text: string) => void) | undefined;
  onStderr?: ((text: string) => void) | undefined;
  onResult?: ((result: CodeResult) => void) | undefined;
  /** The code is interrupted when the signal ends. */
  signal?: AbortSignal | undefined;
  /** The code is interrupted after this many milliseconds, with the error `TimeoutError`. Default: no limit. */
  timeoutMs?: number | undefined;
}

/** A value in the forms that it has; images are base64. */
export interface CodeResult {
  /** The value of the last expression; false for one that code displayed. */
  isMain: boolean;
  text?: string;
  html?: string;
  markdown?: string;
  svg?: string;
  png?: string;
  jpeg?: string;
  pdf?: string;
  latex?: string;
  json?: unknown;
  javascript?: string;
  /** Other forms by media type. */
  extra?: Record<string, unknown>;
}

export interface CodeError {
  name: string;
  value: string;
  traceback: string;
}

export interface CodeExecution {
  /** The text of the last expression's value. */
  text: string | null;
  results: CodeResult[];
  stdout: string;
  stderr: string;
  /** An error of the code is a result; it is not thrown. */
  error: CodeError | null;
}

export interface CodeContext {
  id: string;
  language: CodeLanguage;
  cwd: string;
}

type Message =
  | { type: "stdout" | "stderr"; text: string }
  | ({ type: "result"; is_main_result: boolean } & Omit<CodeResult, "isMain">)
  | ({ type: "error" } & CodeError)
  | { type: "number_of_executions" | "keepalive" };

export async function runCode(
  berth: Berth,
  address: string,
  code: string,
  { language, context, env, onStdout, onStderr, onResult, signal, timeoutMs }: CodeOptions,
): Promise<CodeExecution> {
  const request = {
    ...{ method: "POST", path: `${PORT_PATH}/execute`, headers: { "content-type": "application/json" } },
    body: JSON.stringify({ code, language, context_id: context, env_vars: env, timeout_ms: timeoutMs }),
    signal,
  };
  const execution: CodeExecution = { text: null, results: [], stdout: "", stderr: "", error: null };
  const told = { stdout: onStdout, stderr: onStderr };
  const response = await berth.sendToWorkload(address, request, async (answer) => answer);
  for await (const line of linesOf(response, signal)) {
    const message = JSON.parse(line) as Message;
    if (message.type === "stdout" || message.type === "stderr") {
      execution[message.type] += message.text;
      told[message.type]?.(message.text);
    } else if (message.type === "result") {
      const { type: _, is_main_result: isMain, ...forms } = message;
      const result = { isMain, ...forms };
      execution.results.push(result);
      if (isMain) execution.text = forms.text ?? null;
      onResult?.(result);
    } else if (message.type === "error") {
      const { name, value, traceback } = message;
      execution.error = { name, value, traceback };
    }
  }
  return execution;
}

export const createCodeContext = (
  berth: Berth,
  address: string,
  { language, cwd, ...options }: { language?: CodeLanguage | undefined; cwd?: string | undefined } & CallOptions,
): Promise<CodeContext> =>
  berth.askWorkload(address, {
    ...options,
    method: "POST",
    path: `${PORT_PATH}/contexts`,
    body: { language, cwd },
  }) as Promise<CodeContext>;
