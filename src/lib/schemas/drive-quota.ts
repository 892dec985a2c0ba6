/** The words of `quotas` that limit what all drives of a workspace hold together. */
export const DRIVE_MB = "drive_mb";
export const DRIVE_OBJECTS = "drive_objects";

const MB = 2 ** 20;

/** Null: no limit. */
export interface DriveQuota {
  bytes: number | null;
  objects: number | null;
}

export const driveQuotaOf = (byWord: Readonly<Record<string, number>>): DriveQuota => ({
  bytes: byWord[DRIVE_MB] === undefined ? null : byWord[DRIVE_MB] * MB,
  objects: byWord[DRIVE_OBJECTS] ?? null,
});

export const isLimited = ({ bytes, objects }: DriveQuota): boolean => bytes !== null || objects !== null;
