/** `berth image load`: uploads an image file to the server. */
import { createReadStream, statSync } from "node:fs";
import { basename } from "node:path";
import { UsageError } from "../../lib/usage-error.ts";
import { type Context, type Invocation, text } from "../command.ts";
import { operation } from "../sandbox-door.ts";
import { connect } from "./call-input.ts";
import { print } from "./show.ts";

const MB = 1024 * 1024;
/** Longest wait: uploading and unpacking a large image over a slow connection. */
const PATIENCE_MS = 6 * 60 * 60_000;
/** Number of progress messages. */
const STEPS = 10;

export async function loadImage(call: Invocation): Promise<undefined> {
  const { args, options, context } = call;
  const file = text(args[0]) ?? "";
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat?.isFile()) throw new UsageError(`${file} is not a file.`, "docker save IMAGE -o image.tar");
  const [name = "", tag = "latest", ...more] = (text(args[1]) ?? nameFrom(file)).split(":");
  if (name === "" || more.length > 0) throw new UsageError("an image is called NAME or NAME:TAG.");
  const made = await connect(call).call(operation("imageLoad"), {
    params: { resourceType: text(options.type) ?? "sandbox", imageName: name, tagName: tag },
    body: ReadableStream.from(told(file, stat.size, context)),
    timeoutMs: PATIENCE_MS,
  });
  return print(call, null, "pretty", made);
}

/** `dist/My_Tool.tar.gz` becomes my-tool. */
const nameFrom = (file: string): string =>
  basename(file)
    .replace(/\.(tar|tgz|tar\.\w+)$/i, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "");

async function* told(file: string, size: number, context: Context): AsyncGenerator<Uint8Array> {
  const total = `${Math.ceil(size / MB)} MB`;
  context.note(`sending ${total}`);
  let sent = 0;
  let step = 1;
  for await (const chunk of createReadStream(file, { highWaterMark: MB })) {
    yield chunk as Uint8Array;
    sent += (chunk as Uint8Array).length;
    if (sent < (size * step) / STEPS || size < STEPS * MB) continue;
    context.note(`sent ${Math.round((100 * sent) / size)} % of ${total}`);
    step = Math.floor((sent * STEPS) / size) + 1;
  }
  context.note("the server unpacks it …");
}
