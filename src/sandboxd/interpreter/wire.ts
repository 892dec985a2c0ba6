/** Messages of an execution, and the lines of JSON that clients of the run-code call read. */

export type Message =
  | { type: "stdout" | "stderr"; text: string; timestamp: number }
  | { type: "result"; isMain: boolean; data: Readonly<Record<string, unknown>> }
  | { type: "error"; name: string; value: string; traceback: string }
  | { type: "number_of_executions"; execution_count: number }
  | { type: "keepalive" };

/** Clients know these media types by short names. */
const SHORT_NAMES: Readonly<Record<string, string>> = {
  "text/plain": "text",
  "text/html": "html",
  "text/markdown": "markdown",
  "image/svg+xml": "svg",
  "image/png": "png",
  "image/jpeg": "jpeg",
  "application/pdf": "pdf",
  "text/latex": "latex",
  "application/json": "json",
  "application/javascript": "javascript",
};

/** Representations of other media types are in `extra`. */
export function lineOf(message: Message): Record<string, unknown> {
  if (message.type !== "result") return message;
  const { data, isMain } = message;
  const short: Record<string, unknown> = {};
  const extra: Record<string, unknown> = {};
  for (const [type, content] of Object.entries(data)) {
    const name = SHORT_NAMES[type];
    if (name === undefined) extra[type] = content;
    else short[name] = content;
  }
  return {
    ...short,
    ...(Object.keys(extra).length > 0 ? { extra } : {}),
    type: "result",
    is_main_result: isMain,
  };
}

export const errorMessage = (name: string, value: string, traceback = `${name}: ${value}`): Message => ({
  type: "error",
  name,
  value,
  traceback,
});

/** The caller of an execution. */
export interface Listener {
  /** False when the caller reads more slowly than messages come; `drained` tells when to go on. */
  tell(message: Message): boolean;
  drained(): Promise<void>;
  /** Aborted when the caller has gone. */
  signal: AbortSignal;
}
