/** Entry point of the participant's page: builds the timeline of the experiment and runs it. */

import { initJsPsych } from "jspsych";

import { el, setStep } from "./dom.ts";
import { createEnvironment } from "./environment.ts";
import { retryUntilReply } from "./outbox.ts";
import type { Screen } from "./screen.ts";
import { breakScreen } from "./screens/break.ts";
import { consentScreen } from "./screens/consent.ts";
import { contoursScreen } from "./screens/contours.ts";
import { debriefingScreen } from "./screens/debriefing.ts";
import { deviceScreen } from "./screens/device.ts";
import { createDistanceNode } from "./screens/distance.ts";
import { feedbackScreen } from "./screens/feedback.ts";
import { fullScreenScreen } from "./screens/full-screen.ts";
import { gammaScreen } from "./screens/gamma.ts";
import { instructionsScreen } from "./screens/instructions.ts";
import { keysScreen } from "./screens/keys.ts";
import { noticeScreen } from "./screens/notice.ts";
import { EndScreens } from "./ending.ts";
import { type Node, step, when, repeatWhile } from "./timeline-parts.ts";
import { Visit } from "./visit.ts";
import { fetchStudy, parseEntry, RefusedError } from "./wire.ts";

function createTimeline(visit: Visit): Node[] {
  const { context, questions } = visit;
  const show = <Result>(name: string, screen: Screen<Result>, onResult?: (result: Result) => unknown) =>
    step(name, () => screen, context, onResult);
  const calibration = () => [
    when(
      () => visit.needsCalibration("distance"),
      createDistanceNode(context(), (result) => visit.record("distance", result)),
    ),
    when(() => visit.needsCalibration("gamma"), show("gamma", gammaScreen, (result) => visit.record("gamma", result))),
  ];
  const block = step(questions.blockStep, () => noticeScreen(questions.blockMessage()), context, questions.prepareBlock);

  return [
    when(
      () => !visit.session,
      show("device", deviceScreen, visit.storeDevice),
      show("consent", consentScreen, visit.handleConsent),
    ),
    when(() => visit.study.display.full_screen, show("full-screen", fullScreenScreen(false), visit.handleFullScreen)),
    when(() => visit.isMissing("keys"), show("keys", keysScreen, visit.storeKeys)),
    ...calibration(),
    when(() => visit.hasNoResponses, show("instructions", instructionsScreen)),
    repeatWhile(
      questions.advance,
      when(questions.isAt("block"), ...calibration(), block),
      when(questions.isAt("preview"), questions.previewNode()),
      when(
        questions.isAt("break"),
        step("break", () => breakScreen(questions.currentBreak()), context, () => questions.recordBreak()),
      ),
      when(visit.isFullScreenLost, show("full-screen", fullScreenScreen(true), visit.handleFullScreenReturn)),
      when(questions.isAt("trial"), questions.trialNode()),
      when(questions.isFeedbackDue, step("feedback", () => feedbackScreen(...questions.takeVerdict()), context)),
    ),
    repeatWhile(visit.hasImagesToDraw, show("contours", contoursScreen, visit.recordContours)),
    show("debriefing", debriefingScreen, (text) => text && visit.record("comment", { text })),
  ];
}

async function main(): Promise<void> {
  const info = await retryUntilReply(fetchStudy);
  document.documentElement.lang = info.language;
  document.title = info.title || info.texts["title"] || info.name;
  const jsPsych = initJsPsych({ display_element: "experiment" });
  const visit = new Visit(info, parseEntry(location.search), await createEnvironment(location.search, info.name), jsPsych);
  const endScreens = new EndScreens(visit);
  try {
    await visit.environment.enter(visit.storageKey, endScreens.showOtherTab);
    document.getElementById("experiment")?.replaceChildren();
    setStep("loading");
    if (endScreens.showIfCompleted()) return;
    await visit.resume();
    if (visit.ending) return await endScreens.show();
    if (!visit.session && endScreens.showIfNotAllowed()) return;
    visit.leaveButton.attach();
    if (visit.session?.state.status !== "completed") {
      await jsPsych.run(createTimeline(visit) as Parameters<typeof jsPsych.run>[0]);
    }
    await endScreens.show();
  } catch (error) {
    await endScreens.showError(error);
  }
}

main().catch((error: unknown) => {
  // The study's texts could not be loaded, so show the server's own message.
  setStep("refused");
  const message = error instanceof RefusedError ? error.message : String(error);
  document.getElementById("experiment")?.replaceChildren(el("p", { class: "panel", role: "alert" }, message));
});
