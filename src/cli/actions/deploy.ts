/** From a folder to an address that answers. */
import { setTimeout as pause } from "node:timers/promises";
import { ApiError } from "../../client/api-error.ts";
import type { Client } from "../../client/client.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { EXIT } from "../failure.ts";
import { memberAt } from "../json-path.ts";
import { findNoun, type Noun, operationOf } from "../nouns.ts";
import { archiveOf, type Project, readProject } from "../project.ts";
import { connect, variablesOf } from "./call-input.ts";

const DEPLOYED_KINDS = ["agent", "function", "application", "job"];
const LOOK_MS = 500;
/** A build may take fifteen minutes, and starting another one. */
const PATIENCE_MS = 20 * 60_000;

export async function deploy(nouns: readonly Noun[], call: Invocation): Promise<number | undefined> {
  const { context, options } = call;
  const dir = text(call.args[0]) ?? ".";
  const read = readProject(dir, variablesOf(call));
  const project = { ...read, name: text(options.name) ?? read.name };
  if (!DEPLOYED_KINDS.includes(project.kind))
    throw new UsageError(`type = "${project.kind}" cannot be deployed.`, `it can be ${DEPLOYED_KINDS.join(", ")}`);
  const noun = findNoun(nouns, project.kind);
  const client = connect(call);
  const archive = archiveOf(dir);
  const url = await askForUpload(noun, project, client);
  context.note(`sending ${Math.ceil(archive.length / 1024)} KB`);
  const sent = await fetch(url, { method: "PUT", body: archive, headers: { "content-type": "application/gzip" } });
  if (!sent.ok) throw new ApiError({ status: sent.status, code: "upload", message: await sent.text() });
  const end = await follow(noun, project.name, call, client);
  if (memberAt(end, "status") !== "DEPLOYED") return EXIT.failure;
  context.print(String(memberAt(end, "metadata.url")));
}

/** Replaces what is there, or creates it; either way the answer says where the archive goes. */
async function askForUpload(noun: Noun, { name, spec }: Project, client: Client): Promise<string> {
  const input = { query: { upload: true }, body: { metadata: { name }, spec } };
  const update = operationOf(noun, "update");
  const params = { [update.params.at(-1) ?? ""]: name };
  const answer = await client.send(update, { ...input, params }).catch((error: unknown) => {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    return client.send(operationOf(noun, "create"), input);
  });
  const url = answer.headers.get("x-service-upload-url");
  if (!url) throw new ApiError({ status: 502, code: "upload", message: "The server gave no upload address." });
  return url;
}

/** Tells each step as it happens, until it is deployed or has failed. */
async function follow(noun: Noun, name: string, { context }: Invocation, client: Client): Promise<unknown> {
  const get = operationOf(noun, "get");
  const params = { [get.params.at(-1) ?? ""]: name };
  const giveUp = context.now() + PATIENCE_MS;
  let told = "";
  while (context.now() < giveUp) {
    const resource = await client.call(get, { params });
    const events = (memberAt(resource, "events") ?? []) as { time: string; type: string; message?: string }[];
    const begun = events.findLastIndex(({ type }) => type === "uploaded");
    for (const { time, type, message } of events.slice(begun)) {
      if (time <= told) continue;
      told = time;
      context.note(`${type}: ${message ?? ""}`);
    }
    const status = memberAt(resource, "status");
    if (status === "DEPLOYED" || status === "FAILED" || status === "DEACTIVATED") return resource;
    await pause(LOOK_MS);
  }
  throw new ApiError({ status: 504, code: "timeout", message: "It is not deployed yet; look again with `berth get`." });
}
