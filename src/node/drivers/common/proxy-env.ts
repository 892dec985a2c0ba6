/** The variables that point programs of a workload to the egress proxy, on a machine without NAT. */
import { EGRESS_DOOR_PORT } from "../../workload.ts";

const HOST = "127.0.0.1";
const PROXY = `http://${HOST}:${EGRESS_DOOR_PORT}`;
const NO_PROXY = "localhost,127.0.0.1,::1";

const JAVA_PROXY = ["http", "https"].flatMap((scheme) => [
  `-D${scheme}.proxyHost=${HOST}`,
  `-D${scheme}.proxyPort=${EGRESS_DOOR_PORT}`,
]);

export const PROXY_ENV: Readonly<Record<string, string>> = {
  // Read by curl, git, pip, npm, Go and Python, some in upper and some in lower case.
  HTTP_PROXY: PROXY,
  HTTPS_PROXY: PROXY,
  NO_PROXY,
  http_proxy: PROXY,
  https_proxy: PROXY,
  no_proxy: NO_PROXY,
  // Node's fetch and http read the variables above only when this one is set.
  NODE_USE_ENV_PROXY: "1",
  // Java reads no proxy variable, only properties.
  JAVA_TOOL_OPTIONS: [...JAVA_PROXY, "-Dhttp.nonProxyHosts=localhost|127.0.0.1|[::1]"].join(" "),
};
