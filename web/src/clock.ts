// The page's only timers (link.ts has the rest of the waiting). Owns what time it is and when something is called;
// must never be used to wait until something "should be done": wait for the thing itself.

export type Stop = () => void;

/** This machine's wall clock, unix ms. For ages use the fleet's skew as well. */
export function now(): number {
  return Date.now();
}

/** Calls once, `ms` from now, unless stopped. */
export function after(ms: number, then: () => void): Stop {
  const id = setTimeout(then, ms);
  return () => clearTimeout(id);
}

/** Calls again and again until stopped; never while the page is hidden, and at once when it is seen again. */
export function everyWhileSeen(ms: number, then: () => void): Stop {
  let id: ReturnType<typeof setInterval> | undefined;
  const arm = () => {
    clearInterval(id);
    id = undefined;
    if (document.hidden) return;
    then();
    id = setInterval(then, ms);
  };
  document.addEventListener("visibilitychange", arm);
  arm();
  return () => {
    clearInterval(id);
    document.removeEventListener("visibilitychange", arm);
  };
}

/** At most one call per `ms`, the first at once and the last never lost. */
export function paced(ms: number, then: () => void): { call: () => void; stop: Stop } {
  let id: ReturnType<typeof setTimeout> | undefined;
  let again = false;
  const run = () => {
    then();
    id = setTimeout(() => {
      id = undefined;
      if (!again) return;
      again = false;
      run();
    }, ms);
  };
  return {
    call: () => {
      if (id === undefined) run();
      else again = true;
    },
    stop: () => {
      clearTimeout(id);
      id = undefined;
      again = false;
    },
  };
}

/** As a held key: once at once, again after 400 ms, then each 60 ms until stopped. */
export function repeat(then: () => void): Stop {
  then();
  let id: ReturnType<typeof setInterval> | undefined;
  const first = setTimeout(() => {
    then();
    id = setInterval(then, 60);
  }, 400);
  return () => {
    clearTimeout(first);
    clearInterval(id);
  };
}
