/** Sends the files of a folder into a workload, through the API of its daemon. */
import { createReadStream } from "node:fs";
import { readdir, readlink, stat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { PlatformError } from "../../../../contract/errors.ts";
import { request } from "../../../../lib/network/node-http.ts";
import { dial } from "../../../dial/dial.ts";
import type { Endpoint } from "../../../dial/endpoint.ts";

const FILE_WAIT_MS = 10 * 60_000;

/** Files and folders; what is neither, such as a link, is refused. */
export async function sendFiles(endpoint: Endpoint, from: string, to: string): Promise<void> {
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), `${to}/${entry.name}`];
    if (entry.isDirectory()) {
      await put(endpoint, target, { isDirectory: true });
      await sendFiles(endpoint, source, target);
    } else if (entry.isFile()) await putFile(endpoint, source, target);
    else {
      const leads = await readlink(source).catch(() => "");
      throw new PlatformError("unprocessable", `${entry.name} is neither a file nor a folder ${leads}.`);
    }
  }
}

const put = (endpoint: Endpoint, path: string, body: unknown): Promise<void> =>
  send(endpoint, path, "application/json", async (outgoing) => void outgoing.end(JSON.stringify(body)));

async function putFile(endpoint: Endpoint, source: string, target: string): Promise<void> {
  const mode = ((await stat(source)).mode & 0o777).toString(8);
  const type = "application/octet-stream";
  await send(endpoint, `${target}?permissions=${mode}`, type, (outgoing) =>
    pipeline(createReadStream(source), outgoing),
  );
}

async function send(
  endpoint: Endpoint,
  path: string,
  type: string,
  write: (outgoing: NodeJS.WritableStream) => Promise<void>,
): Promise<void> {
  const signal = AbortSignal.timeout(FILE_WAIT_MS);
  const stream = await dial(endpoint, "api", { signal });
  const [plain = "", query] = path.split("?");
  const encoded = plain.split("/").map(encodeURIComponent).join("/");
  const outgoing = request({
    createConnection: () => stream,
    method: "PUT",
    path: `/filesystem/${encoded}${query ? `?${query}` : ""}`,
    headers: { host: "sandbox", connection: "close", "content-type": type },
    signal,
  });
  const answered = new Promise<void>((resolve, reject) => {
    outgoing.once("error", reject);
    outgoing.once("response", (response) => {
      response.resume();
      if (response.statusCode === 200) resolve();
      else reject(new PlatformError("internal", `A file could not be sent into the volume (${response.statusCode}).`));
    });
  });
  await Promise.all([answered, write(outgoing)]);
}
