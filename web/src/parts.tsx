// Small parts that several views share.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "./api";
import { ago, moment } from "./format";

/** Whether the reader has moved within the page; a page that was just opened keeps its focus at the top. */
export const visit = { moved: false };

export function Heading({ children, aside }: { children: ComponentChildren; aside?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  // A reader who cannot see the page change hears where they are.
  useEffect(() => {
    const free = document.activeElement === document.body || document.activeElement === null;
    if (visit.moved && free) heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <div class="heading">
      <h1 ref={heading} tabIndex={-1}>
        {children}
      </h1>
      {aside && <div class="aside">{aside}</div>}
    </div>
  );
}

export function Notice({ kind = "plain", children }: { kind?: "plain" | "bad" | "good"; children: ComponentChildren }) {
  return (
    <div class={`notice ${kind}`} role={kind === "bad" ? "alert" : "status"}>
      {children}
    </div>
  );
}

export function Trouble({ problem, again }: { problem: Problem; again?: () => void }) {
  return (
    <Notice kind="bad">
      <p>{problem.message}</p>
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </Notice>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="loading muted" role="status">
      Loading {what} …
    </p>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="card empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Badge({ kind, children }: { kind: string; children: ComponentChildren }) {
  return <span class={`badge ${kind}`}>{children}</span>;
}

export function When({ at }: { at: string | number | null | undefined }) {
  const date = moment(at);
  const [, tick] = useState(0);
  // "Just now" does not stay true.
  useEffect(() => {
    const timer = setInterval(() => tick((now) => now + 1), 20_000);
    return () => clearInterval(timer);
  }, []);
  if (!date) return <>–</>;
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {ago(date)}
    </time>
  );
}

/** A button that asks once more before it does what cannot be undone. */
export function Confirm({ label, name, question, act }: { label: string; name: string; question: string; act: () => void }) {
  const [asked, setAsked] = useState(false);
  const yes = useRef<HTMLButtonElement>(null);
  useEffect(() => yes.current?.focus(), [asked]);
  if (!asked) {
    return (
      <button type="button" class="quiet" aria-label={`${label} ${name}`} onClick={() => setAsked(true)}>
        {label}
      </button>
    );
  }
  return (
    <span class="confirm" role="group" aria-label={`${label} ${name}`}>
      <span>{question}</span>
      <button type="button" class="danger" ref={yes} onClick={act}>
        {label}
      </button>
      <button type="button" class="quiet" onClick={() => setAsked(false)}>
        Keep
      </button>
    </span>
  );
}

export function Copy({ text }: { text: string }) {
  const [done, setDone] = useState("");
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      setDone("Copied");
    } catch {
      // Without a secure context there is no clipboard: the reader copies by hand what is then selected.
      const field = document.querySelector<HTMLInputElement>("input.secret");
      field?.select();
      setDone("Selected: copy it with your keyboard");
    }
  }
  return (
    <>
      <button type="button" onClick={() => void copy()}>
        Copy
      </button>
      <span class="muted" role="status">
        {done}
      </span>
    </>
  );
}
