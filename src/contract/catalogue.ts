/**
 * The catalogue: images that come with the project as Dockerfiles, one folder each below `images/`. The first line of a
 * Dockerfile is a comment that describes its image.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../lib/root.ts";

const FOLDER = join(ROOT, "images");

export interface CatalogueImage {
  name: string;
  about: string;
  /** The build's context. */
  folder: string;
  /** Images that the Dockerfile builds on, of the catalogue or others. */
  bases: string[];
}

export const catalogueImages = (): CatalogueImage[] =>
  readdirSync(FOLDER)
    .sort()
    .map((name) => {
      const folder = join(FOLDER, name);
      const text = readFileSync(join(folder, "Dockerfile"), "utf8");
      const [first = ""] = text.split("\n");
      const bases = [...text.matchAll(/^FROM (\S+)/gm)].map(([, base = ""]) => base);
      return { name, about: first.replace(/^# */, ""), folder, bases };
    });

/** The image of that name after the images of the catalogue that it builds on; empty for a name that is not there. */
export function buildOrder(name: string, images = catalogueImages()): CatalogueImage[] {
  const image = images.find((each) => each.name === name);
  if (!image) return [];
  const below = image.bases.filter((base) => base !== name).flatMap((base) => buildOrder(base, images));
  return [...new Set([...below, image])];
}

/** How to get the image that a reference such as `vite` or `sandbox/vite` seems to mean; empty for any other name. */
export function catalogueHint(reference: string): string {
  const name = /^(?:[a-z0-9-]+\/)?([a-z0-9-]+)(?::latest)?$/.exec(reference)?.[1];
  const found = catalogueImages().find((each) => each.name === name);
  return found ? ` \`berth image catalogue ${found.name}\` builds it.` : "";
}
