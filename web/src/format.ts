// Numbers, moments and other values as short text.

/** A short decimal, as on the report page: 4 digits, no zeros at the end, 1e-5 and not 0.00001. */
export function number(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return String(value);
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size < -4 || size >= Math.max(digits, 7)) return value.toExponential(digits - 1).replace(/\.?0*e\+?/, "e");
  return String(Number(value.toPrecision(digits)));
}

/** Any value of a parameter. */
export function show(value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number") return number(value, 5);
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** A moment as the service gives it, in the reader's words; seconds since 1970 or ISO text. */
export function moment(value: string | number | null | undefined): Date | null {
  if (value === null || value === undefined || value === "") return null;
  const made = new Date(typeof value === "number" ? value * 1000 : value);
  return Number.isNaN(made.getTime()) ? null : made;
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

export function ago(date: Date | null, now = Date.now()): string {
  if (!date) return "–";
  const seconds = (date.getTime() - now) / 1000;
  if (seconds < -30 * 86_400) return date.toLocaleDateString("en", { dateStyle: "medium" });
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  for (const [unit, length] of UNITS) {
    if (Math.abs(seconds) >= length) return words.format(Math.trunc(seconds / length), unit);
  }
  return "just now";
}

export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

/** Text cut to a length; a chart has no room for more. */
export const short = (text: string, longest: number): string =>
  text.length <= longest ? text : `${text.slice(0, longest - 1)}…`;
