/** A build that ended without an image, for a reason that its owner can act on. */
import { PlatformError } from "../../contract/errors.ts";

export class BuildFailed extends PlatformError {
  constructor(message: string) {
    super("bad_request", message);
  }
}
