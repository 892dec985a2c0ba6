/** Event of a resource whose first start has failed more than once and is retried; its message says why. */
export const DELAYED = "delayed";

export const isDelayed = (resource: { status: string | null; events: readonly { type?: string }[] }): boolean =>
  resource.status === "DEPLOYING" && resource.events.at(-1)?.type === DELAYED;
