/** A Python environment of a test, with packages from the registry of this machine. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Makes `venv` in the folder. Answers the path of its python, or why the environment cannot be made. */
export async function environmentWith(
  folder: string,
  requirements: string,
): Promise<{ python: string; missing: string | null }> {
  const venv = join(folder, "venv");
  const python = join(venv, "bin/python");
  // The pip of the machine fills the environment, which is quicker than giving it a pip of its own.
  const pip = ["-m", "pip", "--python", python, "-q", "--disable-pip-version-check"];
  try {
    await run("python3", ["-m", "venv", "--without-pip", venv]);
    await run("python3", [...pip, "install", "--no-compile", "-r", requirements]);
    return { python, missing: null };
  } catch (error) {
    const { stderr } = error as { stderr?: string };
    return {
      python,
      missing: `pip finds no registry with ${requirements}: ${(stderr ?? String(error)).slice(0, 200)}`,
    };
  }
}
