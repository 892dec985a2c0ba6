/** POST /process/{id}/stdin: bytes for a process that was started with `stdin: true`. */

import { ApiError } from "../http/api-error.ts";
import { booleanQuery, type Call, field, readJson } from "../http/call.ts";
import { sendJson } from "../http/send.ts";

/** The body is the input itself, or with a JSON content type `{data, end}`. */
export async function postStdin(call: Call): Promise<void> {
  const process = call.daemon.processes.find(decodeURIComponent(call.params[0] ?? ""));
  const { name } = process.record;
  if (!process.running) throw new ApiError(404, `The process "${name}" is not running.`);
  const { stdin } = process;
  if (!stdin) throw new ApiError(422, noStdin(name, process.record.stdin === true));
  let bytes = 0;
  let end = booleanQuery(call, "end", false);
  const take = async (chunk: Uint8Array): Promise<void> => {
    await stdin.write(chunk);
    bytes += chunk.byteLength;
  };
  if (/^application\/json\b/i.test(call.req.headers["content-type"] ?? "")) {
    const body = await readJson(call);
    end ||= field(body, "end", "boolean") ?? false;
    await take(Buffer.from(field(body, "data", "string") ?? ""));
  } else for await (const chunk of call.req as AsyncIterable<Buffer>) await take(chunk);
  if (end) await stdin.end();
  sendJson(call.res, 200, { message: `${bytes} bytes written to the standard input of ${name}.`, bytes });
}

const noStdin = (name: string, wasAsked: boolean): string =>
  wasAsked
    ? `The standard input of "${name}" was closed when the sandbox's API was restarted.`
    : `The process "${name}" has no standard input: start it with "stdin": true.`;
