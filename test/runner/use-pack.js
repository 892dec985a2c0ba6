// Test files load the sources as a server does; see bin/module-pack.js.
import { usePack } from "../../bin/module-pack.js";

usePack();
