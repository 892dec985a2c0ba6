/** Files of a sandbox. */
import { useAnswer } from "./query.ts";
import { callWorkload, sendToWorkload, type Workload } from "./workload.ts";

export interface Folder {
  path: string;
  files: readonly { path: string; name: string; size?: number }[];
  subdirectories: readonly { path: string; name: string }[];
}

export interface TextFile {
  path: string;
  size: number;
  content: string;
}

const at = (path: string): string => `/filesystem/${encodeURIComponent(path)}`;

export const useFolder = (workload: Workload, path: string) =>
  useAnswer<Folder>({
    key: ["files", workload.workspace, workload.name, path],
    ask: (signal) => callWorkload(workload, { path: at(path), signal }),
  });

export const readText = (workload: Workload, path: string, signal: AbortSignal): Promise<TextFile> =>
  callWorkload(workload, { path: at(path), signal });

export const writeText = (workload: Workload, path: string, content: string): Promise<unknown> =>
  callWorkload(workload, { method: "PUT", path: at(path), body: { content } });

export const removeFile = (workload: Workload, path: string): Promise<unknown> =>
  callWorkload(workload, { method: "DELETE", path: `${at(path)}?recursive=true` });

export async function download(workload: Workload, path: string): Promise<Blob> {
  return (await sendToWorkload(workload, { path: `${at(path)}?download=true` })).blob();
}
