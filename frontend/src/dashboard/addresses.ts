/** Addresses of pages and of their live parts. */

export const LIVE_PART = "live";

/** The address of a part of the page at this address. */
export function partAddress(page: string, part: string = LIVE_PART): string {
  const url = new URL(page);
  url.searchParams.set("part", part);
  url.hash = "";
  return url.href;
}

/** The address that a form with method GET leads to; fields left empty are left out. */
export function formAddress(action: string, fields: Iterable<readonly [string, string]>): string {
  const url = new URL(action);
  url.search = new URLSearchParams([...fields].filter(([, value]) => value !== "") as [string, string][]).toString();
  return url.href;
}
