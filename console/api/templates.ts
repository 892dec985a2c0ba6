/** Templates that come with the platform, and the deployment of code from a browser. */
import type { Json } from "../lib/members.ts";
import { type Collection, collectionPath } from "../lib/places.ts";
import type { ZipFile } from "../lib/zip.ts";
import { call, send } from "./call.ts";
import { failureOf, unreachable } from "./failure.ts";
import { useAnswer } from "./query.ts";
import { changed } from "./resources.ts";

export interface Template {
  name: string;
  description: string;
  /** The kind that it becomes. */
  type: string;
  language: string;
  topics: readonly string[];
  variables: readonly { name: string; description: string; secret: boolean }[];
}

export const useTemplates = (workspace: string) =>
  useAnswer<Template[]>({ key: ["templates"], ask: (signal) => call({ path: "/templates", workspace, signal }) });

export async function templateFiles(workspace: string, name: string): Promise<ZipFile[]> {
  const path = `/templates/${encodeURIComponent(name)}/files`;
  const { files } = await call<{ files: { path: string; content: string }[] }>({ path, workspace });
  return files.map((file) => ({ path: file.path, bytes: new TextEncoder().encode(file.content) }));
}

/** Makes the resource and sends its code; the build goes on afterwards. */
export async function deployCode(workspace: string, collection: Collection, body: Json, archive: Blob): Promise<void> {
  const made = await send({
    ...({ method: "POST", path: collectionPath(collection), query: { upload: "true" }, body, workspace } as const),
  });
  // Good at every host of the management API, so at the console's own.
  const path = made.headers.get("x-service-upload-path") ?? "";
  const sent = await fetch(path, { method: "PUT", body: archive, credentials: "omit" }).catch(() => {
    throw unreachable();
  });
  if (!sent.ok) throw await failureOf(sent);
  await changed(workspace, collection);
}
