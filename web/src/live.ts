// A study that is followed while it runs: asks for new events, slows down when nothing happens, rests while the tab is
// hidden, and comes back by itself after the connection was lost.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, Problem, type Event, type Json, type Study } from "./api";
import { read, type View } from "./model";

export type Connection = "loading" | "live" | "paused" | "lost" | "gone";

export interface Live {
  study: Study | null;
  view: View | null;
  /** Why there is no view though there is a study: the service's own sentence. */
  trouble: string;
  connection: Connection;
  problem: Problem | null;
  retryAt: number;
  again: () => void;
  pause: (rest: boolean) => void;
}

const QUICK = 800; // milliseconds between two questions while events arrive
const SLOW = 8_000; // and after a quiet while
const LOST = 30_000; // the longest wait for a service that does not answer

export function useLive(id: string): Live {
  const [study, setStudy] = useState<Study | null>(null);
  const [view, setView] = useState<View | null>(null);
  const [trouble, setTrouble] = useState("");
  const [connection, setConnection] = useState<Connection>("loading");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [retryAt, setRetryAt] = useState(0);
  const wake = useRef<() => void>(() => undefined);
  const paused = useRef(false);

  useEffect(() => {
    let over = false;
    let seen: number | null = null;
    let failures = 0;
    let delay = QUICK;
    let quiet = 0;
    const path = `studies/${encodeURIComponent(id)}`;

    const rest = (milliseconds: number) =>
      new Promise<void>((done) => {
        const timer = setTimeout(done, milliseconds);
        wake.current = () => {
          clearTimeout(timer);
          delay = QUICK;
          done();
        };
      });

    async function load(): Promise<void> {
      const found = await get<Study>(path);
      if (over) return;
      setStudy(found);
      try {
        const drawn = read(await get<Json>(`${path}/view`));
        if (over) return;
        setView(drawn);
        setTrouble("");
      } catch (error) {
        // A study that cannot be drawn can still be listed; a lost connection is not the view's trouble.
        if (error instanceof Problem && (error.status === 0 || error.status === 401 || error.status === 429 || error.status >= 500)) throw error;
        setTrouble(error instanceof Error ? error.message : String(error));
      }
      seen ??= found.version ?? found.events;
    }

    async function step(): Promise<number> {
      const start = performance.now();
      if (seen === null) {
        await load();
      } else {
        const news = await get<{ events: Event[]; next: number }>(`${path}/trace?after=${seen}`);
        if (news.events.length) {
          await load();
          delay = QUICK;
        } else {
          delay = Math.min(delay * 1.5, SLOW);
          // Closing a study is no event.
          if (++quiet % 4 === 0) setStudy(await get<Study>(path));
        }
        seen = news.next;
      }
      // A view that is slow to work out is not asked for without a break.
      return Math.max(delay, 3 * (performance.now() - start));
    }

    async function follow(): Promise<void> {
      while (!over) {
        if (paused.current || document.hidden) {
          setConnection((now) => (paused.current ? "paused" : now));
          await rest(3_600_000);
          continue;
        }
        let wait: number;
        try {
          wait = await step();
          if (over) return;
          failures = 0;
          setConnection("live");
          setProblem(null);
        } catch (error) {
          if (over) return;
          const what = error instanceof Problem ? error : new Problem(0, String(error));
          setProblem(what);
          if ([401, 403, 404].includes(what.status)) {
            setConnection("gone");
            return;
          }
          wait = Math.min(LOST, 1000 * 2 ** failures++);
          if (what.patience) wait = Math.max(wait, 1000 * what.patience);
          setConnection("lost");
          setRetryAt(Date.now() + wait);
        }
        await rest(wait);
      }
    }

    const shown = () => document.hidden || wake.current();
    const online = () => wake.current();
    document.addEventListener("visibilitychange", shown);
    window.addEventListener("online", online);
    void follow();
    return () => {
      over = true;
      wake.current();
      document.removeEventListener("visibilitychange", shown);
      window.removeEventListener("online", online);
    };
  }, [id]);

  const again = useCallback(() => wake.current(), []);
  const pause = useCallback((still: boolean) => {
    paused.current = still;
    wake.current();
  }, []);
  return { study, view, trouble, connection, problem, retryAt, again, pause };
}

export interface Loaded<T> {
  data: T | null;
  problem: Problem | null;
  reload: () => void;
}

/** What an address answers, asked again every now and then. */
export function useLoad<T>(load: () => Promise<T>, every = 0): Loaded<T> {
  const [data, setData] = useState<T | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [turn, setTurn] = useState(0);
  const reload = useCallback(() => setTurn((now) => now + 1), []);
  useEffect(() => {
    let over = false;
    let timer = 0;
    let asking = false; // one question at a time: a second would go on asking beside the first
    async function ask(): Promise<void> {
      if (asking) return;
      asking = true;
      let wait = every;
      if (!document.hidden) {
        try {
          const found = await load();
          if (over) return;
          setData(found);
          setProblem(null);
        } catch (error) {
          if (over) return;
          const what = error instanceof Problem ? error : new Problem(0, String(error));
          setProblem(what);
          wait = [401, 403, 404].includes(what.status) ? 0 : Math.max(every, 5_000);
        }
      }
      asking = false;
      if (wait) timer = window.setTimeout(() => void ask(), wait);
    }
    const shown = () => {
      if (document.hidden) return;
      clearTimeout(timer);
      void ask();
    };
    document.addEventListener("visibilitychange", shown);
    void ask();
    return () => {
      over = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [turn]);
  return { data, problem, reload };
}
