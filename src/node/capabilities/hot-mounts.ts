/** Mounts that come and go while a workload runs. Mounts of a specification are every driver's own matter. */
import type { Mount } from "../workload.ts";

export interface HotMounts {
  /** Binds a directory into the running workload. The same mount again is no error. */
  mount(uid: string, mount: Mount): Promise<void>;
  /** Answers false when nothing of ours is mounted there. */
  unmount(uid: string, path: string): Promise<boolean>;
}
