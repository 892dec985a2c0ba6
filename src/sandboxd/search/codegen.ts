/**
 * Merging code edits and ranking files with a model. Providers differ in address, model name and abilities, but all
 * take the same chat request, so the differences are a table. The key and all settings come from the sandbox's own
 * environment.
 */
import { ApiError } from "../http/api-error.ts";
import type { Environment } from "../process/environment.ts";

interface Provider {
  name: string;
  keyVariable: string;
  /** Chat completions below this address; the variable wins over the default. */
  urlVariable: string;
  url: string | undefined;
  model: string;
  modelVariable?: string;
  /** System prompt for a general model; specialised models need none. */
  system?: string;
  rank?: {
    urlVariable: string;
    url: string;
    request(query: string, files: SourceFile[], tokenLimit: number): unknown;
    scores(answer: unknown, files: SourceFile[]): Map<string, number>;
  };
}

export interface SourceFile {
  path: string;
  content: string;
}

export interface Edit {
  code: string;
  update: string;
  instruction: string;
  model: string | undefined;
}

const MERGE_SYSTEM =
  "You merge an edit into a file. The user gives the file in <code> and the edit in <update>; comments such as " +
  "'... existing code ...' stand for unchanged parts. Answer with the whole new file and nothing else.";

const PROVIDERS: Provider[] = [
  {
    name: "relace",
    keyVariable: "RELACE_API_KEY",
    urlVariable: "RELACE_API_URL",
    url: "https://instantapply.endpoint.relace.run/v1/apply",
    model: "auto",
    rank: {
      urlVariable: "RELACE_RANKER_URL",
      url: "https://ranker.endpoint.relace.run/v2/code/rank",
      // Versions of this API use either name for the content member.
      request: (query, files, tokenLimit) => ({
        query,
        codebase: files.map(({ path, content }) => ({ filename: path, code: content, content })),
        token_limit: tokenLimit,
      }),
      scores: (answer) => {
        const list = Array.isArray(answer) ? answer : ((answer as { results?: unknown } | null)?.results ?? []);
        return new Map((list as { filename: string; score: number }[]).map(({ filename, score }) => [filename, score]));
      },
    },
  },
  {
    name: "morph",
    keyVariable: "MORPH_API_KEY",
    urlVariable: "MORPH_API_URL",
    url: "https://api.morphllm.com/v1",
    model: "morph-v3-large",
    rank: {
      urlVariable: "MORPH_RANKER_URL",
      url: "https://api.morphllm.com/v1/rerank",
      request: (query, files) => ({
        model: "morph-rerank-v3",
        query,
        documents: files.map(({ path, content }) => `${path}\n${content}`),
      }),
      scores: (answer, files) => {
        const { results = [] } = answer as { results?: { index: number; relevance_score: number }[] };
        return new Map(results.map(({ index, relevance_score }) => [files[index]?.path ?? "", relevance_score]));
      },
    },
  },
  {
    name: "openai-compatible",
    keyVariable: "CODEGEN_API_KEY",
    urlVariable: "CODEGEN_API_URL",
    url: undefined,
    model: "default",
    modelVariable: "CODEGEN_MODEL",
    system: MERGE_SYSTEM,
  },
];

const TIMEOUT_MS = 60_000;
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
const ERROR_CHARS_MAX = 500;

/** Undefined when no provider is configured. */
export function providerOf(environment: Environment): Provider | undefined {
  const variables = environment.variables();
  return PROVIDERS.find(
    ({ keyVariable, urlVariable, url }) => variables[keyVariable] && (url ?? variables[urlVariable]),
  );
}

export function requireProvider(environment: Environment): Provider {
  const provider = providerOf(environment);
  if (provider) return provider;
  const keys = "RELACE_API_KEY, MORPH_API_KEY, or CODEGEN_API_KEY with CODEGEN_API_URL";
  throw new ApiError(400, `No code model is configured: set ${keys} in the sandbox's environment.`);
}

/** The file with the edit merged into it. */
export async function applyEdit(environment: Environment, edit: Edit, signal: AbortSignal): Promise<[string, string]> {
  const provider = requireProvider(environment);
  const variables = environment.variables();
  const base = (variables[provider.urlVariable] ?? provider.url ?? "").replace(/\/+$/, "");
  const instruction = edit.instruction ? `<instruction>${edit.instruction}</instruction>\n` : "";
  const content = `${instruction}<code>${edit.code}</code>\n<update>${edit.update}</update>`;
  const answer = (await post(`${base}/chat/completions`, variables[provider.keyVariable] ?? "", signal, {
    model: edit.model || variables[provider.modelVariable ?? ""] || provider.model,
    messages: [...(provider.system ? [{ role: "system", content: provider.system }] : []), { role: "user", content }],
  })) as { choices?: { message?: { content?: unknown } }[] } | null;
  const merged = answer?.choices?.[0]?.message?.content;
  if (typeof merged !== "string") throw new ApiError(503, `${provider.name} answered without content.`);
  return [provider.system ? withoutFence(merged, edit.code) : merged, provider.name];
}

/** Scores between 0 and 1 by path. */
export async function rankFiles(
  environment: Environment,
  { query, files, tokenLimit }: { query: string; files: SourceFile[]; tokenLimit: number },
  signal: AbortSignal,
): Promise<Map<string, number>> {
  const provider = requireProvider(environment);
  if (!provider.rank) throw new ApiError(503, `The configured provider (${provider.name}) cannot rank files.`);
  const variables = environment.variables();
  const url = variables[provider.rank.urlVariable] ?? provider.rank.url;
  const body = provider.rank.request(query, files, tokenLimit);
  return provider.rank.scores(await post(url, variables[provider.keyVariable] ?? "", signal, body), files);
}

/** Any failure of the provider is 503: the request was valid and may succeed later. */
async function post(url: string, key: string, signal: AbortSignal, body: unknown): Promise<unknown> {
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` },
      body: JSON.stringify(body),
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    const text = await boundedText(response);
    if (!response.ok) throw new Error(`status ${response.status}: ${text.slice(0, ERROR_CHARS_MAX)}`);
    return JSON.parse(text);
  } catch (error) {
    throw new ApiError(503, `The code model could not be asked: ${error instanceof Error ? error.message : error}`);
  }
}

async function boundedText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > ANSWER_BYTES_MAX) throw new Error("the answer is too long");
  }
  return text;
}

/** Removes the code fence that general models add around their answer, unless the original file begins with one. */
function withoutFence(answer: string, original: string): string {
  const match = /^\s*\x60{3}[^\n]*\n([\s\S]*?)\n?\x60{3}\s*$/.exec(answer);
  if (!match || original.startsWith("\x60\x60\x60")) return answer;
  return original.endsWith("\n") ? `${match[1]}\n` : (match[1] ?? "");
}
