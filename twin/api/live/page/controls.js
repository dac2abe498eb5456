// The controls of a board: each turns a what-if path; none knows what comes of it.

import { element, frequency } from "./drawing.js";

const at = (id) => document.getElementById(id);
const hertz = (text) => {
  const found = /^\s*([\d.eE+]+)\s*([kMG]?)Hz\s*$/.exec(text ?? "");
  return found ? Number(found[1]) * { "": 1, k: 1e3, M: 1e6, G: 1e9 }[found[2]] : Number(text);
};
export const writeHertz = (hz) => `${Number((hz / 1e6).toPrecision(9))}MHz`;

const option = (value, label) => element("option", { value, text: label ?? value });
const name = (path) => `c-${path.replaceAll(".", "-")}`;

const field = (label, control, ...more) => element("div", { class: "field" }, element("label", { for: control.id, text: label }), control, ...more);

const choice = (label, path, values, own, state, turn) => {
  const control = element("select", { id: name(path), on: { change: () => turn({ [path]: control.value || null }) } },
    option("", own), ...values.map((one) => option(one.value ?? one, one.label ?? one)));
  const chosen = state.set[path];
  if (chosen !== undefined && ![...control.options].some((one) => one.value === chosen)) control.append(option(chosen));
  control.value = chosen ?? "";
  return field(label, control);
};

const slider = ({ id, label, min, max, step, value, text, beside, onInput, onChange, described }) => {
  const shown = element("output", { for: id, text });
  const note = beside ? element("p", { class: "beside", id: `${id}-beside`, text: "\u00a0" }) : null;
  const control = element("input", { type: "range", id, min, max, step, "aria-describedby": note?.id, "aria-valuetext": text });
  control.value = value;
  const tell = () => {
    const now = described(Number(control.value));
    shown.textContent = now;
    control.setAttribute("aria-valuetext", now);
  };
  control.addEventListener("input", () => { tell(); onInput(Number(control.value)); });
  control.addEventListener("change", () => onChange(Number(control.value)));
  return element("div", { class: "field slider" },
    element("div", { class: "line" }, element("label", { for: id, text: label }), shown), control, note ?? "");
};

const drawClock = (clock, state, turn, drag) => {
  const set = state.set[clock.path];
  const now = set === undefined ? clock.own_hz : hertz(set);
  const step = clock.highest_hz > 4e6 ? 1e6 : 1e5;
  const made = slider({
    id: name(clock.path), label: clock.core ? "Core clock" : `Clock ${clock.name}`,
    min: clock.least_hz, max: clock.highest_hz, step, value: now, text: frequency(now),
    described: frequency, beside: clock.core,
    onInput: (value) => drag({ [clock.path]: writeHertz(value) }, clock.path),
    onChange: (value) => turn({ [clock.path]: writeHertz(value) }),
  });
  if (clock.scales.length > 1) {
    const ticks = element("div", { class: "ticks", "aria-hidden": "true" });
    let last = -1;
    for (const { scale, highest_hz: highest } of clock.scales) {
      const place = (100 * (highest - clock.least_hz)) / (clock.highest_hz - clock.least_hz || 1);
      if (place - last < 18 && last >= 0) continue;
      const tick = element("span", { text: scale, title: `${scale}: up to ${frequency(highest)}` });
      tick.style.left = `${place}%`;
      ticks.append(tick);
      last = place;
    }
    made.querySelector("input").after(ticks);
  }
  return made;
};

const drawCache = (cache, state, turn, drag) => {
  const path = `${cache.path}.size_bytes`, enabled = `${cache.path}.enabled`;
  const values = cache.values.map((one) => one.value);
  const set = state.set[path] ?? String(cache.own_bytes);
  if (!values.includes(set)) values.push(set);
  const label = (place) => {
    const found = cache.values.find((one) => one.value === values[place]);
    return `${found?.label ?? values[place]}${values[place] === String(cache.own_bytes) ? " (its own)" : ""}`;
  };
  const put = (place) => ({ [path]: values[place] === String(cache.own_bytes) ? null : values[place] });
  const check = element("input", { type: "checkbox", id: name(enabled), on: { change: () => turn({
    [enabled]: check.checked === cache.enabled ? null : String(check.checked) }) } });
  check.checked = state.set[enabled] === undefined ? cache.enabled : state.set[enabled] === "true";
  const place = values.indexOf(set);
  return element("div", { class: "group" },
    element("div", { class: "check" }, check, element("label", { for: check.id, text: `${cache.name} on` })),
    values.length < 2 ? null : slider({
      id: name(path), label: `Size of ${cache.name}`, min: 0, max: values.length - 1, step: 1, value: place,
      text: label(place), described: label,
      onInput: (value) => drag(put(value), ""), onChange: (value) => turn(put(value)) }));
};

