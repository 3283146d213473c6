/** Drawing of a bank card that fills its container. */

import { svg } from "./pictures.ts";

export function createCard(): SVGSVGElement {
  return svg(
    "svg",
    { viewBox: "0 0 856 540", class: "card", "aria-hidden": "true" },
    svg("rect", { x: 2, y: 2, width: 852, height: 536, rx: 30, fill: "#2f5d7c", stroke: "#16303f", "stroke-width": 4 }),
    svg("path", { d: "M2 400 Q300 250 854 330 V508 Q854 538 824 538 H32 Q2 538 2 508 Z", fill: "#3f7696" }),
    svg("rect", { x: 86, y: 190, width: 120, height: 92, rx: 14, fill: "#e2c673" }),
    svg("path", { d: "M86 236 H206 M146 190 V282", stroke: "#8f7a3c", "stroke-width": 4, fill: "none" }),
    svg("rect", { x: 86, y: 350, width: 560, height: 26, rx: 13, fill: "#ffffff", opacity: 0.85 }),
    svg("rect", { x: 86, y: 420, width: 300, height: 20, rx: 10, fill: "#ffffff", opacity: 0.6 }),
  );
}
