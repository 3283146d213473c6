/** The script of the researcher's pages, which also work without it. */

import { drawAll, redrawAll } from "./charts.ts";
import { enableCopyButtons } from "./copy.ts";
import { enableHintClosing } from "./hints.ts";
import { refreshLiveParts } from "./live.ts";
import { enableSteering } from "./steer.ts";

document.documentElement.classList.add("alive");
const live = refreshLiveParts(drawAll);
enableSteering(live);
enableCopyButtons();
enableHintClosing();
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
