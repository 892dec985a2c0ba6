/** Images that stand on the platform's own base image, which is no part of them. */

/** Label of the configuration and annotation of the manifest. */
export const BASE_LABEL = "berth.base";

/**
 * How servers of this platform name themselves to registries. A server's own registry gives an image without its base
 * to other servers, which have that base, and to nobody else.
 */
export const REGISTRY_AGENT = "berth";
