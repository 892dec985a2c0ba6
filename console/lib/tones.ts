/** Which colour a status has. A word that is not here is calm. */
export type Tone = "good" | "busy" | "bad" | "calm";

const TONES: Readonly<Record<string, Tone>> = {
  DEPLOYED: "good",
  RUNNING: "good",
  READY: "good",
  COMPLETED: "good",
  SUCCEEDED: "good",
  VERIFIED: "good",
  BUILT: "good",
  ACTIVE: "good",
  DEPLOYING: "busy",
  BUILDING: "busy",
  UPLOADING: "busy",
  DELETING: "busy",
  DEACTIVATING: "busy",
  PENDING: "busy",
  QUEUED: "busy",
  FAILED: "bad",
  ERROR: "bad",
  CANCELLED: "bad",
};

export const toneOf = (status: string): Tone => TONES[status.toUpperCase()] ?? "calm";
