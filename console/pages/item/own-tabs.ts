/** Tabs that only some kinds have, before the general ones; each is loaded with its first visit. */
import type { Workload } from "../../api/workload.ts";
import { type LazyComponent, lazy } from "../../ui/lazy.tsx";

export interface OwnTab {
  /** In the address. */
  id: string;
  title: string;
  Page: LazyComponent<{ workload: Workload; resource: unknown }>;
}

const LOGS: OwnTab = {
  id: "logs",
  title: "Logs",
  Page: lazy(async () => (await import("../logs/logs-page.tsx")).LogsTab),
};

const METRICS: OwnTab = {
  id: "metrics",
  title: "Metrics",
  Page: lazy(async () => (await import("../metrics/metrics-tab.tsx")).MetricsTab),
};

const CALL: OwnTab = {
  id: "call",
  title: "Call",
  Page: lazy(async () => (await import("../agent/call.tsx")).CallTab),
};

export const OWN_TABS: Readonly<Record<string, readonly OwnTab[]>> = {
  sandbox: [
    {
      id: "terminal",
      title: "Terminal",
      Page: lazy(async () => (await import("../sandbox/terminal-tabs.tsx")).TerminalTab),
    },
    { id: "files", title: "Files", Page: lazy(async () => (await import("../sandbox/files.tsx")).FilesTab) },
    {
      id: "processes",
      title: "Processes",
      Page: lazy(async () => (await import("../sandbox/processes.tsx")).ProcessesTab),
    },
    { id: "previews", title: "Ports", Page: lazy(async () => (await import("../sandbox/ports.tsx")).PortsTab) },
    LOGS,
    METRICS,
    {
      id: "snapshots",
      title: "Snapshots",
      Page: lazy(async () => (await import("../sandbox/snapshots.tsx")).SnapshotsTab),
    },
  ],
  model: [
    { id: "chat", title: "Chat", Page: lazy(async () => (await import("../model/chat.tsx")).ChatTab) },
    { id: "requests", title: "Requests", Page: lazy(async () => (await import("../model/requests.tsx")).RequestsTab) },
    METRICS,
  ],
  customdomain: [
    { id: "dns", title: "DNS", Page: lazy(async () => (await import("../domain/domain-tab.tsx")).DomainTab) },
  ],
  volume: [
    {
      id: "volumesnapshots",
      title: "Snapshots",
      Page: lazy(async () => (await import("../volume/volume-snapshots.tsx")).VolumeSnapshotsTab),
    },
  ],
  job: [
    {
      id: "executions",
      title: "Executions",
      Page: lazy(async () => (await import("../job/executions.tsx")).ExecutionsTab),
    },
    {
      id: "triggers",
      title: "Schedules",
      Page: lazy(async () => (await import("../job/triggers.tsx")).TriggersTab),
    },
    LOGS,
  ],
  agent: [
    { id: "chat", title: "Chat", Page: lazy(async () => (await import("../agent/chat.tsx")).AgentChatTab) },
    CALL,
    LOGS,
    METRICS,
  ],
  function: [
    { id: "tools", title: "Tools", Page: lazy(async () => (await import("../mcp/tools.tsx")).ToolsTab) },
    LOGS,
    METRICS,
  ],
  application: [CALL, LOGS, METRICS],
};
