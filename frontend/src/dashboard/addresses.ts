/** Addresses of pages and of their live parts. */

export const LIVE_PART = "live";

/** Return the address of a part of the page at this address. */
export function partAddress(page: string, part: string = LIVE_PART): string {
  const url = new URL(page);
  url.searchParams.set("part", part);
  url.hash = "";
  return url.href;
}

/** Return the address that a GET form leads to; empty fields are omitted. */
export function formAddress(action: string, fields: Iterable<readonly [string, string]>): string {
  const url = new URL(action);
  url.search = new URLSearchParams([...fields].filter(([, value]) => value !== "") as [string, string][]).toString();
  return url.href;
}
