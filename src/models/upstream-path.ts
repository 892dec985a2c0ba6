/**
 * Where a sub-path leads at a provider. Callers write the same call in several ways (with the version, without it,
 * with the whole prefix of their own client library); all meet below the provider's prefix. Everything behind the
 * prefix passes byte for byte.
 */
import type { ProviderDeclaration } from "./providers/provider.ts";

export interface PathInput {
  provider: ProviderDeclaration;
  /** Path of the base address, without a trailing slash. */
  basePath: string;
  /** From the caller, without the query. */
  path: string;
  /** From the caller, with its question mark, or empty. */
  query: string;
  model: string;
  config: Readonly<Record<string, string>>;
}

export function upstreamPath(input: PathInput): string {
  const { provider, model } = input;
  const versioned = versionedPath(input);
  const path = withModel(provider.pathAliases?.[input.path] ?? input.path, model, provider);
  const query = withoutParameters(input.query, provider.droppedQuery);
  if (versioned) return versioned(path, query);
  const { root, prefixed } = baseOf(input.basePath, provider.prefix);
  if (path.startsWith(`${provider.prefix}/`)) return prefixed + path.slice(provider.prefix.length) + query;
  if (isRootPath(provider, path)) return root + path + query;
  if (path.startsWith("/v1/")) return prefixed + path.slice("/v1".length) + query;
  return prefixed + path + query;
}

/** True for paths that climb: no provider has any, and the key must not travel outside the base address. */
export const hasDotSegment = (path: string): boolean =>
  // Almost no path has a dot at all.
  (path.includes(".") || path.includes("%")) && CLIMBS.test(path.replaceAll("\\", "/"));

const CLIMBS = /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i;

const VERSION = /\/v\d+(?:alpha|beta)?\d*$/;

/** The base address with the prefix of its API. */
export const prefixedBase = (basePath: string, prefix: string): string => baseOf(basePath, prefix).prefixed;

/** A base address may be given with or without the prefix of its API. */
function baseOf(basePath: string, prefix: string): { root: string; prefixed: string } {
  if (basePath.endsWith(prefix)) return { root: basePath.slice(0, -prefix.length), prefixed: basePath };
  if (VERSION.test(basePath)) return { root: basePath.replace(VERSION, ""), prefixed: basePath };
  return { root: basePath, prefixed: basePath + prefix };
}

const isRootPath = (provider: ProviderDeclaration, path: string): boolean =>
  provider.rootPaths?.some((root) => (root.endsWith("/") ? path.startsWith(root) : path === root)) ?? false;

/** The name of the model in the path is the record's, whatever the caller wrote there. */
function withModel(path: string, model: string, { versionedPaths }: ProviderDeclaration): string {
  const name = encodeModel(model);
  const named = path
    .replaceAll("{model}", name)
    .replace(/(\/models\/)[^/:]+?(?=:|%3a)/i, (_, before: string) => before + name);
  const [before = "", after] = versionedPaths?.prefix.split("{model}") ?? [];
  if (after === undefined || !named.startsWith(before)) return named;
  return before + name + named.slice(before.length).replace(/^[^/]+/, "");
}

const encodeModel = (model: string): string => encodeURIComponent(model).replaceAll("%2F", "/");

/** Addressing by deployment and dated version, where the connection asks for it. */
function versionedPath({ provider, basePath, model, config }: PathInput) {
  const style = provider.versionedPaths;
  const version = style && config[style.configKey];
  if (!version) return null;
  const prefix = style.prefix.replace("{model}", encodeModel(model));
  const named = `${style.query}=`;
  return (path: string, query: string): string => {
    const written = [prefix, provider.prefix, "/v1"].find((start) => path.startsWith(`${start}/`));
    const isTold = query
      .slice(1)
      .split("&")
      .some((pair) => pair.startsWith(named));
    const told = isTold ? query : `${query === "" ? "?" : `${query}&`}${named}${encodeURIComponent(version)}`;
    if (written === undefined && isRootPath(provider, path)) return basePath + path + told;
    return basePath + prefix + path.slice(written?.length ?? 0) + told;
  };
}

function withoutParameters(query: string, dropped: readonly string[] | undefined): string {
  if (!dropped || query === "") return query;
  const kept = query
    .slice(1)
    .split("&")
    .filter((pair) => !dropped.includes(pair.split("=")[0] ?? ""));
  return kept.length === 0 ? "" : `?${kept.join("&")}`;
}
