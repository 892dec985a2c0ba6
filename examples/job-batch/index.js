// One task of a batch job. The platform starts one process per task; the task's arguments are fetched from the
// execution, or come from the command line when the job is tried out by hand: node index.js --text "hello world"
import { createHash } from "node:crypto";

const { BL_EXECUTION_DATA_URL, BL_TASK_KEY = "TASK_INDEX" } = process.env;

const task = BL_EXECUTION_DATA_URL ? await fetchTask(BL_EXECUTION_DATA_URL) : fromCommandLine(process.argv.slice(2));
if (typeof task.text !== "string") {
  console.error('A task needs a "text".');
  process.exit(1); // counts as a failure and is retried as often as the job allows
}
const words = task.text.split(/\s+/).filter(Boolean).length;
console.log(JSON.stringify({ words, sha256: createHash("sha256").update(task.text).digest("hex") }));

async function fetchTask(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`The execution's data cannot be read: ${response.status}`);
  const { tasks } = await response.json();
  return tasks[Number(process.env[BL_TASK_KEY] ?? 0)] ?? {};
}

function fromCommandLine(args) {
  const task = {};
  for (let at = 0; at < args.length; at += 1) {
    if (!args[at].startsWith("--")) continue;
    const follows = args[at + 1] !== undefined && !args[at + 1].startsWith("--");
    task[args[at].slice(2)] = follows ? args[++at] : "true";
  }
  return task;
}
