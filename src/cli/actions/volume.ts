/** Snapshots, copies, exports and imports of volumes. */
import { createReadStream, createWriteStream, renameSync, rmSync, statSync } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ApiError } from "../../client/api-error.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { EXIT } from "../failure.ts";
import { memberAt } from "../json-path.ts";
import { operation } from "../sandbox-door.ts";
import { connect, positiveNumber } from "./call-input.ts";
import { print } from "./show.ts";

/** Longest wait: the files of a large volume over a slow connection. */
const PATIENCE_MS = 6 * 60 * 60_000;

const named = ({ args }: Invocation): string => text(args[0]) ?? "";
const paramsOf = (call: Invocation) => ({ volumeName: named(call) });

export async function snapshot(call: Invocation): Promise<number | undefined> {
  const name = text(call.options.name);
  call.context.note(`copying the files of '${named(call)}' …`);
  const body = name === undefined ? {} : { name };
  const made = await connect(call).call(operation("volumesnapshotCreate"), { params: paramsOf(call), body });
  await print(call, null, "pretty", made);
  return memberAt(made, "status") === "failed" ? EXIT.failure : undefined;
}

export async function restore(call: Invocation): Promise<undefined> {
  const snapshotId = await snapshotIdOf(call);
  return copy(call, "volumeRestore", snapshotId, { snapshotId, targetName: text(call.args[2]) });
}

/** The server knows snapshots by id; a name is as good when one snapshot of the volume has it. */
async function snapshotIdOf(call: Invocation): Promise<string> {
  const asked = text(call.args[1]) ?? "";
  if (asked.startsWith("snap_")) return asked;
  const ids: string[] = [];
  for await (const one of connect(call).items(operation("volumesnapshotList"), { params: paramsOf(call) }))
    if (memberAt(one, "name") === asked) ids.push(String(memberAt(one, "id")));
  const [id, ...more] = ids;
  if (id !== undefined && more.length === 0) return id;
  const next = `\`berth volumesnapshot list ${named(call)}\` shows them`;
  if (id === undefined) throw new UsageError(`no snapshot of '${named(call)}' has the name or id '${asked}'.`, next);
  throw new UsageError(
    `${ids.length} snapshots have the name '${asked}': give one of the ids ${ids.join(", ")}.`,
    next,
  );
}

export const clone = (call: Invocation): Promise<undefined> =>
  copy(call, "volumeClone", named(call), { targetName: text(call.args[1]) });

async function copy(call: Invocation, id: string, source: string, body: object): Promise<undefined> {
  call.context.note(`copying the files of '${source}' …`);
  const made = await connect(call).call(operation(id), { params: paramsOf(call), body, timeoutMs: PATIENCE_MS });
  return print(call, null, "pretty", made);
}

/** A file is there whole or not at all. */
export async function exportFiles(call: Invocation): Promise<undefined> {
  const file = text(call.args[1]) ?? "";
  const query = { snapshotId: text(call.options.snapshot) };
  const bytes = connect(call).bytes(operation("volumeExport"), { params: paramsOf(call), query });
  if (file === "-") {
    await pipeline(bytes, process.stdout, { end: false });
    return undefined;
  }
  const part = `${file}.part`;
  try {
    await pipeline(Readable.from(bytes), createWriteStream(part, { mode: 0o600 }));
    renameSync(part, file);
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  }
  call.context.note(`${file} has ${statSync(file).size} bytes`);
  return undefined;
}

export async function importFiles(call: Invocation): Promise<undefined> {
  const file = text(call.args[1]) ?? "";
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) throw new UsageError(`${file} is not a file.`);
  const size = positiveNumber(call.options.size, "--size");
  const client = connect(call);
  const found = await client.call(operation("volumeGet"), { params: paramsOf(call) }).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  });
  if (found === null) {
    const body = { metadata: { name: named(call) }, spec: size === undefined ? {} : { size } };
    await client.call(operation("volumeCreate"), { body });
  }
  call.context.note("sending the files …");
  const made = await client.call(operation("volumeImport"), {
    params: paramsOf(call),
    body: Readable.toWeb(createReadStream(file)),
    timeoutMs: PATIENCE_MS,
  });
  return print(call, null, "pretty", made);
}
