/** Programs that are compiled into the executable as text. */
declare module "*.py" {
  const text: string;
  export default text;
}
