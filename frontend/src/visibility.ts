/** Check during a trial whether the page was visible and focused and the window unchanged. */

export interface PageState {
  visible: boolean;
  focused: boolean;
  full_screen: boolean;
  /** Subset of: hidden, blurred, window. */
  flags: string[];
}

/** Start watching the page; the returned function stops and returns the result. */
export function watchPage(): () => PageState {
  const before = { full: document.fullscreenElement !== null, width: innerWidth, height: innerHeight };
  const flags = new Set<string>();
  const done = new AbortController();
  const check = () => {
    if (document.visibilityState !== "visible") flags.add("hidden");
    if (!document.hasFocus()) flags.add("blurred");
    const full = document.fullscreenElement !== null;
    if (full !== before.full || innerWidth !== before.width || innerHeight !== before.height) flags.add("window");
  };
  const listen = (target: EventTarget, name: string, listener: () => void) =>
    target.addEventListener(name, listener, { signal: done.signal });
  listen(document, "visibilitychange", check);
  listen(document, "fullscreenchange", check);
  listen(window, "resize", check);
  listen(window, "blur", () => flags.add("blurred"));
  check();
  return () => {
    check();
    done.abort();
    return {
      visible: !flags.has("hidden"),
      focused: !flags.has("blurred"),
      full_screen: before.full && document.fullscreenElement !== null,
      flags: ["hidden", "blurred", "window"].filter((flag) => flags.has(flag)),
    };
  };
}
