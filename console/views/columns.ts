/** The columns of each kind's list, as data. Every list begins with the name and ends with status and age. */
import { createdAt, memberAt, nameOf, textAt } from "../lib/members.ts";

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

const megabytes = (path: string): Column => ({
  ...at("Memory", path),
  value: (row) => (textAt(row, path) === "" ? "" : `${textAt(row, path)} MB`),
});

const count = (title: string, path: string): Column => ({
  ...at(title, path),
  value: (row) => {
    const found = memberAt(row, path);
    return Array.isArray(found) && found.length > 0 ? String(found.length) : "";
  },
});

const image = at("Image", "spec.runtime.image", { as: "mono" });
const memory = megabytes("spec.runtime.memory");

const OWN: Readonly<Record<string, readonly Column[]>> = {
  sandbox: [image, memory, at("State", "state", { as: "word" }), at("Isolation", "isolation")],
  agent: [image, memory, count("Triggers", "spec.triggers")],
  function: [image, memory, at("Transport", "spec.runtime.transport")],
  job: [image, memory, at("Parallel", "spec.runtime.maxConcurrentTasks"), count("Triggers", "spec.triggers")],
  application: [image, memory, at("Address", "metadata.url", { as: "mono" })],
  model: [at("Provider", "spec.runtime.type"), at("Model", "spec.runtime.model", { as: "mono" })],
  volume: [at("Size", "spec.size"), at("Attached to", "state.attachedTo"), at("Region", "spec.region")],
  drive: [at("Size", "spec.size"), at("Region", "spec.region")],
  volumetemplate: [at("Default size", "spec.defaultSize")],
  integrationconnection: [at("Integration", "spec.integration")],
  customdomain: [at("Sort", "spec.sort"), at("Region", "spec.region")],
  policy: [at("Type", "spec.type")],
  preview: [at("Port", "spec.port"), at("Address", "spec.url", { as: "mono" }), at("Public", "spec.public")],
  previewtoken: [at("Ends", "spec.expiresAt")],
  schedule: [at("When", "schedule", { as: "mono" }), at("Command", "command", { as: "mono" })],
};

const NAME: Column = { title: "Name", value: nameOf, as: "name" };
const STATUS: Column = { title: "Status", value: (row) => textAt(row, "status"), as: "status" };
const AGE: Column = { title: "Age", value: createdAt, as: "age" };

export const columnsOf = (kind: string): readonly Column[] => [NAME, ...(OWN[kind] ?? []), STATUS, AGE];
