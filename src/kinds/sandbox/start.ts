import type { Sandbox } from "./kind.ts";

type Runtime = NonNullable<Sandbox["spec"]["runtime"]>;

/** The runtime of a stored sandbox: `prepare` has filled in image and memory. */
export function startOf({ spec }: Pick<Sandbox, "spec">): Runtime & { image: string; memory: number } {
  const { image, memory } = spec.runtime ?? {};
  if (image === undefined || memory === undefined) throw new Error("a stored sandbox has no image or no memory");
  return { ...spec.runtime, image, memory };
}
