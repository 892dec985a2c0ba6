/** A stream that fails once it is longer than a browser should hold: workloads decide how much they send. */
export function bounded(body: ReadableStream<Uint8Array>, bytesMax: number): ReadableStream<Uint8Array> {
  let bytes = 0;
  const count = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.byteLength;
      if (bytes > bytesMax) controller.error(new Error(`The answer is longer than ${bytesMax / 1024 / 1024} MB.`));
      else controller.enqueue(chunk);
    },
  });
  return body.pipeThrough(count);
}

export const textOf = (response: Response, bytesMax: number): Promise<string> =>
  response.body === null ? Promise.resolve("") : new Response(bounded(response.body, bytesMax)).text();
