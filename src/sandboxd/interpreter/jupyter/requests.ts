/** The requests that a kernel answers, by their type. */
import { failure, type Kernel, type KernelClient } from "./kernel.ts";
import type { Kernels } from "./kernels.ts";
import { type KernelRequest, messageOf } from "./message.ts";
import { kernelInfo } from "./specs.ts";

type Content = Record<string, unknown>;

interface Asked {
  kernels: Kernels;
  kernel: Kernel;
  client: KernelClient;
  request: KernelRequest;
}

type Answerer = (asked: Asked) => Promise<Content> | Content;

/** Kernels without completion, inspection or a history answer these requests with nothing found. */
const ANSWERERS: Readonly<Record<string, Answerer>> = {
  execute_request: ({ kernel, client, request }) => kernel.execute(request, client),
  kernel_info_request: ({ kernel }) => kernelInfo(kernel.context.language),
  is_complete_request: () => ({ status: "unknown" }),
  complete_request: ({ request }) => ({
    ...{ status: "ok", matches: [], metadata: {} },
    ...{ cursor_start: cursorOf(request), cursor_end: cursorOf(request) },
  }),
  inspect_request: () => ({ status: "ok", found: false, data: {}, metadata: {} }),
  history_request: () => ({ status: "ok", history: [] }),
  comm_info_request: () => ({ status: "ok", comms: {} }),
  interrupt_request({ kernel }) {
    kernel.interrupt();
    return { status: "ok" };
  },
  shutdown_request({ kernel, request }) {
    const isRestart = request.content.restart === true;
    if (isRestart) kernel.restart();
    return { status: "ok", restart: isRestart };
  },
};

export async function answer(asked: Asked): Promise<void> {
  const { kernels, kernel, client, request } = asked;
  const { type, channel, header, content } = request;
  // A comm is a conversation with an object in the kernel; there are no such objects.
  if (type === "comm_open") return kernel.publish(request, "comm_close", { comm_id: content.comm_id, data: {} });
  if (!type.endsWith("_request")) return;
  const answerer = Object.hasOwn(ANSWERERS, type) ? ANSWERERS[type] : undefined;
  await kernel.during(request, async () => {
    const made = answerer ? await answerer(asked) : failure("NotImplementedError", `The kernel has no ${type}.`);
    client.send(messageOf(channel, type.replace(/_request$/, "_reply"), header, made));
  });
  if (type === "shutdown_request" && content.restart !== true) kernels.remove(kernel.context.id);
}

const cursorOf = ({ content }: KernelRequest): number =>
  typeof content.cursor_pos === "number" ? content.cursor_pos : 0;
