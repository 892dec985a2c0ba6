/** Paths at a sandbox's address that the platform may answer itself instead of the daemon inside. */

/** Captures what follows `/drives/mount/`. */
export const DRIVE_MOUNT_PATH = /^\/drives\/mount(?:\/([^?]*))?(?:\?|$)/;

export const isOwnSandboxPath = (path: string): boolean => DRIVE_MOUNT_PATH.test(path);
