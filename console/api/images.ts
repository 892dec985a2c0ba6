/** Images of the workspace: those that were pulled, built or loaded, and those that other workspaces share. */
import { call } from "./call.ts";
import { queries, useAnswer } from "./query.ts";

export interface ImageTag {
  name: string;
  image?: string;
  digest?: string;
  status?: string;
  size?: number;
  createdAt: string;
  updatedAt: string;
}

export interface Image {
  metadata: {
    name: string;
    resourceType: string;
    sourceWorkspace?: string;
    status?: string;
    events?: readonly { type: string; status?: string; message?: string; time: string }[];
    createdAt: string;
    updatedAt: string;
    lastDeployedAt?: string;
  };
  spec: { size?: number; tags: readonly ImageTag[] };
}

const PATH = "/images";
/** A pull tells its progress every few seconds. */
const BUSY_EVERY_MS = 1000;
const EVERY_MS = 15_000;
const BUSY = ["DEPLOYING", "BUILDING", "UPLOADING"];

export const isBusy = ({ metadata }: Image): boolean => BUSY.includes(metadata.status ?? "");

/** `registry/python`: the image in addresses of the API. */
export const imageId = ({ metadata }: Image): string => `${metadata.resourceType}/${metadata.name}`;

/** What people call the image: the reference of its only tag, or the repository of several. */
export function imageTitle({ metadata, spec }: Image): string {
  const source = spec.tags[0]?.image;
  if (metadata.resourceType !== "registry" || source === undefined) return metadata.name;
  return (spec.tags.length > 1 ? source.replace(/(?:@|:(?=[^/]*$)).*$/, "") : source).replace(
    /^docker\.io\/(library\/)?/,
    "",
  );
}

const keyOf = (workspace: string): readonly unknown[] => ["images", workspace];

export const useImages = (workspace: string) =>
  useAnswer<Image[]>({
    key: [...keyOf(workspace), "list"],
    everyMs: (images) => (images?.some(isBusy) ? BUSY_EVERY_MS : EVERY_MS),
    ask: (signal) => call({ path: PATH, workspace, signal }),
  });

export const useImage = (workspace: string, id: string) =>
  useAnswer<Image>({
    key: [...keyOf(workspace), "one", id],
    everyMs: (image) => (image && isBusy(image) ? BUSY_EVERY_MS : EVERY_MS),
    ask: (signal) => call({ path: `${PATH}/${id}`, workspace, signal }),
  });

const imagesChanged = (workspace: string): Promise<void> => queries.invalidateQueries({ queryKey: keyOf(workspace) });

/** Returns the image's id. */
export async function pullImage(workspace: string, image: string): Promise<string> {
  const made = await call<{ name: string; resourceType: string }>({
    ...{ method: "POST", path: PATH, body: { image }, workspace },
  });
  await imagesChanged(workspace);
  return `${made.resourceType}/${made.name}`;
}

export async function deleteImage(workspace: string, id: string): Promise<void> {
  await call({ method: "DELETE", path: `${PATH}/${id}`, workspace });
  await imagesChanged(workspace);
}

export async function deleteTag(workspace: string, id: string, tag: string): Promise<void> {
  await call({ method: "DELETE", path: `${PATH}/${id}/tags/${encodeURIComponent(tag)}`, workspace });
  await imagesChanged(workspace);
}

interface Cleanup {
  deleted: number;
  images: readonly string[];
}

/** Images that nothing uses: counted with `dryRun`, else deleted. */
export async function cleanUp(workspace: string, dryRun: boolean): Promise<Cleanup> {
  const query: Record<string, string> = dryRun ? { dryRun: "true" } : {};
  const done = await call<Cleanup>({ method: "DELETE", path: PATH, query, workspace });
  if (!dryRun) await imagesChanged(workspace);
  return done;
}
