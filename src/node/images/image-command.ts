/** The command that an image names, as its registry tells, for drivers that never see the image's configuration. */
import { z } from "zod";
import { PlatformError } from "../../contract/errors.ts";
import { parseReference } from "../../contract/image-reference.ts";
import type { FindCredentials } from "../../registry/credentials.ts";
import { describeImage } from "../../registry/manifest.ts";
import { BRIEF, withPatience } from "../../registry/patience.ts";
import { RegistryProblem } from "../../registry/problem.ts";
import { fromFirst, type Registries } from "../../registry/registries.ts";
import type { ImagePull } from "../workload.ts";

const ASK_WAIT_MS = 60_000;

const words = z.array(z.string()).nullish();
const documentSchema = z.object({ config: z.object({ Entrypoint: words, Cmd: words }).nullish() });

/** Answers with the entry point and its arguments; empty when the image names none. */
export type CommandOf = (image: string, credentials?: ImagePull["credentials"]) => Promise<string[]>;

export const commandReader =
  (registries: Registries): CommandOf =>
  async (image, own) => {
    const reference = parseReference(image);
    if (!reference) throw new PlatformError("bad_request", `${JSON.stringify(image)} is no name of an image.`);
    const signal = AbortSignal.timeout(ASK_WAIT_MS);
    const credentials: FindCredentials = (registry) => (own?.registry === registry ? own : null);
    const options = { signal, bytesMax: Number.POSITIVE_INFINITY };
    try {
      const { config } = await fromFirst(registries.sourcesOf(reference, credentials), (source) =>
        withPatience(BRIEF, signal, () => describeImage(source, reference, options)),
      );
      const { Entrypoint, Cmd } = documentSchema.parse(JSON.parse(config.toString("utf8"))).config ?? {};
      return [...(Entrypoint ?? []), ...(Cmd ?? [])];
    } catch (error) {
      if (!(error instanceof RegistryProblem)) throw error;
      const message = `The command of the image ${image} is not known here, since ${error.message}. Name the command.`;
      throw new PlatformError("unprocessable", message, { cause: error });
    }
  };
