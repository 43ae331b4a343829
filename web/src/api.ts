// The service's HTTP interface: one place that knows addresses, the token, and how the service says no.

export interface Study {
  id: string;
  name: string;
  policy: string;
  direction: "maximize" | "minimize";
  created?: string | number | null;
  updated?: string | number | null;
  events: number;
  told: number;
  pending: number;
  failed: number;
  stopped: number;
  best: number | null;
  version: number;
  state: string;
  domain?: Json;
  options?: Json;
}

export interface Token {
  id: string;
  name: string;
  scope: string;
  tenant?: string;
  token?: string;
  created?: string | number | null;
  used?: string | number | null;
  revoked?: unknown;
}

export interface Outsourced {
  id: string;
  name: string;
  policy: string;
  state: string;
  asks?: number | null;
  step?: number | null;
  answered?: number | null;
  rows?: number | null;
  created?: string | number | null;
  [other: string]: unknown;
}

export interface Event {
  event: string;
  id?: number;
  step?: number;
  value?: number | null;
  [other: string]: unknown;
}

export type Json = { [key: string]: any };

/** What went wrong: `status` 0 says that the service was not reached. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly patience: number | null = null,
  ) {
    super(message);
  }
}

const BASE = new URL("api/v1/", document.baseURI).href;
const KEY = "surefoot-token";
const LIMIT = 30_000; // milliseconds until an unanswered request counts as lost

/** The token lives as long as the tab, and nowhere else. */
export const session = {
  get: (): string | null => sessionStorage.getItem(KEY),
  set: (token: string) => sessionStorage.setItem(KEY, token),
  clear: () => sessionStorage.removeItem(KEY),
};

let refused: () => void = () => undefined;
/** Call `then` whenever the service no longer knows the token. */
export function onRefused(then: () => void): void {
  refused = then;
}

export async function call<T>(method: string, path: string, body?: unknown, token = session.get()): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer: Response;
  let text: string;
  try {
    answer = await fetch(BASE + path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(LIMIT),
      cache: "no-store",
      credentials: "omit",
    });
    text = await answer.text();
  } catch {
    throw new Problem(0, "The service cannot be reached.");
  }
  if (!answer.ok) {
    if (answer.status === 401 && token === session.get()) refused();
    const wait = Number(answer.headers.get("Retry-After"));
    throw new Problem(answer.status, explain(answer.status, text), wait > 0 ? wait : null);
  }
  return (text ? JSON.parse(text) : null) as T;
}

export const get = <T>(path: string, token?: string): Promise<T> => call<T>("GET", path, undefined, token);
export const post = <T>(path: string, body: unknown): Promise<T> => call<T>("POST", path, body);
export const remove = (path: string): Promise<unknown> => call("DELETE", path);

/** The items of a list, whatever it is wrapped in. */
export function items<T>(answer: T[] | Json): T[] {
  if (Array.isArray(answer)) return answer;
  const list = Object.values(answer).find(Array.isArray);
  return (list ?? []) as T[];
}

const KNOWN: Record<number, string> = {
  401: "The service does not accept this token.",
  403: "This token may not do that.",
  404: "There is no such thing here.",
  413: "That is too large for the service.",
  429: "Too many requests; slow down a little.",
};

/** The service's own sentence, else one that fits the status. */
function explain(status: number, text: string): string {
  let said = "";
  try {
    const body = JSON.parse(text) as Json;
    const detail = body.detail ?? body.error ?? body.message;
    if (typeof detail === "string") said = detail;
    else if (Array.isArray(detail)) said = detail.map((one) => one?.msg ?? String(one)).join("; ");
    else if (detail && typeof detail === "object") said = String(detail.message ?? detail.detail ?? "");
  } catch {
    said = "";
  }
  return said || KNOWN[status] || (status >= 500 ? "The service has a problem." : `The service said ${status}.`);
}
