/** Kinds and members as headings. */
const PROPER: Readonly<Record<string, string>> = {
  function: "MCP server",
  functions: "MCP servers",
  customdomain: "Domain",
  customdomains: "Domains",
  egressgateway: "Egress gateway",
  egressgateways: "Egress gateways",
  egressip: "Egress address",
  egressips: "Egress addresses",
  integrationconnection: "Connection",
  integrationconnections: "Connections",
  previewtoken: "Preview token",
  previewtokens: "Preview tokens",
  scheduleexecution: "Schedule run",
  scheduleexecutions: "Schedule runs",
  volumetemplate: "Volume template",
  volumetemplates: "Volume templates",
  vpc: "Network",
  vpcs: "Networks",
};

export const titleOf = (word: string): string => PROPER[word] ?? word.charAt(0).toUpperCase() + word.slice(1);

/** `idleTimeout` → `Idle timeout`. */
export const labelOf = (member: string): string => {
  const words = member
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ")
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
};
