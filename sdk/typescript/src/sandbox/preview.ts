/** A preview: an address of its own for one port of a sandbox. */
import type { Berth } from "../berth.ts";
import type { CallOptions } from "../core/call.ts";
import { BerthError } from "../core/errors.ts";

export interface PreviewOptions extends CallOptions {
  /** Everybody may open it. Default false: the address carries a token. */
  public?: boolean | undefined;
  /** Default `port-` and the number. */
  name?: string | undefined;
  /** How long it lasts, such as `24h`. Default: as long as the sandbox. */
  ttl?: string | undefined;
}

export class Preview {
  readonly name: string;
  readonly port: number;
  /** Opens the port; of a private preview, with the token in the query. */
  readonly url: string;
  /** For the header `X-Service-Preview-Token`; null for a public preview. */
  readonly token: string | null;
  readonly #delete: (options: CallOptions) => Promise<void>;

  constructor(
    fields: { name: string; port: number; address: string; token: string | null },
    remove: (options: CallOptions) => Promise<void>,
  ) {
    this.name = fields.name;
    this.port = fields.port;
    this.token = fields.token;
    this.url = fields.token === null ? fields.address : `${fields.address}?bl_preview_token=${fields.token}`;
    this.#delete = remove;
  }

  /** Closes the address. */
  delete(options: CallOptions = {}): Promise<void> {
    return this.#delete(options);
  }
}

/** The preview of this name, made when there is none. */
export async function openPreview(
  { api }: Berth,
  sandboxName: string,
  port: number,
  { name: previewName = `port-${port}`, public: isPublic = false, ttl, ...options }: PreviewOptions,
): Promise<Preview> {
  const spec = { port, public: isPublic, ...(ttl === undefined ? {} : { ttl }) };
  const params = { sandboxName, previewName };
  const record = await api
    .previewCreate({ ...options, params: { sandboxName }, body: { metadata: { name: previewName }, spec } })
    .catch((error: unknown) => {
      if (!(error instanceof BerthError && error.status === 409)) throw error;
      return api.previewUpdate({ ...options, params, body: { metadata: { name: previewName }, spec } });
    });
  const token = isPublic ? null : (await api.previewtokenCreate({ ...options, params, body: {} })).spec?.token;
  const fields = { name: previewName, port, address: record.spec.url ?? "", token: token ?? null };
  return new Preview(fields, async (given) => {
    await api.previewDelete({ ...given, params });
  });
}
