/** Compiled with `tsc --strict` against the installed SDK, not run: what comes out has the types that people expect. */
import { type Berth, BerthError, type Finished, Job, McpServer, Model, Sandbox, type usage, Volume } from "@berth/sdk";
import type { SandboxRecord } from "@berth/sdk/types";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const isType = <_Check extends true>(): void => {};

export async function sandboxes(signal: AbortSignal): Promise<void> {
  await using box = await Sandbox.create({ memoryMb: 512, signal });
  const finished = await box.run("npm test", { cwd: "/app", onStdout: (text) => isType<Equal<typeof text, string>>() });
  isType<Equal<typeof finished, Finished>>();
  isType<Equal<typeof finished.exitCode, number>>();
  isType<Equal<typeof box.record, SandboxRecord>>();
  for await (const line of box.logs({ follow: true, signal })) isType<Equal<typeof line.message, string>>();
  const bytes = await box.files.readBytes("/a");
  await box.files.write("/b", bytes);
  await box.files.write("/c", new Blob(["text"]));
  const preview = await box.preview(3000, { public: true });
  isType<Equal<typeof preview.url, string>>();
  const tools = await new McpServer("f").list();
  isType<Equal<(typeof tools)[number]["name"], string>>();
}

export async function others(berth: Berth): Promise<void> {
  const record = await berth.api.sandboxGet({ params: { sandboxName: "box" } });
  isType<Equal<typeof record, SandboxRecord>>();
  for await (const drive of berth.api.driveList()) isType<Equal<typeof drive.metadata.name, string>>();
  const { stats } = await new Job("j", { berth }).run([{ page: 1 }]).wait({ onProgress: ({ status }) => status });
  isType<Equal<typeof stats.success, number>>();
  const vectors = await new Model("m").embeddings(["a"]);
  isType<Equal<typeof vectors, number[][]>>();
  for await (const volume of Volume.list({ berth })) isType<Equal<typeof volume.name, string>>();
  isType<Equal<Awaited<ReturnType<typeof usage>>["summary"]["totalCost"], number>>();
}

export function mistakes(berth: Berth, error: unknown): string {
  // @ts-expect-error: there is no such option
  void Sandbox.create({ memory: 512 });
  // @ts-expect-error: a parameter of the path is missing
  void berth.api.sandboxGet();
  // @ts-expect-error: not a sort of this list
  void berth.api.driveList({ query: { sort: "size:asc" } });
  // @ts-expect-error: not a member of the body
  void berth.api.sandboxCreate({ body: { spec: { runtme: {} } } });
  return error instanceof BerthError ? error.nextStep : "";
}
