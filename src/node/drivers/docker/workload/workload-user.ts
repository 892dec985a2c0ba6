/** The user that an image names for its processes, looked up in the files of the container. */
import { PlatformError } from "../../../../contract/errors.ts";
import type { SandboxUser } from "../../../../contract/sandbox-wire.ts";
import { readTar } from "../../../../unpack/tar-reader.ts";
import { imageUser } from "../../common/image-user.ts";
import { type DockerClient, DockerRefusal } from "../engine/docker-client.ts";
import type { ResolvedImage } from "../images/docker-images.ts";

/** Largest account file; a real one has a few kilobytes. */
const FILE_BYTES_MAX = 1024 * 1024;

/** Undefined for root. The container `id` has not started yet. */
export async function userOf(
  client: DockerClient,
  id: string,
  { userSpec, name }: ResolvedImage,
): Promise<SandboxUser | undefined> {
  if (userSpec === "") return undefined;
  const files = { passwd: await accountFile(client, id, "passwd"), group: await accountFile(client, id, "group") };
  try {
    return imageUser(userSpec, (file) => files[file]);
  } catch (error) {
    throw new PlatformError("bad_request", `The image ${name} is refused: ${(error as Error).message}.`);
  }
}

/** Empty where the image has no such file, a link in its place, or a file that is too large. */
async function accountFile(client: DockerClient, id: string, name: string): Promise<string> {
  const query = { path: `/etc/${name}` };
  try {
    return await client.read("GET", `/containers/${id}/archive`, { query }, textOfFirst);
  } catch (error) {
    if (error instanceof DockerRefusal && error.status === 404) return "";
    throw error;
  }
}

async function textOfFirst(archive: AsyncIterable<Buffer>): Promise<string> {
  for await (const entry of readTar(archive)) {
    if (entry.type !== "file" || entry.size > FILE_BYTES_MAX) return "";
    const chunks: Buffer[] = [];
    for await (const chunk of entry.body()) chunks.push(chunk);
    return Buffer.concat(chunks).toString("utf8");
  }
  return "";
}
