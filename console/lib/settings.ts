/** What the page was told by the server that sent it. */
export interface Settings {
  /** The path that every path of the console begins with. */
  base: string;
  /** Address of the platform, at which workloads are called. */
  publicUrl: string;
  brand: string;
  version: string;
}

const meta = document.querySelector<HTMLMetaElement>('meta[name="console"]');

export const settings = JSON.parse(meta?.content ?? "{}") as Settings;

/** Marks styles that a library writes while it runs; the policy of the page allows no others. */
export const styleNonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
