/** Links and forms with data-steer change the live part and the address without reloading the page. */

import { formAddress, partAddress } from "./addresses.ts";
import type { Live } from "./live.ts";

export function enableSteering(live: Live): void {
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest<HTMLAnchorElement>("a[data-steer]");
    const isPlainClick = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (!link || !isPlainClick) return;
    event.preventDefault();
    void steer(live, link.href);
  });
  document.addEventListener("change", (event) => {
    const form = (event.target as HTMLInputElement).form;
    if (form?.hasAttribute("data-steer")) void steer(live, getFormAddress(form));
  });
  document.addEventListener("submit", (event) => {
    const form = event.target as HTMLFormElement;
    if (!form.hasAttribute("data-steer")) return;
    event.preventDefault();
    void steer(live, getFormAddress(form));
  });
  // Reload when going back or forward to another address, but not for a fragment of the same page.
  addEventListener("popstate", () => void (currentAddress() === shownAddress || location.reload()));
}

const currentAddress = () => location.pathname + location.search;
let shownAddress = currentAddress();

function getFormAddress(form: HTMLFormElement): string {
  return formAddress(form.action, [...new FormData(form)] as [string, string][]);
}

async function steer(live: Live, address: string): Promise<void> {
  const part = document.getElementById("live");
  if (!part) return location.assign(address);
  history.pushState(null, "", address);
  shownAddress = currentAddress();
  // If the server refuses, load the page, which shows what is wrong.
  if (!(await live.show(part, partAddress(address)))) location.assign(address);
}
