/**
 * The S3 door: a drive is a bucket, its files are objects. A request is read, its signature checked with the secret of
 * the session it names, the drive's permissions applied, and then one operation runs. The door knows no API keys and no
 * store: `S3Deps` tells sessions and drives.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import type { FailedTries } from "../lib/failed-tries.ts";
import { randomWord } from "../lib/ids.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { Access, Answer, BucketLister, DriveBucket, S3Call } from "./call.ts";
import { type DriveFolders, DriveObjects } from "./files/drive-objects.ts";
import type { UseMeter } from "./files/use-meter.ts";
import { createListTurns } from "./list-turns.ts";
import { operationOf } from "./operations/index.ts";
import { presentedIn } from "./signature/credentials.ts";
import { requireSignature } from "./signature/verify.ts";
import { exchangeToken, isTokenExchange, STS_NAMESPACE, type TemporaryCredentials } from "./web-identity.ts";
import { CORS_HEADERS, preflight } from "./wire/cors.ts";
import { payloadOf, UNSIGNED } from "./wire/payload.ts";
import { S3Error } from "./wire/s3-error.ts";
import { readRequest } from "./wire/s3-request.ts";
import { elements, S3_NAMESPACE, type XmlElement, xmlDocument } from "./wire/xml-writer.ts";

/** Valid credentials, looked at for one request. */
export interface S3Session {
  secretAccessKey: string;
  workspace: string;
  /** Who asked for the credentials. */
  holder: S3Holder;
  /** The drive that the request names; null where these credentials open no such drive. */
  opened: OpenedDrive | null;
  /** The drives that these credentials open, page by page. */
  buckets: BucketLister;
  /** The signature of a request was checked with the secret. */
  noteUse(): void;
}

export interface OpenedDrive {
  access: Access;
  bucket: DriveBucket;
  /** Identifies the drive on its node. */
  drive: string;
  /** The node that has the drive; null where every server has it. */
  node: string | null;
}

export interface S3Holder {
  subject: string;
  subjectType: string;
  /** The right that the credentials were made with, such as `key:ID`; null for a person's own. */
  right: string | null;
}

/** A change of a drive, or credentials that were given out, for the audit log. */
export interface S3Event {
  action: string;
  session: Pick<S3Session, "workspace" | "holder">;
  bucket: string;
  /** Absent for what is about more than one object. */
  key?: string;
  status: number;
  address: string;
  requestId: string;
}

export type S3Origin = Pick<S3Event, "address" | "requestId">;

export interface S3Deps {
  /**
   * Null for credentials that are unknown, have ended, or whose maker lost the right to them. Asked on every request.
   * `token`: null for long-lived credentials. `bucket`: empty for a request about no bucket.
   */
  sessionOf(accessKeyId: string, token: string | null, bucket: string): Promise<S3Session | null>;
  exchange(token: string, seconds: number | null, origin: S3Origin): Promise<TemporaryCredentials | null>;
  /** Where a client is. */
  addressOf(req: IncomingMessage): string;
  tries: FailedTries;
  audit(event: S3Event): Promise<void>;
  /**
   * Hands a request, whose body has not been read, to the server that has the drive. False where the drive is here, and
   * where no request can be handed on.
   */
  handOn(req: IncomingMessage, res: ServerResponse, node: string | null, isWaiting: boolean): boolean;
  /** Folders of a drive; throws where this server cannot reach them. */
  foldersOf(opened: Pick<OpenedDrive, "drive" | "node">): Promise<DriveFolders>;
  /** Counts what the drives of a workspace hold. */
  meterOf(workspace: string): Promise<UseMeter>;
  /** Why nothing can be written now; null when there is room. */
  shortage(): string | null;
  region(): string;
  /** Names of the endpoint, below which a host names a bucket. */
  hosts: readonly string[];
  clock: Clock;
  onError(error: unknown, requestId: string): void;
}

/** An unread body up to this size is read after a refusal, so that the client sees the answer; above, the connection ends. */
const DRAINED_BYTES_MAX = 16 * 1024 * 1024;
const READ_BYTES = 256 * 1024;

