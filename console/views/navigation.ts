/** The groups of the navigation, in their order. */
import type { PageName } from "../lib/places.ts";
import type { IconName } from "../ui/icon.tsx";

export type Entry = { kind: string; icon: IconName } | { page: PageName; icon: IconName; title: string };

export interface Group {
  title: string;
  entries: readonly Entry[];
}

export const GROUPS: readonly Group[] = [
  {
    title: "Run",
    entries: [
      { kind: "sandbox", icon: "box" },
      { kind: "agent", icon: "agent" },
      { kind: "function", icon: "plug" },
      { kind: "job", icon: "job" },
      { kind: "application", icon: "app" },
      { kind: "model", icon: "model" },
      { page: "templates", icon: "grid", title: "Templates" },
    ],
  },
  {
    title: "Keep",
    entries: [
      { kind: "volume", icon: "disk" },
      { kind: "drive", icon: "folder" },
      { kind: "volumetemplate", icon: "copy" },
      { page: "images", icon: "layers", title: "Images" },
    ],
  },
  {
    title: "Connect",
    entries: [
      { kind: "integrationconnection", icon: "plug" },
      { kind: "customdomain", icon: "network" },
      { kind: "vpc", icon: "network" },
      { page: "egress", icon: "out", title: "Egress" },
      { kind: "policy", icon: "rule" },
    ],
  },
  {
    title: "Watch",
    entries: [
      { page: "logs", icon: "log", title: "Logs" },
      { page: "usage", icon: "chart", title: "Usage" },
      { page: "nodes", icon: "server", title: "Nodes" },
      { page: "access", icon: "people", title: "Access" },
      { page: "settings", icon: "settings", title: "Settings" },
    ],
  },
];
