/** Set by the build to a digest of the sources: executables with the same version are the same program. */
declare const SANDBOXD_VERSION: string | undefined;
declare const SANDBOXD_BUILD_TIME: string | undefined;

export const VERSION = typeof SANDBOXD_VERSION === "string" ? SANDBOXD_VERSION : "development";
export const BUILD_TIME = typeof SANDBOXD_BUILD_TIME === "string" ? SANDBOXD_BUILD_TIME : "unknown";
