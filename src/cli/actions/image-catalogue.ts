/** `berth image catalogue`: lists the images that come with the project, and builds one of them. */
import { buildOrder, catalogueImages } from "../../contract/catalogue.ts";
import { nearestWord } from "../../lib/nearest-word.ts";
import { printable } from "../../lib/printable.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { buildImage } from "./image-build.ts";
import { print } from "./show.ts";

export async function catalogue(call: Invocation): Promise<undefined> {
  const name = text(call.args[0]);
  if (name === undefined)
    return print(
      call,
      null,
      "table",
      catalogueImages().map(({ name, about }) => ({ name, about })),
    );
  const images = buildOrder(name);
  if (images.length === 0) throw unknownImage(name);
  // Steps that were built before are taken from the cache.
  for (const image of images)
    await buildImage({ ...call, args: [image.folder], options: { ...call.options, tag: image.name } });
}

function unknownImage(name: string): UsageError {
  const near = nearestWord(
    name,
    catalogueImages().map((image) => image.name),
  );
  const hint = near ? ` Did you mean ${near}?` : "";
  return new UsageError(printable(`the catalogue has no image '${name}'.${hint}`), "berth image catalogue");
}
