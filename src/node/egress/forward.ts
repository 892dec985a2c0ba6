/** Passes HTTP requests of a workload on, each one judged for itself. */
import type { Dialler } from "./dialler.ts";
import { headBytes, headerOf, isFramed, passedOn, withoutHeaders } from "./headers.ts";
import { withIdentities } from "./identities.ts";
import { inject, readWhole } from "./inject.ts";
import { judgeRequest, routesFor } from "./judge-request.ts";
import type { Answer, Outgoing } from "./outgoing.ts";
import { flow, type Pace } from "./pace.ts";
import type { Passage } from "./passage.ts";
import { hidesSecrets, redactedIn, redactor, redactText, UNREADABLE, UNREADABLE_ANSWER } from "./redact.ts";
import { type EgressRefusal, isRefusal, MALFORMED_SECRET, RefusalError, refusal, refusalOf } from "./refusal.ts";
import { type Incoming, refuse, type Sink } from "./sink.ts";
import { authorityOf } from "./target.ts";

const BODY_NOT_TAKEN = refusal(504, "body_not_taken", "The host took too long to take the body of the request.");
const MALFORMED_ANSWER = refusal(502, "answer_malformed", "The host answered with a head that cannot be passed on.");

export async function forward(
  dialler: Dialler,
  passage: Passage,
  path: string,
  incoming: Incoming,
  sink: Sink,
): Promise<void> {
  const rules = await judgeRequest(dialler, passage, path, incoming);
  if (isRefusal(rules)) return refuse(sink, rules);
  const found = routesFor(passage, rules, path, incoming);
  const routes = isRefusal(found) ? found : await withIdentities(found, passage);
  if (isRefusal(routes)) return refuse(sink, routes);
  const secrets = redactedIn(routes);
  const paces = dialler.pacesOf(passage.uid, rules);
  const passed = passedOn(incoming.rawHeaders);
  const given = secrets.length > 0 ? withoutHeaders(passed, UNREADABLE) : passed;
  const hold = passage.bodies.open({ uid: passage.uid, workspace: rules.owner?.workspace ?? null });
  let outgoing: Outgoing | null = null;
  sink.body.once("close", () => {
    hold.release();
    outgoing?.cancel();
  });
  const giveUp = (refused: EgressRefusal): void => {
    hold.release();
    incoming.resume(); // unread bytes of one request hold up the other requests of an HTTP/2 connection
    if (!sink.isBegun()) refuse(sink, refused);
  };
  const injected = await inject(routes, given, (bytesMax) => readWhole(incoming, bytesMax, hold)).catch(refusalIn);
  if (isRefusal(injected)) return giveUp(injected);
  const { headers, body } = injected;
  const hasBody = body !== null || isFramed(headers);
  hold.onLate = () => {
    giveUp(BODY_NOT_TAKEN);
    outgoing?.cancel();
  };
  const head = { method: incoming.method ?? "GET", path, headers, hasBody };
  outgoing = await passage
    .send(
      {
        ...head,
        authority: authorityOf(passage.admitted.target, passage.secure),
        takesTrailers: /\btrailers\b/i.test(headerOf(incoming.rawHeaders, "te") ?? ""),
      },
      {
        trailers: () => passedOn(incoming.rawTrailers),
        onSent: hold.release,
        onAnswer(answer) {
          if (!answerWith(answer, sink, secrets, paces.receive)) outgoing?.cancel();
        },
        onEnd: () => hasBody && endEarly(incoming, sink),
        onError(error, resetCode) {
          if (sink.body.writableEnded) return; // the proxy itself has answered
          if (resetCode !== undefined || sink.isBegun()) sink.reset(resetCode);
          else giveUp(refusalOf(error));
        },
      },
    )
    .catch((error: Error) => {
      giveUp(refusalOf(error));
      return null;
    });
  if (!outgoing) return;
  // The client may have left, or its time may be over, while the connection was made.
  if (sink.body.destroyed || sink.body.writableEnded) return outgoing.cancel();
  paces.send.take(headBytes(headers) + (body?.length ?? 0));
  if (body) outgoing.body.end(body);
  else if (hasBody) flow(incoming, outgoing.body, paces.send);
  else outgoing.body.end();
}

/** Passes an answer on. False when it cannot be passed on, and the client knows. */
function answerWith(answer: Answer, sink: Sink, secrets: readonly string[], pace: Pace): boolean {
  const { status, message, body, isWhole } = answer;
  const given = passedOn(answer.rawHeaders);
  pace.take(headBytes(given));
  if (secrets.length > 0 && hidesSecrets(given)) {
    refuse(sink, UNREADABLE_ANSWER);
    return false;
  }
  const isShown = secrets.length === 0;
  const rawHeaders = isShown ? given : redactHeaders(withoutHeaders(given, /^content-length$/i), secrets);
  try {
    const head = { status, message: redactText(message, secrets), rawHeaders };
    if (isWhole) sink.answerWhole(head);
    else sink.begin(head);
  } catch {
    refuse(sink, MALFORMED_ANSWER);
    return false;
  }
  if (isWhole) {
    body.resume();
    return true;
  }
  body.once("end", () => sink.trail(redactHeaders(passedOn(answer.trailers()), secrets)));
  if (isShown) {
    flow(body, sink.body, pace);
    return true;
  }
  const redacting = redactor(secrets, {
    keepsLength: /^application\/grpc/i.test(headerOf(given, "content-type") ?? ""),
  });
  redacting.pipe(sink.body);
  flow(body, redacting, pace);
  return true;
}

const redactHeaders = (raw: readonly string[], secrets: readonly string[]): string[] =>
  raw.map((text) => redactText(text, secrets));

/** The server has answered and takes no more of the request. */
function endEarly(incoming: Incoming, sink: Sink): void {
  if (incoming.readableEnded) return;
  incoming.resume();
  sink.endRequest();
}

const refusalIn = (error: unknown): EgressRefusal => (error instanceof RefusalError ? error.refusal : MALFORMED_SECRET);
