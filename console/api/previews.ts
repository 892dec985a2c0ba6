/** Ports of a sandbox and the previews that lead to them. */
import { textAt } from "../lib/members.ts";
import { call } from "./call.ts";
import { useAnswer } from "./query.ts";
import { listChanged, useList } from "./rows.ts";
import { callWorkload, type Workload } from "./workload.ts";

export interface OpenPort {
  port: number;
  address: string;
  process: string;
}

interface Socket {
  localAddr: string;
  localPort: number;
  state: string;
  processName?: string;
}

const EVERY_MS = 3000;
/** Processes whose ports are asked for: the newest ones. */
const PROCESSES_MAX = 20;
/** How long a token for a look at a private preview works. */
const TOKEN_MS = 10 * 60_000;

/** Ports on which the processes of a sandbox listen, by number. */
export const usePorts = (workload: Workload) =>
  useAnswer<OpenPort[]>({
    key: ["ports", workload.workspace, workload.name],
    everyMs: EVERY_MS,
    ask: async (signal) => {
      const processes = await callWorkload<{ pid: string; status: string }[]>(workload, { path: "/process", signal });
      // What a sandbox answers is its own word.
      const running = (Array.isArray(processes) ? processes : [])
        .filter(({ status }) => status === "running")
        .slice(-PROCESSES_MAX);
      const found = await Promise.all(
        running.map(({ pid }) =>
          callWorkload<{ ports: Socket[] }>(workload, {
            ...{ path: `/network/process/${encodeURIComponent(pid)}/ports`, signal },
          }).then(
            ({ ports }) => ports,
            () => [], // it has ended meanwhile
          ),
        ),
      );
      const open = found.flat().filter(({ state }) => state === "LISTEN");
      const byPort = new Map(
        open.map(({ localAddr, localPort, processName = "" }) => [
          localPort,
          { port: localPort, address: localAddr, process: processName },
        ]),
      );
      return [...byPort.values()].sort((a, b) => a.port - b.port);
    },
  });

export interface Preview {
  name: string;
  port: number;
  url: string;
  isPublic: boolean;
  customDomain: string;
}

const pathOf = (sandbox: string): string => `/sandboxes/${encodeURIComponent(sandbox)}/previews`;

export function usePreviews(workspace: string, sandbox: string) {
  const { data, error } = useList<unknown>(workspace, pathOf(sandbox));
  const previews = data?.map(
    (row): Preview => ({
      name: textAt(row, "metadata.name"),
      port: Number(textAt(row, "spec.port")),
      url: textAt(row, "spec.url"),
      isPublic: textAt(row, "spec.public") === "true",
      customDomain: textAt(row, "spec.customDomain"),
    }),
  );
  return { previews, error };
}

export async function createPreview(
  workspace: string,
  sandbox: string,
  preview: Pick<Preview, "name" | "port" | "isPublic">,
): Promise<void> {
  const { name, port, isPublic } = preview;
  const body = { metadata: { name }, spec: { port, public: isPublic } };
  await call({ method: "POST", path: pathOf(sandbox), body, workspace });
  await listChanged(workspace, pathOf(sandbox));
}

export async function deletePreview(workspace: string, sandbox: string, name: string): Promise<void> {
  await call({ method: "DELETE", path: `${pathOf(sandbox)}/${encodeURIComponent(name)}`, workspace });
  await listChanged(workspace, pathOf(sandbox));
}

/** The address of a preview; of a private one with a token that works for a few minutes. */
export async function addressFor(workspace: string, sandbox: string, preview: Preview): Promise<string> {
  const { name, url, isPublic } = preview;
  if (isPublic) return url;
  const path = `${pathOf(sandbox)}/${encodeURIComponent(name)}/tokens`;
  const body = { spec: { expiresAt: new Date(Date.now() + TOKEN_MS).toISOString() } };
  const made = await call<unknown>({ method: "POST", path, body, workspace });
  const address = new URL(url);
  address.searchParams.set("bl_preview_token", textAt(made, "spec.token"));
  return address.href;
}
