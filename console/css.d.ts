/** Sheets are bundled; importing one adds it to the page. */
declare module "*.css";
