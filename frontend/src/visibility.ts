/** Watches over one trial: was the page seen, did it have the focus, did the window stay as it was? */

export interface Watched {
  visible: boolean;
  focused: boolean;
  full_screen: boolean;
  /** Of: hidden, blurred, window. */
  flags: string[];
}

/** Begin to watch; the function returned ends it and says what was seen. */
export function watch(): () => Watched {
  const before = { full: document.fullscreenElement !== null, width: innerWidth, height: innerHeight };
  const flags = new Set<string>();
  const over = new AbortController();
  const look = () => {
    if (document.visibilityState !== "visible") flags.add("hidden");
    if (!document.hasFocus()) flags.add("blurred");
    const full = document.fullscreenElement !== null;
    if (full !== before.full || innerWidth !== before.width || innerHeight !== before.height) flags.add("window");
  };
  const listen = (target: EventTarget, name: string, act: () => void) =>
    target.addEventListener(name, act, { signal: over.signal });
  listen(document, "visibilitychange", look);
  listen(document, "fullscreenchange", look);
  listen(window, "resize", look);
  listen(window, "blur", () => flags.add("blurred"));
  look();
  return () => {
    look();
    over.abort();
    return {
      visible: !flags.has("hidden"),
      focused: !flags.has("blurred"),
      full_screen: before.full && document.fullscreenElement !== null,
      flags: ["hidden", "blurred", "window"].filter((flag) => flags.has(flag)),
    };
  };
}
