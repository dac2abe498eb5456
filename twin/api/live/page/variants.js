// Variants pinned side by side, beside one of them, with what moved.

import { bar, causeParts, difference, element, energy, energyDifference, energyPlace, percent, signed, size, time } from "./drawing.js";

const MOVED = 2;

// The causes whose time differs most between two answers, in words.
export const describeMoved = (answer, before) => {
  const was = new Map(before.causes.map((one) => [one.cause, one.time_us]));
  const is = new Map(answer.causes.map((one) => [one.cause, one.time_us]));
  const gaps = [...new Set([...was.keys(), ...is.keys()])]
    .map((cause) => [cause, (is.get(cause) ?? 0) - (was.get(cause) ?? 0)])
    .filter(([, gap]) => Math.abs(gap) > 1e-3 * before.time_us.value)
    .sort((one, other) => Math.abs(other[1]) - Math.abs(one[1]));
  return gaps.slice(0, MOVED).map(([cause, gap]) => `${cause} ${signed(gap, time)}`).join(", ");
};

export const nameState = (state, files) => {
  const plain = (name) => files.get(name) ?? name;
  const changes = Object.entries(state.set).map(([path, value]) => `${path.replace(/^clocks\.(\w+)\.frequency_hz$/, "$1").replace(/^placement\./, "").replace(/\.size_bytes$/, "")}=${value}`);
  return [plain(state.model), plain(state.board), state.runtime, state.temperature === "cold" ? "cold" : null,
    state.calibration === "none" ? "stated prices" : null, ...changes].filter(Boolean).join(", ");
};

const figure = (text, found) => element("td", { class: "number" }, text,
  found ? element("span", { class: `sub ${found.side}`, text: found.text }) : null);

const button = (text, place, row, act) => element("button", { type: "button", text, "aria-label": `${text} ${row.label}`, on: { click: () => act(place) } });

// Draw the table; `rows` are {label, state, answer, error, now}, `base` the place of the baseline.
export const drawVariants = (table, rows, base, act) => {
  const first = rows[base]?.answer;
  const longest = Math.max(...rows.map((one) => one.answer?.time_us.value ?? 0));
  const mixed = new Set(rows.map((one) => one.answer).filter((one) => one?.whole_uj).map((one) => one.energy_kind)).size > 1;
  const body = element("tbody");
  rows.forEach((row, place) => {
    const { answer } = row;
    const tell = (value, write, before) => figure(value === undefined ? "\u2013" : write(value),
      place !== base && answer && first ? difference(value, before, write) : null);
    const other = row.state.model !== rows[base].state.model;
    const moved = answer && first && place !== base && !other ? describeMoved(answer, first) : "";
    body.append(element("tr", { class: row.now ? "now" : null },
      element("td", { class: "wrap" }, element("strong", { text: row.now ? "now" : row.label }),
        place === base ? element("span", { class: "sub", text: "baseline of the others" }) : null,
        row.error ? element("span", { class: "sub worse", text: row.error }) : null,
        moved ? element("span", { class: "sub", text: `moved: ${moved}` }) : null,
        other ? element("span", { class: "sub", text: "another network than the baseline" }) : null,
        row.now ? null : element("div", { class: "acts" }, button("show", place, row, act.show),
          place === base ? null : button("compare", place, row, act.compare), button("unpin", place, row, act.unpin))),
      tell(answer?.time_us.value, time, first?.time_us.value),
      figure(answer ? energy(answer.whole_uj?.value) + (mixed && answer.whole_uj ? ` ${energyPlace(answer)}` : "") : "\u2013",
        place !== base && answer ? energyDifference(answer, first) : null),
      tell(answer?.memory?.ram_bytes, size, first?.memory?.ram_bytes),
      tell(answer?.memory?.flash_bytes, size, first?.memory?.flash_bytes),
      element("td", { class: "bars" }, answer ? bar(causeParts(answer, "time_us"), longest, {
        label: `time by cause: ${answer.causes.filter((one) => one.time_us > 0.05 * answer.time_us.value).map((one) => `${one.cause} ${percent(one.time_us / answer.time_us.value)}`).join(", ")}` }) : "")));
  });
  const heads = ["Variant", "Time", "Energy", "RAM", "Flash", "Time by cause"];
  table.replaceChildren(
    element("caption", { class: "unseen", text: "Variants" }),
    element("thead", {}, element("tr", {}, ...heads.map((text, place) => element("th", {
      scope: "col", text, class: place > 0 && place < 5 ? "number" : null })))),
    body);
};
