import type { Reference } from "../../../contract/image-reference.ts";
import type { Settings } from "../../port.ts";

/** How clients of the platform's registry name a tag of an image. */
export const doorReference = (
  { workspace, resourceType, name }: { workspace: string; resourceType: string; name: string },
  tag: string,
  { settings }: { settings: Pick<Settings, "publicUrl"> },
): Reference => ({
  registry: new URL(settings.publicUrl).host,
  repository: `${workspace}/${resourceType}/${name}`,
  tag,
});
