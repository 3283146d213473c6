/** The researcher's pages: whole without this script, alive with it. */

import { drawAll, redrawAll } from "./charts.ts";
import { offerCopies } from "./copy.ts";
import { closeHints } from "./hints.ts";
import { keepAlive } from "./live.ts";
import { offerSteering } from "./steer.ts";

document.documentElement.classList.add("alive");
const live = keepAlive(drawAll);
offerSteering(live);
offerCopies();
closeHints();
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
