/**
 * Mount point of the stage. It has to be a folder that exists on every Linux, that no data folder lies in, and that the
 * workload's unprivileged user may reach; its path is short, because a socket of runsc lies below. In the private mount
 * namespace of the workload nobody needs the control groups that it hides.
 */
export const STAGE = "/sys/fs/cgroup";

/** The root of the workload on the stage, and where its mounts are. */
export const ROOT_DIR = `${STAGE}/r`;
export const TEMP_DIR = `${STAGE}/t`;
export const mountDir = (index: number): string => `${STAGE}/m${index}`;
