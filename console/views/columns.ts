/** The columns of each kind's list, as data. Every list begins with the name and ends with status and age. */
import { bytesOf } from "../lib/format.ts";
import { createdAt, memberAt, nameOf, statusOf, textAt } from "../lib/members.ts";

const MB = 2 ** 20;

export interface Column {
  title: string;
  value(row: unknown): string;
  /** How the value is shown; plain text without. */
  as?: "name" | "status" | "age" | "mono" | "word";
  /** Left out on narrow screens. */
  wide?: boolean;
}

const at = (title: string, path: string, more: Partial<Column> = {}): Column => ({
  title,
  value: (row) => textAt(row, path),
  wide: true,
  ...more,
});

/** A member that counts so many bytes at a time. */
const bytes = (title: string, path: string, unit: number): Column => ({
  ...at(title, path),
  value: (row) => {
    const found = memberAt(row, path);
    return typeof found === "number" ? bytesOf(found * unit) : "";
  },
});

const count = (title: string, path: string): Column => ({
  ...at(title, path),
  value: (row) => {
    const found = memberAt(row, path);
    return Array.isArray(found) && found.length > 0 ? String(found.length) : "";
  },
});

const image = at("Image", "spec.runtime.image", { as: "mono" });
const memory = bytes("Memory", "spec.runtime.memory", MB);
const used = bytes("Used", "state.usedBytes", 1);

const OWN: Readonly<Record<string, readonly Column[]>> = {
  sandbox: [image, memory, at("State", "state", { as: "word" }), at("Isolation", "isolation")],
  agent: [image, memory, count("Triggers", "spec.triggers")],
  function: [image, memory, at("Transport", "spec.runtime.transport")],
  job: [image, memory, at("Parallel", "spec.runtime.maxConcurrentTasks"), count("Triggers", "spec.triggers")],
  application: [image, memory, at("Address", "metadata.url", { as: "mono" })],
  model: [at("Provider", "spec.runtime.type"), at("Model", "spec.runtime.model", { as: "mono" })],
  volume: [bytes("Size", "spec.size", MB), used, at("Attached to", "state.attachedTo"), at("Region", "spec.region")],
  drive: [used, at("Objects", "state.usedObjects"), at("Region", "spec.region")],
  volumetemplate: [bytes("Default size", "spec.defaultSize", MB)],
  integrationconnection: [at("Integration", "spec.integration")],
  customdomain: [at("For", "spec.domainType", { as: "word" }), at("Region", "spec.region")],
  policy: [at("Type", "spec.type", { as: "word", wide: false })],
  preview: [at("Port", "spec.port"), at("Address", "spec.url", { as: "mono" }), at("Public", "spec.public")],
  previewtoken: [at("Ends", "spec.expiresAt")],
  schedule: [at("When", "value", { as: "mono", wide: false }), at("Command", "input.command", { as: "mono" })],
  scheduleexecution: [
    at("Schedule", "scheduleId", { wide: false }),
    at("Process", "processName", { as: "mono" }),
    at("Reason", "error"),
  ],
  volumesnapshot: [bytes("Stored", "storedMb", MB)],
  egressip: [at("Address", "spec.publicIp", { as: "mono" })],
};

const NAME: Column = { title: "Name", value: nameOf, as: "name" };
const STATUS: Column = { title: "Status", value: statusOf, as: "status" };
const AGE: Column = { title: "Age", value: createdAt, as: "age" };

/** Kinds whose resources are there or not, and have no status. */
const WITHOUT_STATUS: readonly string[] = ["policy", "previewtoken", "schedule"];

export const columnsOf = (kind: string): readonly Column[] => [
  NAME,
  ...(OWN[kind] ?? []),
  ...(WITHOUT_STATUS.includes(kind) ? [] : [STATUS]),
  AGE,
];
