/** Watches over one trial: was the page seen, did it have the focus, did the window stay as it was? */

export interface PageState {
  visible: boolean;
  focused: boolean;
  full_screen: boolean;
  /** Of: hidden, blurred, window. */
  flags: string[];
}

/** Begin to watch; the function returned ends it and says what was seen. */
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
