/** The figures of the instructions: a landscape, one segmentation of it, and the phases of a trial. */

import type { Context } from "../screen.ts";

type Attributes = Record<string, string | number>;
type Point = readonly [x: number, y: number];

const SVG = "http://www.w3.org/2000/svg";

const SKY = "M0 0 H160 V70 Q120 50 80 66 T0 72 Z";
const HILL = "M0 72 Q40 82 80 66 T160 70 V120 H0 Z";
const CLOUDS = "M18 26 q10 -12 20 0 q12 -4 12 6 h-38 q-4 -6 6 -6 M120 18 q8 -9 15 0 q9 -2 9 5 h-28 z";
const FIELDS = "M0 92 Q50 84 90 100 T160 96 M10 108 Q60 100 110 112";
const TREE = "M104 96 V78 A17 17 0 1 1 114 78 V96 Z";

/** Create an SVG element. */
export function svg<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes,
  ...children: (Node | string)[]
): SVGElementTagNameMap[Tag] {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Draw a landscape with three obvious segments; the clouds belong to the sky. */
export function landscape(...overlay: SVGElement[]): SVGSVGElement {
  return createFrame(
    svg("path", { d: SKY, fill: "#a8c3d4" }),
    svg("path", { d: CLOUDS, fill: "#d5e2e9" }),
    svg("path", { d: HILL, fill: "#7d9262" }),
    svg("path", { d: FIELDS, stroke: "#6b8052", "stroke-width": 2, fill: "none" }),
    svg("path", { d: TREE, fill: "#3f5c3a" }),
    ...overlay,
  );
}

/** Draw the landscape as numbered segments: sky, hill and tree; of two segments, the tree is part of the hill. */
export function partition(segments: 2 | 3): SVGSVGElement {
  const border = { stroke: "#ffffff", "stroke-width": 2.5, "stroke-linejoin": "round" };
  const hill = { d: HILL, fill: "#8c7340" };
  const tree = { d: TREE, fill: segments === 3 ? "#7d5a86" : hill.fill };
  // Drawn again without borders, hill and tree become one segment.
  const joined = segments === 3 ? [] : [svg("path", hill), svg("path", tree)];
  const centred = { "text-anchor": "middle", "font-size": 15, "font-weight": 600, fill: "#ffffff" };
  return createFrame(
    svg("path", { d: SKY, fill: "#5b7fa3", ...border }),
    svg("path", { ...hill, ...border }),
    svg("path", { ...tree, ...border }),
    ...joined,
    ...([[50, 40], [40, 100], [109, 68]] as const)
      .slice(0, segments)
      .map(([x, y], index) => svg("text", { x, y, ...centred }, String(index + 1))),
  );
}

/** Draw red circles, as in a trial. */
export function circles(...points: Point[]): SVGElement[] {
  return points.map(([cx, cy]) => svg("circle", { cx, cy, r: 3.5, fill: "#ff0000" }));
}

/** Draw a grey screen with this content. */
export function grey(...overlay: SVGElement[]): SVGSVGElement {
  return createFrame(svg("rect", { width: 160, height: 120, fill: "#808080" }), ...overlay);
}

/** Draw the response screen: two keys and their meanings. */
export function question(...answers: (readonly [key: string, meaning: string])[]): SVGSVGElement {
  const caps = answers.flatMap(([label, meaning], index) => {
    const x = index ? 115 : 45;
    const centred = { "text-anchor": "middle", "font-weight": 600, fill: "#111111" };
    return [
      svg("rect", { x: x - 24, y: 46, width: 48, height: 28, rx: 5, fill: "#f4f4f2", stroke: "#333333" }),
      svg("text", { x, y: 65, "font-size": label.length > 3 ? 9 : 14, ...centred }, label),
      svg("text", { x, y: 90, "font-size": 10, ...centred }, meaning),
    ];
  });
  return grey(...caps);
}

/** Create a figure with a caption. */
export function figure(picture: SVGSVGElement, caption: string): HTMLElement {
  const element = document.createElement("figure");
  const captionElement = document.createElement("figcaption");
  captionElement.textContent = caption;
  element.append(picture, captionElement);
  return element;
}

/** Create two examples: both circles in one segment, and in different segments. */
export function examples(context: Context, keys: Record<"same" | "different", string>): HTMLElement[] {
  const { same, different } = keys;
  return [
    figure(landscape(...circles([30, 50], [134, 34])), context.text("instructions_same", { same })),
    figure(landscape(...circles([46, 30], [46, 98])), context.text("instructions_different", { different })),
  ];
}

function createFrame(...content: SVGElement[]): SVGSVGElement {
  return svg("svg", { viewBox: "0 0 160 120", class: "picture", "aria-hidden": "true" }, ...content);
}
