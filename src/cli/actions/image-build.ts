/** `berth image build`: sends a folder with a Dockerfile and shows the build until its end. */
import { existsSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ApiError } from "../../client/api-error.ts";
import type { Event } from "../../contract/fields.ts";
import { imageCreate, imageGet } from "../../kinds/image/operations.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { contextOf } from "../archive.ts";
import { type Invocation, text, texts } from "../command.ts";
import { parsePairs } from "../json-path.ts";
import { operation } from "../sandbox-door.ts";
import { connect } from "./call-input.ts";
import { tellWhenInterrupted } from "./interrupted.ts";
import { createReader } from "./logs.ts";
import { print } from "./show.ts";

const LOOK_MS = 500;
/** Longest wait: a build may take half an hour, and may wait for others before. */
const PATIENCE_MS = 60 * 60_000;

export async function buildImage(call: Invocation): Promise<undefined> {
  const { options, context } = call;
  const dir = text(call.args[0]) ?? ".";
  const dockerfile = text(options.file) ?? "Dockerfile";
  if (!existsSync(join(dir, dockerfile))) throw new UsageError(`there is no file ${join(dir, dockerfile)}.`);
  const [name = "", tag = "latest", ...more] = (text(options.tag) ?? basename(resolve(dir)).toLowerCase()).split(":");
  if (name === "" || more.length > 0) throw new UsageError("an image is called NAME or NAME:TAG.");
  const resourceType = text(options.type) ?? "sandbox";
  const target = text(options.target);
  const build = {
    dockerfile,
    args: parsePairs(texts(options.buildArg)),
    secrets: secretsOf(call),
    noCache: options.cache === false,
    ...(target === undefined ? {} : { target }),
  };
  const client = connect(call);
  const body = { name, resourceType, tag, build };
  const answer = await client.send(imageCreate, { query: { upload: true }, body });
  const url = answer.headers.get("x-service-upload-url");
  if (!url) throw new ApiError({ status: 502, code: "upload", message: "The server gave no upload address." });
  const archive = contextOf(dir, dockerfile);
  context.note(`sending ${Math.ceil(archive.length / 1024)} KB`);
  const sent = await fetch(url, { method: "PUT", body: archive, headers: { "content-type": "application/gzip" } });
  if (!sent.ok) throw new ApiError({ status: sent.status, code: "upload", message: await sent.text() });
  const logs = createReader(client, operation("logQuery"), {
    ...{ resourceType: "images", workloadIds: name, revision: tag, type: "build" },
  });
  const params = { resourceType, imageName: name };
  const follow = async (): Promise<undefined> => {
    for (const endsAt = Date.now() + PATIENCE_MS; Date.now() < endsAt; await pause(LOOK_MS)) {
      const image = await client.call(imageGet, { params });
      const { status, events = [] } = image.metadata;
      for (const line of await logs.read(askedAtMs(events), Number.POSITIVE_INFINITY)) context.note(line.message);
      if (status === "FAILED")
        throw new ApiError({
          status: 422,
          code: "unprocessable",
          message: events.at(-1)?.message ?? "The build failed.",
        });
      if (status === "DEPLOYED") return print(call, null, "pretty", image);
    }
    throw new ApiError({
      status: 504,
      code: "timeout",
      message: "The build goes on; look again with `berth image list`.",
    });
  };
  return tellWhenInterrupted(
    [`The build of ${name}:${tag} goes on. Look with \`berth image inspect ${name}:${tag}\`.`],
    context,
    follow,
  );
}

/** When the server was asked for the build, by its own clock: older lines belong to an earlier build of the tag. */
const askedAtMs = (events: readonly Event[]): number =>
  Date.parse(events.findLast(({ type }) => type === "uploading")?.time ?? "") || 0;

/** `id=NAME,src=FILE` and `id=NAME,env=VARIABLE`, as Docker has them, or `NAME=value`. */
function secretsOf({ options, context }: Invocation): Record<string, string> {
  return Object.fromEntries(
    texts(options.secret).map((given) => {
      const parts = Object.fromEntries(
        given.split(",").map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)]),
      );
      const { id, src = parts.source, env } = parts;
      if (id === undefined) {
        const equals = given.indexOf("=");
        if (equals < 1)
          throw new UsageError(`--secret ${given} names no secret.`, "write id=NAME,src=FILE or NAME=value");
        return [given.slice(0, equals), given.slice(equals + 1)];
      }
      if (src !== undefined) return [id, readFileSync(src, "utf8")];
      const value = context.env[env ?? id];
      if (value === undefined) throw new UsageError(`the variable ${env ?? id} is not set.`, "write id=NAME,src=FILE");
      return [id, value];
    }),
  );
}
