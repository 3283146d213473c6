/** Parts of a page that are fetched again by themselves: elements with data-live, the address of what they show. */

import { morph } from "./morph.ts";

const EVERY_MS = 3000;
const GIVE_UP_MS = 20_000; // of one request

export interface Live {
  /** Fetch a part from another address, now; false if it is refused. */
  show(part: Element, address: string): Promise<boolean>;
}

type Outcome = "fine" | "gone" | "signed out" | "refused";

/** Keeps all live parts up to date while anyone can see them; `changed` is called after each change. */
export function keepAlive(changed: () => void): Live {
  const tags = new Map<string, string>();

  async function refresh(part: Element, address: string): Promise<Outcome> {
    const tag = tags.get(address);
    const known = tag && !part.hasAttribute("data-live-now") ? { "If-None-Match": tag } : {};
    let answer: Response;
    let text: string;
    try {
      const signal = AbortSignal.timeout(GIVE_UP_MS);
      answer = await fetch(address, { headers: { Accept: "text/html", ...known }, cache: "no-store", signal });
      text = await answer.text();
    } catch {
      return "gone";
    }
    if (answer.status === 401) return "signed out";
    if (answer.status === 304) return "fine";
    if (!answer.ok) return answer.status < 500 ? "refused" : "gone";
    if (!part.isConnected || part.getAttribute("data-live") !== relative(address)) return "fine"; // steered meanwhile
    const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("[data-live]");
    if (!fresh) return "gone";
    tags.set(address, answer.headers.get("etag") ?? "");
    morph(part, fresh);
    changed();
    return "fine";
  }

  async function round(): Promise<void> {
    if (document.hidden) return;
    // One after the other: a part inside another may be new, and the server has others to serve.
    const done = new Set<Element>();
    let worst: Outcome = "fine";
    for (let part = next(done); part; part = next(done)) {
      done.add(part);
      const outcome = await refresh(part, absolute(part.getAttribute("data-live")!));
      if (outcome === "gone" || outcome === "signed out") worst = outcome;
    }
    say(worst);
  }

  let timer = 0;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void round().finally(soon), EVERY_MS);
  };
  document.addEventListener("visibilitychange", () => void (document.hidden || round().finally(soon)));
  void waiting(refresh);
  soon();
  return {
    async show(part, address) {
      part.setAttribute("data-live", relative(address));
      part.classList.add("waiting");
      const outcome = await refresh(part, absolute(address));
      part.classList.remove("waiting");
      say(outcome);
      await waiting(refresh);
      return outcome !== "refused";
    },
  };
}

/** Parts that came without their content are fetched at once. */
async function waiting(refresh: (part: Element, address: string) => Promise<Outcome>): Promise<void> {
  for (const part of document.querySelectorAll("[data-live-now]")) {
    await refresh(part, absolute(part.getAttribute("data-live")!));
  }
}

function next(done: Set<Element>): Element | undefined {
  return [...document.querySelectorAll("[data-live]")].find((part) => !done.has(part));
}

const absolute = (address: string) => new URL(address, location.href).href;

function relative(address: string): string {
  const url = new URL(address, location.href);
  return url.pathname + url.search;
}

/** A quiet line at the top while something is wrong. */
function say(outcome: Outcome): void {
  const there = document.getElementById("banner");
  if (outcome === "fine" || outcome === "refused") return there?.remove();
  if (there?.dataset["outcome"] === outcome) return;
  const banner = Object.assign(document.createElement("p"), { id: "banner", className: "banner" });
  banner.setAttribute("role", "status");
  banner.dataset["outcome"] = outcome;
  if (outcome === "gone") banner.textContent = "The server does not answer. What you see may be old; trying again…";
  else {
    const link = Object.assign(document.createElement("a"), { href: location.href, textContent: "log in again" });
    banner.append("You are logged out; ", link, " to go on.");
  }
  if (there) there.replaceWith(banner);
  else document.querySelector("main")!.prepend(banner);
}
