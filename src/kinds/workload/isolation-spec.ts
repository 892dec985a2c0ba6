/** The isolation grade that a record may ask for. */
import { z } from "zod";
import { GRADES } from "../../lib/grades.ts";

export const isolation = z.enum(GRADES).exclude(["none"]);
