import { useBudgets } from "../../api/model-requests.ts";
import { spanText } from "../../lib/format.ts";
import { Progress } from "../../ui/progress.tsx";
import "./chat.css";

const NOUNS: Readonly<Record<string, string>> = {
  input: "input tokens",
  output: "output tokens",
  total: "tokens",
  requests: "requests",
};
const WHOSE = { policy: "", key: " for you", session: " for a session" };
/** From here on the bar warns. */
const NEARLY = 0.9;

/** What the token policies of a model leave in the windows that are open now; nothing without such a policy. */
export function Budgets({ workspace, model }: { workspace: string; model: string }) {
  const { data = [] } = useBudgets(workspace, model);
  if (data.length === 0) return null;
  return (
    <ul class="budgets" aria-label={`Budget left of ${model}`}>
      {data.flatMap(({ policy, per, endTime, limits }) =>
        limits.map(({ name, limit, used, left }) => (
          <li key={`${policy} ${name}`}>
            <span>
              <strong>{left.toLocaleString("en")}</strong> of {limit.toLocaleString("en")} {NOUNS[name] ?? name} left
              {WHOSE[per]}
            </span>
            <span class="quiet">
              {policy}, new in {spanText(Math.max(0, Date.parse(endTime) - Date.now()))}
            </span>
            <Progress
              label={`${NOUNS[name] ?? name} used of ${policy}`}
              part={used / limit}
              isBad={used / limit > NEARLY}
            />
          </li>
        )),
      )}
    </ul>
  );
}
