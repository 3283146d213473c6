/** Refresh the live parts of a page: elements with data-live, which holds the address of their content. */

import { morph } from "./morph.ts";

const REFRESH_EVERY_MS = 3000;
const REQUEST_TIMEOUT_MS = 20_000; // per request

export interface Live {
  /** Fetch a part from another address at once; resolve with false if the server refuses. */
  show(part: Element, address: string): Promise<boolean>;
}

type Outcome = "ok" | "unreachable" | "logged-out" | "refused";

/** Refresh all live parts while the page is visible; call `onChange` after each change. */
export function refreshLiveParts(onChange: () => void): Live {
  const tags = new Map<string, string>();

  async function refresh(part: Element, address: string): Promise<Outcome> {
    const tag = tags.get(address);
    const conditional = tag && !part.hasAttribute("data-live-now") ? { "If-None-Match": tag } : {};
    let reply: Response;
    let text: string;
    try {
      const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
      reply = await fetch(address, { headers: { Accept: "text/html", ...conditional }, cache: "no-store", signal });
      text = await reply.text();
    } catch {
      return "unreachable";
    }
    if (reply.status === 401) return "logged-out";
    if (reply.status === 304) return "ok";
    if (!reply.ok) return reply.status < 500 ? "refused" : "unreachable";
    // Ignore the reply if the part was removed or shows another address by now.
    if (!part.isConnected || part.getAttribute("data-live") !== relative(address)) return "ok";
    const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("[data-live]");
    if (!fresh) return "unreachable";
    tags.set(address, reply.headers.get("etag") ?? "");
    morph(part, fresh);
    onChange();
    return "ok";
  }

  async function refreshAll(): Promise<void> {
    if (document.hidden) return;
    // One after the other: refreshing a part may add parts inside it, and this limits the load on the server.
    const done = new Set<Element>();
    let worst: Outcome = "ok";
    for (let part = nextPart(done); part; part = nextPart(done)) {
      done.add(part);
      const outcome = await refresh(part, absolute(part.getAttribute("data-live")!));
      if (outcome === "unreachable" || outcome === "logged-out") worst = outcome;
    }
    showBanner(worst);
  }

  let timer = 0;
  const scheduleNext = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void refreshAll().finally(scheduleNext), REFRESH_EVERY_MS);
  };
  document.addEventListener("visibilitychange", () => void (document.hidden || refreshAll().finally(scheduleNext)));
  void loadDeferredParts(refresh);
  scheduleNext();
  return {
    async show(part, address) {
      part.setAttribute("data-live", relative(address));
      part.classList.add("waiting");
      const outcome = await refresh(part, absolute(address));
      part.classList.remove("waiting");
      showBanner(outcome);
      await loadDeferredParts(refresh);
      return outcome !== "refused";
    },
  };
}

/** Fetch the parts that were rendered without content. */
async function loadDeferredParts(refresh: (part: Element, address: string) => Promise<Outcome>): Promise<void> {
  for (const part of document.querySelectorAll("[data-live-now]")) {
    await refresh(part, absolute(part.getAttribute("data-live")!));
  }
}

function nextPart(done: Set<Element>): Element | undefined {
  return [...document.querySelectorAll("[data-live]")].find((part) => !done.has(part));
}

const absolute = (address: string) => new URL(address, location.href).href;

function relative(address: string): string {
  const url = new URL(address, location.href);
  return url.pathname + url.search;
}

/** Show a line at the top of the page while something is wrong. */
function showBanner(outcome: Outcome): void {
  const existing = document.getElementById("banner");
  if (outcome === "ok" || outcome === "refused") return existing?.remove();
  if (existing?.dataset["outcome"] === outcome) return;
  const banner = Object.assign(document.createElement("p"), { id: "banner", className: "banner" });
  banner.setAttribute("role", "status");
  banner.dataset["outcome"] = outcome;
  if (outcome === "unreachable") {
    banner.textContent = "The server does not answer. What you see may be old; trying again…";
  } else {
    const link = Object.assign(document.createElement("a"), { href: location.href, textContent: "log in again" });
    banner.append("You are logged out; ", link, " to go on.");
  }
  if (existing) existing.replaceWith(banner);
  else document.querySelector("main")!.prepend(banner);
}
