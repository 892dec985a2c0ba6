/** Directories of limited size that outlive workloads; one workload has a volume at a time. */

export interface Volumes {
  /** The same id again answers with what is there. */
  create(spec: VolumeSpec): Promise<Volume>;
  observe(id: string): Promise<Volume | null>;
  destroy(id: string): Promise<void>;
}

export interface VolumeSpec {
  id: string;
  sizeMb: number;
  /** Host directory whose files it starts with. */
  from?: string;
}

export interface Volume {
  id: string;
  sizeMb: number;
  /** null: the machine does not tell. */
  usedBytes: number | null;
  /** false: the size is a wish; the machine lacks what would hold it. */
  sized: boolean;
}
