/** Commands for volumes beside the five common verbs: `berth volume snapshot disk`. */
import { type ArgumentSpec, CONNECTION_OPTIONS, type CommandSpec, GROUPS } from "../command.ts";
import { REMOTE } from "./options.ts";

const NAME: ArgumentSpec = { name: "name", about: "the volume", offers: "name" };
const TARGET: ArgumentSpec = { name: "target", about: "name of the new volume" };
const group = GROUPS.verbs;

export const volumeVerbs: readonly CommandSpec[] = [
  {
    name: "snapshot",
    group,
    summary: "keep the files as they are now",
    args: [NAME],
    options: [{ flags: "--name <text>", about: "what to call it" }, ...REMOTE],
    examples: ["berth volume snapshot disk --name before-upgrade"],
    run: async (call) => (await import("../actions/volume.ts")).snapshot(call),
  },
  {
    name: "restore",
    group,
    summary: "make a new volume with the files of a snapshot",
    args: [
      NAME,
      { name: "snapshot", about: "its id, or its name; `berth volumesnapshot list NAME` shows them" },
      TARGET,
    ],
    options: REMOTE,
    examples: ["berth volume restore disk before-upgrade disk-before"],
    run: async (call) => (await import("../actions/volume.ts")).restore(call),
  },
  {
    name: "clone",
    group,
    summary: "make a new volume with the files of this one",
    args: [NAME, TARGET],
    options: REMOTE,
    examples: ["berth volume clone disk disk-copy"],
    run: async (call) => (await import("../actions/volume.ts")).clone(call),
  },
  {
    name: "export",
    group,
    summary: "write all files into a tar",
    args: [NAME, { name: "file", about: "the tar to write; - is the output" }],
    options: [
      { flags: "--snapshot <id>", about: "the files of this snapshot (default: as they are now)" },
      ...CONNECTION_OPTIONS,
    ],
    examples: ["berth volume export disk disk.tar", "berth volume export disk - | tar -t"],
    run: async (call) => (await import("../actions/volume.ts")).exportFiles(call),
  },
  {
    name: "import",
    group,
    summary: "make a volume with the files of a tar, tar.gz or zip",
    details: "Plain files and folders, no links. A volume of this name that was never used gets the files.",
    args: [NAME, { name: "file", about: "the archive" }],
    options: [{ flags: "--size <mb>", about: "size of a new volume in MB (default 1024)" }, ...REMOTE],
    examples: ["berth volume import disk disk.tar --size 256"],
    run: async (call) => (await import("../actions/volume.ts")).importFiles(call),
  },
];
