// From values to pixels: linear, logarithmic and categorical axes, ticks, and the range worth showing.

import { number, plural } from "../format";

export interface Axis {
  name: string;
  low: number;
  high: number;
  log: boolean;
  whole: boolean;
  labels: string[];
}

export type Scale = (value: number) => number;

/** Position from 0 to 1 along an axis. */
export function unit(axis: Axis, value: number): number {
  const [low, high, at] = axis.log ? [axis.low, axis.high, value].map(Math.log) : [axis.low, axis.high, value];
  return high! <= low! ? 0.5 : (at! - low!) / (high! - low!);
}

export function scale(axis: Axis, start: number, end: number): Scale {
  const choices = axis.labels.length;
  // A choice has half a step of room on both sides.
  if (choices) return (value) => start + ((value + 0.5) / choices) * (end - start);
  return (value) => start + unit(axis, value) * (end - start);
}

/** Round values between two ends, about `count` of them. */
export function ticks(axis: Axis, count: number): number[] {
  if (axis.labels.length) return axis.labels.map((_, i) => i);
  if (axis.log) {
    const found = decades(axis, [1]);
    if (found.length > count + 1) return found.filter((_, i) => i % Math.ceil(found.length / count) === 0);
    return found.length >= 2 ? found : decades(axis, [1, 2, 5]).slice(0, 2 * count);
  }
  const span = axis.high - axis.low;
  if (!(span > 0)) return [axis.low];
  const power = 10 ** Math.floor(Math.log10(span / count));
  const steps = [1, 2, 5, 10].map((m) => m * power);
  let step = steps.find((s) => span / s <= 1.5 * count) ?? 10 * power;
  if (axis.whole) step = Math.max(1, Math.round(step));
  const first = Math.ceil(axis.low / step - 1e-9);
  const made: number[] = [];
  for (let k = first; k * step <= axis.high + 1e-9 * span; k++) made.push(Number((k * step).toPrecision(12)));
  return made;
}

function decades(axis: Axis, digits: number[]): number[] {
  const made: number[] = [];
  for (let p = Math.floor(Math.log10(axis.low)); p <= Math.ceil(Math.log10(axis.high)); p++) {
    for (const d of digits) {
      const value = d * 10 ** p;
      if (value >= axis.low * (1 - 1e-9) && value <= axis.high * (1 + 1e-9)) made.push(Number(value.toPrecision(12)));
    }
  }
  return made;
}

/** How many values lie outside a range, and how far out, in words; null where none does. */
export function beyond(values: number[], [low, high]: [number, number], axis = "the axis"): string | null {
  const below = values.filter((value) => value < low);
  const above = values.filter((value) => value > high);
  const words: string[] = [];
  if (below.length) words.push(`${plural(below.length, "value")} below ${axis}, lowest ${number(Math.min(...below))}`);
  if (above.length) words.push(`${plural(above.length, "value")} above ${axis}, highest ${number(Math.max(...above))}`);
  return words.length ? words.join("; ") : null;
}

/** A height that a browser can draw: a curve that leaves the axis is cut there, however far it goes. */
export const drawable = (y: number): number => clamp(y, -1e5, 1e5);

export const clamp = (value: number, low: number, high: number): number => Math.min(Math.max(value, low), high);

/** A range that shows the better three quarters of the values well; what is far worse is marked at its edge. */
export function range(values: number[], direction: string): [number, number] {
  if (!values.length) return [0, 1];
  const sign = direction === "minimize" ? -1 : 1;
  const quality = values.map((value) => sign * value).sort((a, b) => a - b);
  let [low, high] = [quality[0]!, quality[quality.length - 1]!];
  const usual = high - quality[Math.floor((quality.length - 1) / 4)]!;
  if (usual > 0 && high - low > 3 * usual) low = high - 2.5 * usual;
  if (high <= low) {
    const margin = 0.5 * Math.abs(high) || 0.5;
    [low, high] = [low - margin, high + margin];
  }
  return sign < 0 ? [-high, -low] : [low, high];
}

export function padded([low, high]: [number, number], share = 0.06): [number, number] {
  const margin = share * (high - low);
  return [low - margin, high + margin];
}

export const plain = (name: string, low: number, high: number, whole = false): Axis => ({
  name,
  low,
  high,
  log: false,
  whole,
  labels: [],
});