export function createS3Handler(deps: S3Deps) {
  const drives = new Map<string, Promise<DriveObjects>>();
  const turnOf = createListTurns();
  const requireRoom = (): void => {
    const shortage = deps.shortage();
    if (shortage !== null) throw new S3Error("InsufficientStorage", shortage);
  };

  const openObjects = async (opened: OpenedDrive, workspace: string): Promise<DriveObjects> => {
    const [folders, meter] = [await deps.foldersOf(opened), await deps.meterOf(workspace)];
    return DriveObjects.open(folders, { clock: deps.clock, requireRoom, meter });
  };
  const objectsOf = (opened: OpenedDrive, workspace: string): Promise<DriveObjects> => {
    const { drive } = opened;
    const known = drives.get(drive) ?? openObjects(opened, workspace);
    drives.set(drive, known);
    known.catch(() => drives.delete(drive));
    return known;
  };

  /** `isWaiting`: the client sends the body after a "100 Continue". */
  return async (req: IncomingMessage, res: ServerResponse, isWaiting = false): Promise<void> => {
    const requestId = randomWord(16).toUpperCase();
    const head = { "x-amz-request-id": requestId, ...CORS_HEADERS };
    const isExchange = isTokenExchange(req);
    const origin = { address: deps.addressOf(req), requestId };
    try {
      if (isExchange) {
        const xml = await exchangeToken(req, (token, seconds) =>
          tried(origin, token, () => deps.exchange(token, seconds, origin)),
        );
        return sendXml(res, 200, head, xml, STS_NAMESPACE);
      }
      if (req.method === "OPTIONS") return void res.writeHead(200, { ...head, ...preflight(req.headers) }).end();
      const answer = await answerOf(req, res, origin, isWaiting);
      if (answer !== null) await send(req, res, head, answer);
    } catch (error) {
      refuse(req, res, head, asRefusal(error, requestId), isExchange);
    }
  };

  /** Looks at credentials unless too many wrong ones came from there. `look` answers null for wrong ones. */
  async function tried<T>({ address }: S3Origin, credential: string, look: () => Promise<T | null>): Promise<T | null> {
    if (deps.tries.waitMs(address, credential) > 0)
      throw new S3Error("SlowDown", "Too many requests with credentials that are not valid. Reduce your request rate.");
    const found = await look();
    if (found === null) deps.tries.failed(address, credential);
    else deps.tries.passed(credential);
    return found;
  }

  /** A presigned address shows its session token, so wrong signatures do not end what is known of the token. */
  function counted<T>({ address }: S3Origin, check: () => T): T {
    try {
      return check();
    } catch (error) {
      deps.tries.failed(address, "");
      throw error;
    }
  }

  /** Null for a request that another server answers. */
  async function answerOf(
    req: IncomingMessage,
    res: ServerResponse,
    origin: S3Origin,
    isWaiting: boolean,
  ): Promise<Answer | null> {
    const request = readRequest(req, deps.hosts);
    const presented = presentedIn(request.header, request.query);
    if (!presented) throw new S3Error("AccessDenied", "The request is not signed.");
    const payloadHash = request.header("x-amz-content-sha256") ?? request.query("X-Amz-Content-Sha256") ?? UNSIGNED;
    const pairs = request.pairs.filter(([name]) => name !== "X-Amz-Signature");
    const credential = `${presented.accessKeyId} ${presented.token ?? ""}`;
    const session = await tried(origin, credential, () =>
      deps.sessionOf(presented.accessKeyId, presented.token, request.bucket),
    );
    if (!session)
      throw presented.token === null
        ? new S3Error("InvalidAccessKeyId", "The AWS access key ID you provided does not exist in our records.")
        : new S3Error(
            "ExpiredToken",
            "The session token is not valid, has ended, or its maker has lost the right to it.",
          );
    const seed = counted(origin, () =>
      requireSignature({ ...request, query: pairs, payloadHash }, presented, session.secretAccessKey, deps.clock.now()),
    );
    session.noteUse();
    const operation = operationOf(request);
    if (operation.on === "service") return operation.run(request, session.buckets);
    if (session.opened && deps.handOn(req, res, session.opened.node, isWaiting)) return null;
    const run = async (): Promise<Answer> => {
      const { opened } = session;
      if (opened === null)
        throw new S3Error("NoSuchBucket", `These credentials open no bucket '${request.bucket}'.`, {
          BucketName: request.bucket,
        });
      const { bucket, access } = opened;
      if (operation.isWrite && !access.canWrite)
        throw new S3Error("AccessDenied", "These credentials only read the drive.");
      if (operation.isWrite && req.method !== "DELETE") requireRoom();
      const call: S3Call = {
        ...{ request, bucket, access },
        objects: await objectsOf(opened, session.workspace),
        region: deps.region(),
        clock: deps.clock,
        turn: turnOf(session.workspace, res),
        payload() {
          if (isWaiting) res.writeContinue();
          // A body that is refused half-way leaves the connection open, for the answer.
          return payloadOf(request, payloadHash, seed, req.iterator({ destroyOnReturn: false }));
        },
      };
      return operation.run(call);
    };
    const { audit: action } = operation;
    if (action === undefined) return run();
    const record = (status: number): Promise<void> =>
      deps.audit({
        ...{ ...origin, action, session, status, bucket: request.bucket },
        ...(request.key !== "" && { key: request.key }),
      });
    const result = await run().catch(async (error: unknown) => {
      await record(error instanceof S3Error ? error.status : 500);
      throw error;
    });
    await record(result.status ?? 200);
    return result;
  }

  function asRefusal(error: unknown, requestId: string): S3Error {
    if (error instanceof S3Error) return error;
    if ((error as NodeJS.ErrnoException).code === "ENOSPC")
      return new S3Error("InsufficientStorage", "The disk of the server is full.");
    if ((error as NodeJS.ErrnoException).code === "ECONNRESET")
      return new S3Error("IncompleteBody", "The connection ended before the body did.");
    deps.onError(error, requestId);
    return new S3Error("InternalError", "We encountered an internal error. Please try again.");
  }
}

