/** Whether this is `npm run test:long`, whose crash, chaos and fuzz suites run all of their rounds. */
export const LONG = process.env.BERTH_TEST_LONG === "1";
