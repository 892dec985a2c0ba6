/** The abilities that a driver may have beside its core, by name. */
import type { Building } from "./building.ts";
import type { Drives } from "./drives.ts";
import type { Freezing } from "./freezing.ts";
import type { Hibernation } from "./hibernation.ts";
import type { HotMounts } from "./hot-mounts.ts";
import type { Images } from "./images.ts";
import type { MemorySnapshots } from "./memory-snapshots.ts";
import type { Resizing } from "./resizing.ts";
import type { Snapshots } from "./snapshots.ts";
import type { Unpacking } from "./unpacking.ts";
import type { VolumeCopies } from "./volume-copies.ts";
import type { Volumes } from "./volumes.ts";

export interface Capabilities {
  freezing: Freezing;
  hibernation: Hibernation;
  hotMounts: HotMounts;
  resizing: Resizing;
  snapshots: Snapshots;
  memorySnapshots: MemorySnapshots;
  volumes: Volumes;
  volumeCopies: VolumeCopies;
  drives: Drives;
  images: Images;
  unpacking: Unpacking;
  building: Building;
}

export type CapabilityName = keyof Capabilities;

/** Completes the sentence "a driver that has no …". */
export const CAPABILITY_WORDS: Readonly<Record<CapabilityName, string>> = {
  freezing: "freezing: sandboxes never go to standby",
  hibernation: "sleep on disk: the memory of a sandbox in standby stays in use",
  hotMounts: "mounts into running workloads",
  resizing: "change of the limits of a running workload",
  snapshots: "snapshots",
  memorySnapshots: "snapshots of memory: they need gVisor (install runsc) and sandboxes with isolation 'vm-like'",
  volumes: "volumes",
  volumeCopies: "copies of volumes",
  drives: "drives",
  images: "images of its own",
  unpacking: "unpacking of archives",
  building: "building of images",
};

export const CAPABILITY_NAMES = Object.keys(CAPABILITY_WORDS) as CapabilityName[];
