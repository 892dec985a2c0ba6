import type { Call } from "../http/call.ts";

/** E2B's clients ask whether the sandbox runs, and read nothing but the status. */
export function getHealth({ res }: Call): void {
  res.writeHead(204).end();
}
