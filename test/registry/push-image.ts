/** Sends an image that a test made in memory to a registry, as `docker push` does. */
import { digestOf, type FakeRegistry } from "./fake-registry.ts";

export interface PushOptions {
  authorization: string;
  /** Where to, when not under the image's own name: `team/tool:1`. */
  to?: string;
}

/** `name`: of the image in `source`, `repository:tag`. */
export async function pushImage(
  url: string,
  source: FakeRegistry,
  name: string,
  { authorization, to = name }: PushOptions,
): Promise<void> {
  const [repository = "", tag = ""] = to.split(":");
  const base = `${url}/v2/${repository}`;
  const send = async (address: string, init: RequestInit): Promise<Response> => {
    const answer = await fetch(address, { ...init, headers: { authorization, ...init.headers } });
    if (!answer.ok) throw new Error(`${init.method} ${address}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  const manifest = source.blobs.get(source.tags.get(name) ?? "");
  if (!manifest) throw new Error(`there is no ${name}`);
  const { mediaType, config, layers } = JSON.parse(manifest.toString("utf8"));
  for (const { digest } of [config, ...layers]) {
    const bytes = source.blobs.get(digest) ?? Buffer.alloc(0);
    const begun = await send(`${base}/blobs/uploads/`, { method: "POST" });
    const place = new URL(begun.headers.get("location") ?? "", base);
    place.searchParams.set("digest", digestOf(bytes));
    const headers = { "content-type": "application/octet-stream" };
    await send(place.href, { method: "PUT", body: new Uint8Array(bytes), headers });
  }
  const body = new Uint8Array(manifest);
  await send(`${base}/manifests/${tag}`, { method: "PUT", body, headers: { "content-type": mediaType } });
}