async function send(
  req: IncomingMessage,
  res: ServerResponse,
  head: Record<string, string>,
  { status = 200, headers = {}, xml, file }: Answer,
): Promise<void> {
  if (xml) return sendXml(res, status, { ...head, ...headers }, xml, S3_NAMESPACE);
  const isBare =
    file === undefined && req.method !== "HEAD" && status === 200 && headers["content-length"] === undefined;
  res.writeHead(status, { ...head, ...headers, ...(isBare && { "content-length": "0" }) });
  if (!file) return void res.end();
  if (file.bytes === 0) {
    await file.handle.close();
    return void res.end();
  }
  const end = file.start + file.bytes - 1;
  const source = file.handle.createReadStream({ start: file.start, end, highWaterMark: READ_BYTES });
  let left = file.bytes;
  source.on("data", (chunk) => {
    left -= chunk.length;
  });
  // A client that leaves is no error of the server; a file that a workload cut meanwhile ends the connection.
  await pipeline(source, res, { end: false }).catch(() => res.destroy());
  if (left > 0) res.destroy();
  else res.end();
}

function sendXml(
  res: ServerResponse,
  status: number,
  head: Record<string, string>,
  xml: XmlElement,
  namespace: string | undefined,
): void {
  const body = xmlDocument(xml, namespace);
  res
    .writeHead(status, {
      ...head,
      "content-type": "application/xml",
      "content-length": String(Buffer.byteLength(body)),
    })
    .end(body);
}

function refuse(
  req: IncomingMessage,
  res: ServerResponse,
  head: Record<string, string>,
  refusal: S3Error,
  isExchange: boolean,
): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  const length = req.headers["transfer-encoding"]
    ? Number.POSITIVE_INFINITY
    : Number(req.headers["content-length"] ?? 0);
  const isLeft = !req.complete && length > DRAINED_BYTES_MAX;
  // HTTP/2 has no such field: the stream ends, and the connection stays.
  const headers = { ...head, ...(isLeft && req.httpVersionMajor < 2 && { connection: "close" }) };
  req.resume();
  const { status, code, message, details } = refusal;
  const said = { Code: code, Message: message };
  const RequestId = head["x-amz-request-id"] ?? "";
  if (req.method === "HEAD") res.writeHead(status, headers).end();
  else if (isExchange) {
    const error: XmlElement = ["Error", elements({ Type: "Sender", ...said })];
    sendXml(res, status, headers, ["ErrorResponse", [error, ["RequestId", RequestId]]], STS_NAMESPACE);
  } else {
    const Resource = (req.url ?? "").split("?")[0] ?? "";
    sendXml(res, status, headers, ["Error", elements({ ...said, ...details, Resource, RequestId })], undefined);
  }
}