const drawLoad = (load, state, turn, drag) => {
  const path = (key) => `load.${load.master}.${key}`;
  const rates = [...load.rates];
  const set = Number(state.set[path("bytes_per_second")] ?? 0);
  if (!rates.includes(set)) rates.push(set);
  const memory = element("select", { id: name(path("memory")), on: { change: () => put(Number(rate.value), turn) } },
    ...load.memories.map((one) => option(one)));
  memory.value = state.set[path("memory")] ?? load.memories[0];
  const described = (place) => (rates[place] ? `${rates[place] / 1e6} MB/s` : "idle");
  const write = element("input", { type: "checkbox", id: name(path("write")), on: { change: () => put(Number(rate.value), turn) } });
  write.checked = state.set[path("write")] === "true";
  const put = (place, act) => act(rates[place] ? {
    [path("memory")]: memory.value, [path("bytes_per_second")]: String(rates[place]),
    [path("write")]: write.checked ? "true" : null,
  } : { [path("memory")]: null, [path("bytes_per_second")]: null, [path("write")]: null }, "");
  const made = slider({
    id: name(path("bytes_per_second")), label: `${load.master} moves`, min: 0, max: rates.length - 1, step: 1,
    value: rates.indexOf(set), text: described(rates.indexOf(set)), described,
    onInput: (place) => put(place, drag), onChange: (place) => put(place, turn) });
  const rate = made.querySelector("input");
  return element("div", { class: "group" }, made, element("div", { class: "grid" },
    field(`Memory ${load.master} uses`, memory),
    element("div", { class: "field check" }, write, element("label", { for: write.id, text: "writes" }))));
};

const fill = (id, parts) => at(id).replaceChildren(...parts);

// Draw all controls of a board; `turn` takes a change, `drag` one that is not let go of yet.
export const drawControls = (known, state, turn, drag) => {
  const { controls } = known;
  const focused = document.activeElement?.id;
  const runtimes = at("runtime");
  const group = (label, names) => element("optgroup", { label }, ...names.map((one) => option(one)));
  runtimes.replaceChildren(option("", controls.runtime ? `its default (${controls.runtime})` : "its default"),
    group("fit this board", controls.runtimes.near), group("others", controls.runtimes.others));
  if (state.runtime && ![...runtimes.options].some((one) => one.value === state.runtime)) runtimes.append(option(state.runtime));
  runtimes.value = state.runtime ?? "";
  fill("clocks", controls.clocks.map((clock) => drawClock(clock, state, turn, drag)));
  fill("caches", controls.caches.map((cache) => drawCache(cache, state, turn, drag)));
  at("cache-part").hidden = !controls.caches.length;
  fill("places", controls.places.map((one) => choice(one.label, one.path, one.values, `as it is (${one.own})`, state, turn)));
  fill("numbers", controls.numbers.map((one) => choice(one.label, one.path, one.values, "as it is", state, turn)));
  const loads = controls.loads.filter((one) => one.memories.length);
  fill("loads", loads.map((one) => drawLoad(one, state, turn, drag)));
  at("load-part").hidden = !loads.length;
  at("temperature").value = state.temperature;
  at("calibration").value = state.calibration;
  fill("paths", known.paths.map((one) => element("option", { value: one.path, label: one.takes })));
  drawChanged(state, turn);
  if (focused && document.activeElement === document.body) at(focused)?.focus();
};

// Controls that set no path, as they are before anything is changed.
const OWN = { runtime: "", temperature: "warm", calibration: "auto" };

const chooseOwn = (id) => {
  at(id).value = OWN[id];
  at(id).dispatchEvent(new Event("change"));
};

// The list of what is changed, each with a button that takes it back.
export const drawChanged = (state, turn) => {
  const others = Object.keys(OWN).filter((id) => (state[id] ?? "") !== OWN[id]);
  const entries = [...others.map((id) => [id, state[id], () => chooseOwn(id)]),
    ...Object.entries(state.set).map(([path, value]) => [path, value, () => turn({ [path]: null })])];
  fill("changed", entries.length ? entries.map(([path, value, undo]) => element("li", {},
    element("code", { text: `${path}=${value}` }),
    element("button", { type: "button", text: "undo", "aria-label": `undo ${path}`, on: { click: undo } })))
    : [element("li", { class: "dim", text: "nothing" })]);
};
