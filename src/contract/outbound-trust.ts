/** Where a workload with routes finds the authority of its workspace; the platform mounts the folder. */
export const TRUST_DIR = "/etc/outbound-trust";
export const TRUST_FILES = { authority: "authority.pem", bundle: "bundle.pem", java: "java.jks" } as const;
