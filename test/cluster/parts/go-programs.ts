/**
 * Kubernetes, Helm and the program of empty pods, built with Go from the module proxy and kept in the cache. The first
 * build takes ten minutes or more, and needs 8 GB of disk for modules and objects.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BIN, CACHE } from "./folder.ts";

/** A release that builds with Go 1.26. Its staging modules have the same version with 0 in front. */
export const KUBERNETES = "v1.36.3";
export const HELM = "v3.21.3";
const STAGING = KUBERNETES.replace(/^v1/, "v0");

const KUBERNETES_PROGRAMS = [
  ...["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"],
];

const HELM_SHARES = [
  ...["api", "apiextensions-apiserver", "apimachinery", "apiserver", "cli-runtime", "client-go", "component-base"],
  ...["component-helpers", "kubectl"],
];

/** Does nothing for as long as its pod lives, and collects processes that lost their parent. */
const PAUSE = `package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for each := range signals {
		if each != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
`;

export const findGo = (): boolean => spawnSync("go", ["version"], { stdio: "ignore" }).status === 0;

export function provideGoPrograms(): void {
  const missing = KUBERNETES_PROGRAMS.filter((name) => !existsSync(join(BIN, name)));
  if (missing.length > 0) buildKubernetes(missing);
  provideHelm();
  if (!existsSync(join(BIN, "pause"))) buildPause();
}

export function provideHelm(): void {
  if (existsSync(join(BIN, "helm"))) return;
  console.error(`Building Helm ${HELM} with Go…`);
  const dir = moduleOf("helm", "module build\ngo 1.26.0\n");
  // The modules that Kubernetes is built from: most of them are compiled already then.
  go(dir, "get", `helm.sh/helm/v3/cmd/helm@${HELM}`, ...HELM_SHARES.map((name) => `k8s.io/${name}@${STAGING}`));
  go(dir, "build", "-trimpath", "-ldflags", "-s -w", "-o", join(BIN, "helm"), "helm.sh/helm/v3/cmd/helm");
}

function buildKubernetes(names: readonly string[]): void {
  console.error(`Building ${names.join(", ")} ${KUBERNETES} with Go; the first time takes ten minutes or more…`);
  const dir = moduleOf("kubernetes", `module build\ngo 1.26.0\nrequire k8s.io/kubernetes ${KUBERNETES}\n`);
  const { GoMod } = JSON.parse(go(dir, "mod", "download", "-json", `k8s.io/kubernetes@${KUBERNETES}`));
  const staged = [...readFileSync(GoMod, "utf8").matchAll(/^\t(k8s\.io\/\S+) v0\.0\.0$/gm)].map(([, name]) => name);
  for (const name of staged) go(dir, "mod", "edit", "-replace", `${name}=${name}@${STAGING}`);
  const imports = KUBERNETES_PROGRAMS.map((name) => `import _ "k8s.io/kubernetes/cmd/${name}"`);
  writeFileSync(join(dir, "tools.go"), ["//go:build tools", "", "package build", "", ...imports, ""].join("\n"));
  go(dir, "mod", "tidy", "-e");
  const version = [
    ["k8s.io/component-base/version.gitVersion", KUBERNETES],
    ["k8s.io/component-base/version.gitMajor", KUBERNETES.split(".")[0]?.slice(1)],
    ["k8s.io/component-base/version.gitMinor", KUBERNETES.split(".")[1]],
    ["k8s.io/client-go/pkg/version.gitVersion", KUBERNETES],
  ].map(([name, value]) => `-X ${name}=${value}`);
  for (const name of names)
    go(
      ...([dir, "build", "-trimpath", "-ldflags", `-s -w ${version.join(" ")}`] as const),
      ...(["-o", join(BIN, name), `k8s.io/kubernetes/cmd/${name}`] as const),
    );
}

function buildPause(): void {
  const dir = moduleOf("pause", "module pause\ngo 1.24.0\n");
  writeFileSync(join(dir, "main.go"), PAUSE);
  go(dir, "build", "-trimpath", "-ldflags", "-s -w", "-o", join(BIN, "pause"), ".");
}

function moduleOf(name: string, goMod: string): string {
  const dir = join(CACHE, "build", name);
  mkdirSync(dir, { recursive: true });
  mkdirSync(BIN, { recursive: true });
  writeFileSync(join(dir, "go.mod"), goMod);
  return dir;
}

const go = (cwd: string, ...args: string[]): string =>
  execFileSync("go", args, {
    ...{ cwd, encoding: "utf8", maxBuffer: 64 << 20, stdio: ["ignore", "pipe", "inherit"] },
    env: { ...process.env, CGO_ENABLED: "0", GOFLAGS: "-mod=mod" },
  });
