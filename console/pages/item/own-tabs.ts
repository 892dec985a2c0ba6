/** Tabs that only some kinds have, before the general ones; each is loaded with its first visit. */
import type { ComponentType } from "preact";
import type { Workload } from "../../api/workload.ts";
import { lazy } from "../../ui/lazy.tsx";

export interface OwnTab {
  /** In the address. */
  id: string;
  title: string;
  Page: ComponentType<{ workload: Workload; resource: unknown }>;
}

export const OWN_TABS: Readonly<Record<string, readonly OwnTab[]>> = {
  sandbox: [
    {
      id: "terminal",
      title: "Terminal",
      Page: lazy(async () => (await import("../sandbox/terminal.tsx")).TerminalTab),
    },
    { id: "files", title: "Files", Page: lazy(async () => (await import("../sandbox/files.tsx")).FilesTab) },
    {
      id: "processes",
      title: "Processes",
      Page: lazy(async () => (await import("../sandbox/processes.tsx")).ProcessesTab),
    },
    { id: "logs", title: "Logs", Page: lazy(async () => (await import("../logs/logs-page.tsx")).LogsTab) },
  ],
  model: [{ id: "chat", title: "Chat", Page: lazy(async () => (await import("../model/chat.tsx")).ChatTab) }],
  ...Object.fromEntries(
    ["agent", "function", "job", "application"].map((kind) => [
      kind,
      [{ id: "logs", title: "Logs", Page: lazy(async () => (await import("../logs/logs-page.tsx")).LogsTab) }],
    ]),
  ),
};
