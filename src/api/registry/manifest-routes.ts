/** Manifests, tags, and what refers to a manifest. */
import { registryError } from "../../contract/registry-error.ts";
import { tagsOf } from "../../kinds/image/images.ts";
import { DIGEST } from "../../kinds/image/registry/blobs.ts";
import { deleteManifest } from "../../kinds/image/registry/delete-manifest.ts";
import { putManifest, readableManifest } from "../../kinds/image/registry/manifests.ts";
import { ownPlace, readablePlace } from "../../kinds/image/registry/place.ts";
import { referrersOf } from "../../kinds/image/registry/referrers.ts";
import { bodyOf } from "./body.ts";
import type { DoorAnswer, DoorRoute, Visit } from "./visit.ts";

/** Largest manifest; the specification asks for 4 MB. */
const MANIFEST_BYTES_MAX = 4 * 1024 * 1024;
const TAGS_AT_ONCE = 1000;
const INDEX = "application/vnd.oci.image.index.v1+json";

export const manifestRoutes: readonly DoorRoute[] = [
  { method: "GET", path: /^manifests\/([^/]+)$/, action: "pull", handle: readManifest },
  { method: "PUT", path: /^manifests\/([^/]+)$/, action: "push", isAudited: true, handle: takeManifest },
  { method: "DELETE", path: /^manifests\/([^/]+)$/, action: "delete", isAudited: true, handle: removeManifest },
  { method: "GET", path: /^tags\/list\/?$/, action: "pull", handle: listTags },
  { method: "GET", path: /^referrers\/([^/]+)$/, action: "pull", handle: listReferrers },
];

async function readManifest({ name, rest, deps }: Visit): Promise<DoorAnswer> {
  const { digest, mediaType, content } = await readableManifest(await readablePlace(name, deps), rest, deps.here);
  const headers = {
    "content-type": mediaType,
    "content-length": content.length,
    "docker-content-digest": digest,
    etag: `"${digest}"`,
  };
  return { status: 200, headers, body: () => content };
}

async function takeManifest(visit: Visit): Promise<DoorAnswer> {
  const { request, name, repository, rest: reference, guest, deps } = visit;
  const bytes = await bodyOf(request.raw, MANIFEST_BYTES_MAX);
  const mediaType = (request.headers["content-type"] ?? "").split(";")[0]?.trim() ?? "";
  const actor = guest.caller.displayName;
  const put = { reference, mediaType, bytes, actor };
  const { digest, subject } = await putManifest(await ownPlace(name, deps), put, deps.here);
  const headers = {
    location: `/v2/${repository}/manifests/${digest}`,
    "docker-content-digest": digest,
    "content-length": 0,
    ...(subject === null ? {} : { "oci-subject": subject }),
  };
  return { status: 201, headers };
}

async function removeManifest({ name, rest: reference, guest, member, deps }: Visit): Promise<DoorAnswer> {
  const asker = { caller: guest.caller, role: member.role };
  await deleteManifest(await ownPlace(name, deps), reference, asker, deps.here);
  return { status: 202, headers: { "content-length": 0 } };
}

/** In the order of names, as the specification asks. */
async function listTags({ query, name, repository, deps }: Visit): Promise<DoorAnswer> {
  const { record } = await readablePlace(name, deps);
  if (!record) throw registryError("not_found", "NAME_UNKNOWN", "There is no such image.");
  const last = query.get("last");
  const asked = Number(query.get("n") ?? TAGS_AT_ONCE);
  const count = Number.isInteger(asked) && asked >= 0 ? Math.min(asked, TAGS_AT_ONCE) : TAGS_AT_ONCE;
  const all = tagsOf(record)
    .map((tag) => tag.name)
    .sort()
    .filter((tag) => last === null || tag > last);
  const tags = all.slice(0, count);
  const next = new URLSearchParams({ n: String(count), last: tags.at(-1) ?? "" });
  const isLast = tags.length === 0 || tags.length === all.length;
  const link = { link: `</v2/${repository}/tags/list?${next}>; rel="next"` };
  return { status: 200, headers: { ...JSON_TYPE, ...(isLast ? {} : link) }, body: json({ name: repository, tags }) };
}

const JSON_TYPE = { "content-type": "application/json" };

const json = (value: unknown) => (): Buffer => Buffer.from(JSON.stringify(value));

async function listReferrers({ query, name, repository, rest: digest, deps }: Visit): Promise<DoorAnswer> {
  if (!DIGEST.test(digest)) throw registryError("bad_request", "DIGEST_INVALID", "This is no digest.");
  const [artifactType, last] = [query.get("artifactType"), query.get("last")];
  const place = await readablePlace(name, deps);
  const { page: manifests, next } = await referrersOf(place, digest, { artifactType, last }, deps);
  const filtered = artifactType === null ? {} : { "oci-filters-applied": "artifactType" };
  const more = new URLSearchParams({ ...(artifactType === null ? {} : { artifactType }), last: next ?? "" });
  const link = { link: `</v2/${repository}/referrers/${digest}?${more}>; rel="next"` };
  const index = { schemaVersion: 2, mediaType: INDEX, manifests };
  const headers = { "content-type": INDEX, ...filtered, ...(next === null ? {} : link) };
  return { status: 200, headers, body: json(index) };
}
