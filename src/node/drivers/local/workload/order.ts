import type { WorkloadSpec } from "../../../workload.ts";
import type { ResolvedImage } from "../images/images.ts";
import type { HostMount, RootPart } from "./launch-program.ts";

/** A workload to be started, with everything that was looked up for it. */
export interface Order {
  spec: WorkloadSpec;
  image: ResolvedImage;
  /** The layers of the image or of the snapshot. */
  parts: RootPart[];
  mounts: HostMount[];
  env: Record<string, string>;
  workDir: string;
  /** Folder of the snapshot whose memory the workload goes on from. */
  memory?: string;
}
