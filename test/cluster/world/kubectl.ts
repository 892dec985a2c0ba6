/** kubectl as an administrator. */
import { execFile } from "node:child_process";
import { dirname } from "node:path";
import { PATH } from "../parts/folder.ts";

export interface Kubectl {
  /** Runs kubectl; its output. */
  kubectl(...args: string[]): Promise<string>;
  /** The same with `-o json`. */
  look<T>(...args: string[]): Promise<T>;
  apply(...objects: object[]): Promise<void>;
  /** Sends one object to a path of the API. */
  post(path: string, object: object): Promise<void>;
}

const OUTPUT_MAX = 64 * 1024 ** 2;

export function kubectlWith(kubeconfig: string): Kubectl {
  const run = (args: readonly string[], input?: object): Promise<string> =>
    new Promise((resolve, reject) => {
      // kubectl keeps a cache below HOME.
      const options = { env: { PATH, HOME: dirname(kubeconfig), KUBECONFIG: kubeconfig }, maxBuffer: OUTPUT_MAX };
      const child = execFile("kubectl", args, options, (error, stdout) =>
        error ? reject(Object.assign(error, { stdout })) : resolve(stdout),
      );
      child.stdin?.end(input === undefined ? "" : JSON.stringify(input));
    });
  return {
    kubectl: (...args) => run(args),
    look: async <T>(...args: string[]) => JSON.parse(await run([...args, "-o", "json"])) as T,
    apply: async (...items) => {
      await run(["apply", "-f", "-"], { apiVersion: "v1", kind: "List", items });
    },
    post: async (path, object) => {
      await run(["create", "--raw", path, "-f", "-"], object);
    },
  };
}
