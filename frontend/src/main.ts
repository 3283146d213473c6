/** The participant's way, from the address of the page to the last word. */

import { initJsPsych } from "jspsych";

import { el, mark } from "./dom.ts";
import { environment } from "./environment.ts";
import { retryUntilAnswered } from "./outbox.ts";
import type { Screen } from "./screen.ts";
import { rest } from "./screens/break.ts";
import { consent } from "./screens/consent.ts";
import { contours } from "./screens/contours.ts";
import { debriefing } from "./screens/debriefing.ts";
import { device } from "./screens/device.ts";
import { distance } from "./screens/distance.ts";
import { feedback } from "./screens/feedback.ts";
import { fullScreen } from "./screens/full-screen.ts";
import { gamma } from "./screens/gamma.ts";
import { instructions } from "./screens/instructions.ts";
import { keys } from "./screens/keys.ts";
import { notice } from "./screens/notice.ts";
import { EndScreens } from "./ending.ts";
import { type Node, step, when, repeatWhile } from "./timeline.ts";
import { Visit } from "./visit.ts";
import { entry, Refused, study } from "./wire.ts";

function way(visit: Visit): Node[] {
  const { context, questions } = visit;
  const show = <Result>(name: string, screen: Screen<Result>, then?: (result: Result) => unknown) =>
    step(name, () => screen, context, then);
  const calibration = () => [
    when(() => visit.needs("distance"), distance(context(), (found) => visit.record("distance", found))),
    when(() => visit.needs("gamma"), show("gamma", gamma, (found) => visit.record("gamma", found))),
  ];
  const block = step(questions.blockStep, () => notice(questions.blockSaid()), context, questions.prepared);

  return [
    when(() => !visit.session, show("device", device, visit.checked), show("consent", consent, visit.agreed)),
    when(() => visit.study.display.full_screen, show("full-screen", fullScreen(false), visit.fullScreenAsked)),
    when(() => visit.lacks("keys"), show("keys", keys, visit.keysChosen)),
    ...calibration(),
    when(() => visit.unasked, show("instructions", instructions)),
    repeatWhile(
      questions.more,
      when(questions.is("block"), ...calibration(), block),
      when(questions.is("preview"), questions.preview()),
      when(questions.is("rest"), step("break", () => rest(questions.pauseNow()), context, () => questions.rested())),
      when(visit.fullScreenLost, show("full-screen", fullScreen(true), visit.fullScreenBack)),
      when(questions.is("trial"), questions.trial()),
      when(questions.feedbackDue, step("feedback", () => feedback(...questions.verdict()), context)),
    ),
    repeatWhile(visit.toDraw, show("contours", contours, visit.drawn)),
    show("debriefing", debriefing, (text) => text && visit.record("comment", { text })),
  ];
}

async function main(): Promise<void> {
  const info = await retryUntilAnswered(study);
  document.documentElement.lang = info.language;
  document.title = info.title || info.texts["title"] || info.name;
  const jsPsych = initJsPsych({ display_element: "experiment" });
  const visit = new Visit(info, entry(location.search), await environment(location.search, info.name), jsPsych);
  const endScreens = new EndScreens(visit);
  try {
    await visit.environment.enter(visit.who, endScreens.otherTab);
    document.getElementById("experiment")?.replaceChildren();
    mark("loading");
    if (endScreens.repeated()) return;
    await visit.resume();
    if (visit.ending) return await endScreens.say();
    if (!visit.session && endScreens.cannotBegin()) return;
    visit.exit.offer();
    if (visit.session?.state.status !== "completed") await jsPsych.run(way(visit) as Parameters<typeof jsPsych.run>[0]);
    await endScreens.say();
  } catch (error) {
    await endScreens.failed(error);
  }
}

main().catch((error: unknown) => {
  // Without the study's texts there is nothing to say it with but the server's own words.
  mark("refused");
  const words = error instanceof Refused ? error.message : String(error);
  document.getElementById("experiment")?.replaceChildren(el("p", { class: "panel", role: "alert" }, words));
});
