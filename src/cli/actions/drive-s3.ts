/** `berth drive s3`: temporary credentials of a drive, as the variables that S3 clients read. */
import { driveS3Credentials } from "../../kinds/drive/operations.ts";
import { UsageError } from "../../lib/usage-error.ts";
import { type Invocation, text } from "../command.ts";
import { connect } from "./call-input.ts";

export async function printS3Environment(call: Invocation): Promise<undefined> {
  const { args, options, context } = call;
  const seconds = text(options.seconds);
  if (seconds !== undefined && !/^\d+$/.test(seconds)) throw new UsageError(`--seconds ${seconds} is not a number.`);
  const made = await connect(call).call(driveS3Credentials, {
    params: { driveName: text(args[0]) ?? "" },
    body: seconds === undefined ? {} : { durationSeconds: Number(seconds) },
  });
  const variables = {
    AWS_ACCESS_KEY_ID: made.accessKeyId,
    AWS_SECRET_ACCESS_KEY: made.secretAccessKey,
    AWS_SESSION_TOKEN: made.sessionToken,
    AWS_REGION: made.region,
    AWS_DEFAULT_REGION: made.region, // boto3 and version 1 of the AWS command line read only this one
    AWS_ENDPOINT_URL_S3: made.endpoint,
  };
  context.print(
    Object.entries(variables)
      .map(([name, value]) => `export ${name}='${value}'`)
      .join("\n"),
  );
  context.note(`The credentials end at ${made.expiration}.`);
  return undefined;
}
