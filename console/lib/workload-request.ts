/**
 * A request to a workload with a person's token. The workload may be hostile, and shares its origin with the API: neither
 * what it said before, such as an id, nor a redirect leads the token to another address.
 */
export interface WorkloadCall {
  method?: string;
  /** Below the workload's address, with its slash. */
  path: string;
  /** Sent as JSON, or as it is when it is a file. */
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
}

export function requestTo(address: string, given: WorkloadCall, bearer: string): Request {
  const { method = "GET", path, body, headers = {}, signal } = given;
  const isRaw = body instanceof Blob;
  return new Request(addressBelow(address, path), {
    method,
    credentials: "omit",
    redirect: "error",
    headers: {
      authorization: `Bearer ${bearer}`,
      ...(body === undefined ? {} : { "content-type": isRaw ? "application/octet-stream" : "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** Browsers shorten `..` before they send a request. */
function addressBelow(address: string, path: string): string {
  const { href } = new URL(address + path);
  if (!href.startsWith(`${new URL(address).href}/`))
    throw new Error("The workload named an address that is not its own.");
  return href;
}
