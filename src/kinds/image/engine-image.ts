/**
 * The image of a workload whose driver keeps no images: its engine pulls the image by name, with the credentials that
 * the workspace has for the registry. What the operator and the workspace ask of images holds here as well.
 */
import { PlatformError } from "../../contract/errors.ts";
import { parseReference, type Reference, referenceText, repositoryText } from "../../contract/image-reference.ts";
import { isBaseImage } from "../../node/images/base-names.ts";
import type { PullRequest } from "../../node/images/puller.ts";
import type { ImagePull } from "../../node/workload.ts";
import type { Deps } from "../port.ts";
import type { ImageRequest, StartImage } from "./image-request.ts";
import { pullCredentials } from "./pull-credentials.ts";
import type { User } from "./resolve.ts";
import { requireSigned, runsSignedOnly } from "./signatures.ts";

type EngineDeps = Pick<Deps, "store" | "driver" | "settings" | "puller">;

/** Null where the driver keeps images itself. `isOurs`: the platform's own registry has the image. */
export async function engineImage(
  name: string,
  user: User,
  deps: EngineDeps,
  request: ImageRequest,
  isOurs = false,
): Promise<StartImage | null> {
  if ((await deps.driver.capability("images")) !== null) return null;
  const { brand } = deps.settings;
  const plain: StartImage = { loaded: name, changedAt: null, isNew: false };
  if (isBaseImage(name, brand)) return plain;
  const isReserved = [brand, "service"].some((word) => name.startsWith(`${word}/`));
  const reference = isReserved ? null : parseReference(name);
  if (!reference) throw new PlatformError("bad_request", `There is no image ${name}.`);
  const credentials = await pullCredentials(user.workspace, request.dockerConfig, deps);
  const asked: PullRequest = { workspace: user.workspace, reference, credentials };
  if (!isOurs) await deps.puller.requireAllowed(asked);
  const pull: ImagePull = await credentialsFor(reference, asked);
  if (!(await runsSignedOnly(user.workspace, deps))) return { ...plain, pull };
  return { ...plain, loaded: await signedName(asked, request, deps), pull };
}

async function credentialsFor(
  reference: Reference,
  { credentials }: PullRequest,
): Promise<Pick<ImagePull, "credentials">> {
  const { registry, repository } = reference;
  const found = await credentials(registry);
  if (!found) return {};
  const { username, password, identityToken } = found;
  if (identityToken !== undefined)
    throw new PlatformError(
      "unprocessable",
      `The credentials for ${registry} are an identity token. Driver kubernetes pulls with a user name and a password.`,
    );
  return { credentials: { registry, repository, username, password } };
}

/** The name with the digest whose signature was checked, so that the engine runs nothing else. */
async function signedName(
  asked: PullRequest,
  { signal = new AbortController().signal }: ImageRequest,
  deps: EngineDeps,
): Promise<string> {
  const { digest, named } = await deps.puller.look(asked, signal);
  const image = { text: referenceText(asked.reference), digest, named, known: null };
  await requireSigned(image, asked.workspace, async () => asked, signal, deps);
  return `${repositoryText(asked.reference)}@${digest}`;
}
