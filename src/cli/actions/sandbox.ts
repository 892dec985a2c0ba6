/** Logs, previews, snapshots and forks of a sandbox. */
import { type Invocation, text } from "../command.ts";
import { EXIT } from "../failure.ts";
import { memberAt } from "../json-path.ts";
import { linesOf, openSandbox, operation } from "../sandbox-door.ts";
import { connect, positiveNumber } from "./call-input.ts";
import { print } from "./show.ts";

const named = ({ args }: Invocation): string => text(args[0]) ?? "";

export async function logs(call: Invocation): Promise<undefined> {
  const sandbox = await openSandbox(named(call), call);
  const id = text(call.args[1]);
  if (id === undefined) {
    const all = (await (await sandbox.fetch("/process")).json()) as Record<string, unknown>[];
    const rows = all.map(({ name, pid, status, exitCode, command }) => ({ name, pid, status, exitCode, command }));
    return print(call, null, "table", rows);
  }
  const path = `/process/${encodeURIComponent(id)}/logs`;
  if (call.options.follow !== true) {
    const { stdout, stderr } = (await (await sandbox.fetch(path)).json()) as { stdout: string; stderr: string };
    process.stdout.write(stdout);
    process.stderr.write(stderr);
    return undefined;
  }
  for await (const line of linesOf(await sandbox.fetch(`${path}/stream`))) {
    if (line.startsWith("stdout:")) process.stdout.write(`${line.slice("stdout:".length)}\n`);
    else if (line.startsWith("stderr:")) process.stderr.write(`${line.slice("stderr:".length)}\n`);
  }
  return undefined;
}

export async function preview(call: Invocation): Promise<undefined> {
  const port = positiveNumber(text(call.args[1]), "PORT");
  const isPublic = call.options.public === true;
  const params = { sandboxName: named(call) };
  const client = connect(call);
  const made = await client.call(operation("previewCreate"), {
    params,
    body: { metadata: { name: text(call.options.name) ?? `port-${port}` }, spec: { port, public: isPublic } },
  });
  const url = String(memberAt(made, "spec.url"));
  if (isPublic) {
    call.context.print(url);
    return undefined;
  }
  const token = await client.call(operation("previewtokenCreate"), {
    params: { ...params, previewName: String(memberAt(made, "metadata.name")) },
    body: { metadata: { name: `cli-${call.context.now()}` }, spec: {} },
  });
  call.context.note("private: whoever has this address can open it");
  call.context.print(`${url}?bl_preview_token=${memberAt(token, "spec.token")}`);
  return undefined;
}

export async function snapshot(call: Invocation): Promise<number | undefined> {
  const name = text(call.options.name);
  const memory = call.options.memory === true;
  call.context.note(`copying the files ${memory ? "and the memory " : ""}of '${named(call)}' …`);
  const made = await connect(call).call(operation("snapshotCreate"), {
    params: { sandboxName: named(call) },
    body: { ...(name === undefined ? {} : { name }), ...(memory ? { memory } : {}) },
  });
  await print(call, null, "pretty", made);
  return memberAt(made, "status") === "failed" ? EXIT.failure : undefined;
}

export async function fork(call: Invocation): Promise<number | undefined> {
  const [name, targetName, snapshotId] = [named(call), text(call.args[1]), text(call.options.snapshot)];
  const targetType = call.options.application === true ? "application" : "sandbox";
  const port = positiveNumber(call.options.port, "--port");
  const traffic = positiveNumber(call.options.traffic, "--traffic");
  const copies = positiveNumber(call.options.copies, "--copies");
  const withMemory = call.options.memory === true ? true : undefined;
  call.context.note(
    `copying ${withMemory ? "files and memory" : "the files"} of '${name}' and starting '${targetName}' …`,
  );
  const made = await connect(call).call(operation("sandboxFork"), {
    params: { sandboxName: name },
    body: { targetName, targetType, snapshotId, port, traffic, copies, withMemory },
  });
  const failed = ((memberAt(made, "copies") ?? []) as { status: string }[]).filter(({ status }) => status === "FAILED");
  const what = copies === undefined ? `${targetType} '${targetName}' runs` : `${copies} sandboxes run`;
  if (failed.length === 0) call.context.note(what);
  await print(call, null, "pretty", made);
  return failed.length > 0 ? EXIT.failure : undefined;
}
