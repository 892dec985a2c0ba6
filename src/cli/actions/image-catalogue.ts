/** `berth image catalogue`: lists the images that come with the project, and builds one of them. */
import { catalogueImages } from "../../contract/catalogue.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { buildImage } from "./image-build.ts";
import { print } from "./show.ts";

export async function catalogue(call: Invocation): Promise<undefined> {
  const images = catalogueImages();
  const name = text(call.args[0]);
  if (name === undefined)
    return print(
      call,
      null,
      "table",
      images.map(({ name, about }) => ({ name, about })),
    );
  const image = images.find((each) => each.name === name);
  if (!image) throw new UsageError(`the catalogue has no image ${name}.`, "berth image catalogue");
  return buildImage({ ...call, args: [image.folder], options: { ...call.options, tag: name } });
}
