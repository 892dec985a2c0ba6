/** Copies of the files of workloads, which new workloads start from (`WorkloadSpec.snapshot`). */

export interface Snapshots {
  /** A consistent copy of the files, kept under `id` until removed. The workload is held still meanwhile. */
  take(uid: string, id: string): Promise<Snapshot>;
  remove(id: string): Promise<void>;
  list(): Promise<Snapshot[]>;
}

export interface Snapshot {
  id: string;
  image: string;
  sizeBytes: number;
  createdAt: string;
  /** It holds processes and memory, too. */
  memory?: true;
}
