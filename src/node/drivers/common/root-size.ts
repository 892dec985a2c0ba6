/** Size of the root of a workload that does not say one, where roots have a size. */

const ROOT_MB_DEFAULT = 8192;
const PER_MEMORY = 2;

/** The local driver's pool of workloads has the same size up to 4 GB of memory. */
export const rootSizeMb = (memoryMb: number): number => Math.max(ROOT_MB_DEFAULT, PER_MEMORY * memoryMb);
