// The page: its state stands in its address; a drag is priced again, what is let go of is simulated.

import { KEYS, readQuery, writeQuery } from "./address.js";
import * as draw from "./drawing.js";
import { drawChanged, drawControls, writeHertz } from "./controls.js";
import { drawVariants, nameState } from "./variants.js";

const { element } = draw;
const at = (id) => document.getElementById(id);

let state = null, answered = null, answer = null, known = null, catalogue = null, pins = [], base = 0;
let asked = 0, moves = 0, moving = false, repricing = false, waiting = null, settled = "", failed = false;
let underway = new AbortController();
const files = new Map();

// A busy server is asked again after a second, a few times; not while a slider moves.
const ask = async (path, body, signal, tries = path === "/api/reprice" ? 0 : 5) => {
  const response = await fetch(path, { signal, method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  if (response.status === 503 && tries) {
    await new Promise((resolve) => { setTimeout(resolve, 1000); });
    return ask(path, body, signal, tries - 1);
  }
  const found = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  return response.ok ? found : { ...found, error: found.error ?? `the server answered ${response.status}` };
};

// ---- The address ----

const named = (what) => nameState(what, files).slice(0, 80);

const address = () => {
  const words = writeQuery(state);
  for (const pin of pins) words.append("pin", writeQuery(pin.state, pin.label === named(pin.state) ? undefined : pin.label).toString());
  if (base) words.append("compare", String(base));
  return `?${words.toString().replaceAll("%3D", "=").replaceAll("%3A", ":")}`;
};

// ---- What is shown ----

const tell = (mode, text) => { at("status").dataset.mode = mode; at("status").textContent = text; };

const complain = (text) => {
  at("problem").hidden = !text;
  at("problem").textContent = text ?? "";
  for (const part of ["figures", "strip-figures"]) at(part).classList.toggle("stale", Boolean(text) && answer !== null);
};

const baseline = () => pins[base]?.answer ?? null;

const card = (name, value, { kind, delta, range, bar } = {}) => element("li", { class: "card" },
  element("span", { class: "name" }, name, kind ? element("span", { class: `kind ${kind}`, text: kind }) : null),
  element("span", { class: "value", text: value }),
  pins.length ? element("span", { class: `delta ${delta?.side ?? ""}`, text: delta ? delta.text : "\u00a0" }) : null,
  element("span", { class: "range", text: range ?? "" }), bar ?? null);

const range = (quantity, write, level) => (quantity?.low === null || quantity === null ? "no interval: stated prices"
  : `${Math.round(100 * level)} % interval: ${write(quantity.low)} to ${write(quantity.high)}`);

const drawCards = () => {
  const { time_us: time, energy_uj: energy, memory } = answer, level = answer.certainty?.level ?? 0.9, before = baseline();
  const beside = (now, was, write) => (before ? draw.difference(now, was, write) : null);
  const npu = answer.npu_energy_uj, whole = answer.whole_uj, shown = whole ?? npu;
  const apart = draw.energyName(answer) !== "Energy" ? `${draw.energy(energy.value)} above idle; ` : "";
  at("cards").replaceChildren(
    card("Time", draw.time(time.value), { kind: answer.kind, delta: beside(time.value, before?.time_us.value, draw.time), range: `${range(time, draw.time, level)}; ${answer.grades.time}`, bar: draw.intervalBar(time) }),
    card(shown === npu && npu ? "Energy, accelerator and its memories" : "Energy", draw.energy(shown?.value), { kind: shown ? answer.kind : null,
      delta: draw.energyDifference(answer, before),
      range: whole ? `${range(whole, draw.energy, level)}${answer.grades.energy && `; ${answer.grades.energy}`}, ${draw.energyPlace(answer)}; ${apart}${(whole.value / time.value * 1e3).toPrecision(3)} mW while it runs` : npu ? `${draw.energy(npu.low)} to ${draw.energy(npu.high)}; the rest is not known` : "no current of this board is known",
      bar: shown ? draw.intervalBar(shown) : null }),
    card("RAM", draw.size(memory.ram_bytes), { delta: beside(memory.ram_bytes, before?.memory?.ram_bytes, draw.size),
      range: `${draw.percent(memory.ram_bytes / memory.ram_available_bytes)} of ${draw.size(memory.ram_available_bytes)}`, bar: draw.plainBar(memory.ram_bytes, memory.ram_available_bytes, "share of RAM") }),
    card("Flash", draw.size(memory.flash_bytes), { delta: beside(memory.flash_bytes, before?.memory?.flash_bytes, draw.size),
      range: `${draw.percent(memory.flash_bytes / memory.flash_available_bytes)} of ${draw.size(memory.flash_available_bytes)}`, bar: draw.plainBar(memory.flash_bytes, memory.flash_available_bytes, "share of flash") }));
  at("strip-time").textContent = draw.time(time.value);
  at("strip-energy").textContent = draw.energy(shown?.value);
  at("strip-ram").textContent = draw.size(memory.ram_bytes);
};

const drawOperating = () => {
  const { operating } = answer, waits = Object.entries(operating.wait_states);
  const scale = operating.voltage_scale ? `, voltage scale ${operating.voltage_scale}${operating.core_voltage_v ? ` (${operating.core_voltage_v} V)` : ""}` : "";
  const waiting = waits.length ? `, wait states: ${waits.map(([memory, states]) => `${memory} ${states}`).join(", ")}` : answer.causes.some(({ cause }) => /^(flash|sram)_wait$/.test(cause)) ? "" : ", no wait states";
  const text = `${operating.core_clock} at ${draw.frequency(operating.clocks[operating.core_clock])}${scale}${waiting}`;
  at("operating").textContent = answer.voltage_note ? `${text}; ${answer.voltage_note}` : text;
  for (const clock of known?.controls.clocks ?? []) {
    const note = at(`c-${clock.path.replaceAll(".", "-")}-beside`);
    if (note && clock.core) note.textContent = text.replace(/^.*?Hz(, )?/, "");
  }
};

const describe = (field, write) => `by cause: ${answer.causes.map((one) => `${one.cause} ${write(one[field])}`).join(", ")}`;

const drawBill = () => {
  const time = answer.time_us.value, energy = answer.energy_uj?.value ?? null;
  const row = (name, field, whole, write) => element("div", { class: "bar-row" },
    element("div", { class: "line" }, element("span", { text: name }), element("span", { text: write(whole) })),
    draw.bar(draw.causeParts(answer, field), whole, { label: `${name} ${describe(field, write)}`, write }));
  at("bars").replaceChildren(row("Time", "time_us", time, draw.time), ...(energy === null ? [] : [row(draw.energyName(answer), "energy_uj", energy, draw.energy)]));
  const body = element("tbody", {}, ...answer.causes.map((one) => element("tr", { title: draw.causeStyle(one.cause).text },
    element("th", { scope: "row" }, draw.key(one.cause), one.cause), element("td", { class: "dim group-name", text: draw.causeStyle(one.cause).group }), element("td", { class: "told", text: draw.causeStyle(one.cause).text }),
    element("td", { class: "number", text: draw.time(one.time_us) }), element("td", { class: "number", text: draw.percent(one.time_us / time) }),
    element("td", { class: "number", text: energy === null ? "not known" : draw.energy(one.energy_uj) }))));
  body.append(element("tr", { class: "total" }, element("th", { scope: "row", text: "total" }), element("td", { class: "group-name" }), element("td", { class: "told" }), element("td", { class: "number", text: draw.time(time) }),
    element("td", { class: "number", text: "100 %" }), element("td", { class: "number", text: draw.energy(energy) })));
  at("bill").replaceChildren(element("caption", { class: "unseen", text: "The bill by cause" }), element("thead", {}, element("tr", {},
    ...[["cause"], ["group", "group-name"], ["what it is", "told"], ["time", "number"], ["share", "number"], [draw.energyName(answer).toLowerCase(), "number"]].map(([text, kind]) => element("th", { scope: "col", text, class: kind })))), body);
};

let sorting = { by: "index", down: false };
const COLUMNS = [["#", "index", true], ["operator", "op"], ["output", null], ["time", "time_us", true], ["time by cause", null], ["energy", "energy_uj", true], ["largest cause", "largest_cause"], ["bound, causes summed", "bound"]];

// While a slider moves only figures change, so the rows stay; bars lose their causes until it is let go.
const changeLayers = () => {
  const { layers } = answer, longest = Math.max(...layers.time_us.map((one) => one ?? 0));
  for (const row of at("layers").tBodies[0]?.rows ?? []) {
    const place = Number(row.dataset.place), us = layers.time_us[place];
    if (answer.described[place].alias) continue;
    row.cells[3].textContent = draw.time(us);
    row.cells[5].textContent = draw.energy(layers.energy_uj[place]);
    const filled = row.cells[4].querySelector(".span i");
    if (filled) filled.style.width = `${(100 * us) / longest}%`;
    else row.cells[4].replaceChildren(draw.plainBar(us, longest, `layer ${answer.described[place].index}`));
  }
};

const drawLayers = () => {
  const { described, layers } = answer;
  const longest = Math.max(...layers.time_us.map((one) => one ?? 0));
  const value = (place) => layers[sorting.by]?.[place] ?? described[place][sorting.by] ?? "";
  const order = described.map((_, place) => place).sort((one, other) => {
    const [first, second] = [value(one), value(other)];
    const found = typeof first === "number" && typeof second === "number" ? first - second : String(first).localeCompare(String(second));
    return (sorting.down ? -1 : 1) * found || one - other;
  });
  const body = element("tbody", {}, ...order.map((place) => {
    const layer = described[place], us = layers.time_us[place];
    const low = layers.time_low_us[place], span = low === null ? "" : `, ${draw.time(low)} to ${draw.time(layers.time_high_us[place])}`;
    const label = `layer ${layer.index}: ${draw.time(us)}${span}`;
    return element("tr", { title: layer.name, "data-place": place },
      element("th", { scope: "row", class: "number", text: layer.index }), element("td", { text: layer.assumed ? `${layer.op} (assumed)` : layer.op }),
      element("td", { class: "dim", text: layer.shape }), element("td", { class: "number", title: label, text: layer.alias ? "\u2013" : draw.time(us) }),
      element("td", { class: "bars" }, answer.repriced ? draw.plainBar(us, longest, label) : draw.bar(Object.entries(layer.causes), longest, { small: true, label })),
      element("td", { class: "number", text: layer.alias ? "\u2013" : draw.energy(layers.energy_uj[place]) }),
      element("td", {}, ...(layer.largest_cause ? [draw.key(layer.largest_cause), layer.largest_cause] : [])),
      element("td", { class: "dim", text: layer.alias ? "moves no data" : layer.bound }));
  }));
  const sort = (by) => { sorting = { by, down: sorting.by === by ? !sorting.down : by.endsWith("_us") || by.endsWith("_uj") }; drawLayers(); at("layers").querySelector(`button[data-by=${by}]`).focus(); };
  at("layers").replaceChildren(element("caption", { class: "unseen", text: "Layers" }), element("thead", {}, element("tr", {}, ...COLUMNS.map(([text, by, number]) => element("th", {
    scope: "col", class: number ? "number" : null, "aria-sort": sorting.by === by && by ? (sorting.down ? "descending" : "ascending") : null },
    by ? element("button", { type: "button", text, "data-by": by, on: { click: () => sort(by) } }) : text)))), body);
};

const drawMemory = () => {
  const { memory } = answer;
  const parts = Object.entries(memory.ram_parts).filter(([, bytes]) => bytes).map(([name, bytes]) => `${name} ${draw.size(bytes)}`).join(" + ");
  at("memory").replaceChildren(
    element("p", { text: `RAM: ${draw.count(memory.ram_bytes)} of ${draw.count(memory.ram_available_bytes)} bytes: ${parts}; arena in ${memory.arena}.` }),
    element("p", { text: `Flash: ${draw.count(memory.flash_bytes)} of ${draw.count(memory.flash_available_bytes)} bytes; weights in ${memory.weights}, code in ${memory.code}.` }),
    element("p", { class: "hint", text: `Set-up, once and in none of the above: ${draw.time(answer.setup.time_us)}, ${draw.energy(answer.setup.energy_uj)}.` }));
};

const drawNotes = () => {
  const sure = answer.certainty;
  at("notes").replaceChildren(...[
    `library ${answer.runtime}${answer.structure === "assumed" ? ": closed, its loops are assumed" : ""}`,
    sure ? `interval: ${sure.basis}; prices: ${sure.calibration}` : "stated prices: no interval stands behind these figures",
    ...answer.warnings].map((text) => element("li", { text })));
};

const drawAll = () => {
  const shown = nameState({ ...state, set: {} }, files);
  at("subject").textContent = nameState({ ...state, set: {}, runtime: answer.runtime }, files);
  document.title = `${draw.time(answer.time_us.value)}: ${shown}`;
  at("verdict").textContent = `fits: RAM ${draw.percent(answer.memory.ram_bytes / answer.memory.ram_available_bytes)}, flash ${draw.percent(answer.memory.flash_bytes / answer.memory.flash_available_bytes)}`;
  at("sentence").textContent = answer.repriced ? `${draw.time(answer.time_us.value)}; why is said when the slider is let go` : answer.explanation;
  at("label").placeholder = nameState(state, files);
  drawCards();
  drawOperating();
  drawBill();
  drawPins();
  if (answer.repriced) { changeLayers(); return; }
  drawLayers();
  drawMemory();
  drawNotes();
};

const drawPins = () => {
  at("variants-part").hidden = !pins.length;
  if (pins.length) drawVariants(at("variants"), [...pins, { label: "now", state, answer, now: true }], base, {
    show: (place) => { state = structuredClone(pins[place].state); predict(true); },
    compare: (place) => { base = place; remember(); drawAll(); },
    unpin: (place) => { pins.splice(place, 1); base = base > place ? base - 1 : Math.min(base, Math.max(0, pins.length - 1)); remember(); drawAll(); exportAll(); at("pin").focus(); },
  });
};

// ---- What is asked ----

const remember = () => history.replaceState(null, "", address());
const rest = (what) => JSON.stringify({ ...what, set: Object.entries(what.set).filter(([path]) => !path.startsWith("clocks.")).sort() });

const change = (changes) => {
  const set = { ...state.set };
  for (const [path, value] of Object.entries(changes)) {
    if (value === null) delete set[path];
    else set[path] = value;
  }
  state = { ...state, set };
};

const turn = (changes) => { change(changes); predict(); };

// A path that was typed and is refused is taken back: no control shows it.
const turnPath = (changes) => { const { set } = state; change(changes); predict(false, set); };

// Simulate what is chosen now; a question that is overtaken by a later one is taken back.
const predict = async (fresh = false, back = null) => {
  underway.abort();
  underway = new AbortController();
  const mine = ++asked, moved = moves;
  waiting = null;
  moving = false;
  const wanted = fresh || !known || known.for !== `${state.model} ${state.board} ${state.runtime}`;
  tell("busy", "predicting");
  at("path-help").textContent = "";
  drawChanged(state, turn);
  const found = await ask("/api/predict", { state, controls: wanted }, underway.signal).catch(() => ({ error: "the server does not answer; is it still running?" }));
  if (mine !== asked || moved !== moves) return;
  if (found.controls) known = { for: `${state.model} ${state.board} ${state.runtime}`, controls: found.controls, paths: found.paths };
  // What was refused and taken back leaves the state the figures are of.
  const kept = Boolean(found.error && back && answer && !failed && !answer.repriced);
  failed = Boolean(found.error) && !kept;
  for (const [key, file] of Object.entries(found.files ?? {})) nameFile(key, file);
  if (found.error) {
    if (back) {
      state = { ...state, set: back };
      at("path-help").textContent = found.error;  // Where one typed: the top may be out of sight.
    }
    complain(kept ? `${found.error}. It is taken back, and the figures below stand.` : answer ? `${found.error}. The figures below are of the state before.` : found.error);
    tell("refused", "refused");
  } else {
    answer = { ...found, repriced: false };
    answered = state;
    settled = rest(state);
    complain(null);
    tell("done", "predicted in full");
    remember();
  }
  if (known) drawControls(known, state, turn, drag);
  if (answer && !failed) drawAll();
  at("pin").disabled = failed;
  document.documentElement.dataset.ready = failed ? "refused" : "yes";
  exportAll();
  if (!failed) prime();
};

// Begin the slide of the core's clock while nobody waits, so that the first drag finds it.
const prime = () => {
  const core = known?.controls.clocks.find((one) => one.core);
  if (core && !(core.path in state.set)) reprice({ ...state, set: { ...state.set, [core.path]: writeHertz(core.own_hz) } }, core.path, true, true);
  else if (core) reprice(state, core.path, true, true);
};

const drag = (changes, path) => {
  change(changes);
  waiting = [state, path];
  moves += 1;
  moving = true;
  if (!repricing) slide();
};

// One question at a time is under way while a slider moves; only the newest position is asked next.
const slide = async () => {
  repricing = true;
  while (waiting) {
    const [wanted, path] = waiting;
    waiting = null;
    await reprice(wanted, path, path !== "" && rest(wanted) === settled, false);
  }
  repricing = false;
};

const reprice = async (wanted, path, begin, quiet) => {
  const before = asked;
  const found = await ask("/api/reprice", { state: wanted, path, begin }).catch(() => ({ error: "the server does not answer" }));
  if (quiet) { document.documentElement.dataset.primed = String(before); return; }
  if (before !== asked || !answer) return;
  if (found.error) { tell("refused", found.error.length > 60 ? "refused; let go to see why" : found.error); return; }
  if (!found.kept) { tell("repriced", "let go to predict"); return; }
  answer = { ...answer, ...found, repriced: true, voltage_note: "" };
  drawChanged(state, turn);
  complain(null);
  tell("repriced", "priced again from kept counts");
  drawAll();
};

// Of the figures shown: those of the state before, where one is refused.
let exported = 0;
const exportAll = async () => {
  if (!answered) return;
  const mine = ++exported;
  const variants = [...pins.map((pin) => ({ label: pin.label, state: pin.state })), { label: "now", state: answered }];
  const found = await ask("/api/export", { variants: variants.reverse() }).catch(() => ({ error: "the server does not answer" }));
  if (mine !== exported) return;
  at("command").textContent = found.command ?? found.error;
  at("studies").replaceChildren(...(found.studies ?? []).map((study) => element("button", { type: "button", text: `Save ${study.file}`, on: { click: () => {
    const link = element("a", { href: URL.createObjectURL(new Blob([study.text], { type: "text/yaml" })), download: study.file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  } } })));
};

// ---- Beginning ----

const upload = async (kind, file) => {
  const most = catalogue.uploads[kind].largest_bytes;
  if (file.size > most) { complain(`${file.name}: has ${draw.count(file.size)} bytes; accepted: up to ${draw.count(most)}`); return; }
  tell("busy", `reading ${file.name}`);
  const response = await fetch(`/api/${kind}s?name=${encodeURIComponent(file.name)}`, { method: "POST", headers: { "content-type": "application/octet-stream" }, body: file }).catch(() => null);
  const found = await response?.json().catch(() => null);
  if (!response?.ok) { complain(found?.error ?? "the server does not answer"); tell("refused", "refused"); return; }
  files.set(found.key, found.file);
  const select = at(kind);
  if (![...select.options].some((one) => one.value === found.key)) select.prepend(element("option", { value: found.key, text: `${found.file} (uploaded)` }));
  select.value = found.key;
  choose({ [kind]: found.key });
};

// Another network or board: what was set for the one before is dropped with the board.
const choose = (changes) => {
  const set = "board" in changes ? Object.fromEntries(Object.entries(state.set).filter(([path]) => path.startsWith("network."))) : state.set;
  state = { ...state, ...("board" in changes ? { runtime: null } : {}), ...changes, set };
  predict(true);
};

// An upload that is opened by its address is known by name once the server says it.
const nameFile = (key, file) => {
  files.set(key, file);
  for (const one of document.querySelectorAll("#model option, #board option")) if (one.value === key) one.textContent = `${file} (uploaded)`;
};

const listChoices = () => {
  const pick = (id, names, label) => {
    at(id).replaceChildren(...names.map((one) => element("option", { value: one.name, text: label(one) })));
    if (!names.some((one) => one.name === state[id])) at(id).prepend(element("option", { value: state[id], text: files.get(state[id]) ?? `uploaded ${state[id].slice(7, 15)}` }));
    at(id).value = state[id];
  };
  pick("model", catalogue.models.map((name) => ({ name })), (one) => one.name);
  pick("board", catalogue.boards, (one) => `${one.name} (${one.core}, ${draw.frequency(one.hz)})`);
};

const connect = () => {
  at("controls").addEventListener("submit", (event) => event.preventDefault());
  // A slider that is let go of where it was taken tells of no change.
  at("controls").addEventListener("pointerup", () => setTimeout(() => { if (moving) predict(); }, 0));
  for (const kind of ["model", "board"]) {
    at(kind).addEventListener("change", () => choose({ [kind]: at(kind).value }));
    at(`${kind}-upload`).addEventListener("click", () => at(`${kind}-file`).click());
    at(`${kind}-file`).addEventListener("change", (event) => { const [file] = event.target.files; if (file) upload(kind, file); event.target.value = ""; });
  }
  at("runtime").addEventListener("change", () => choose({ runtime: at("runtime").value || null }));
  for (const name of ["temperature", "calibration"]) at(name).addEventListener("change", () => { state = { ...state, [name]: at(name).value }; predict(); });
  const setPath = () => {
    const path = at("path").value.trim(), value = at("value").value.trim();
    if (!path || !value) { at("path-help").textContent = "a path and its value are needed"; return; }
    at("path").value = at("value").value = "";
    turnPath({ [path]: value });
  };
  at("set").addEventListener("click", setPath);
  for (const id of ["path", "value"]) at(id).addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); setPath(); } });
  at("path").addEventListener("input", () => {
    const found = known?.paths.find((one) => one.path === at("path").value.trim());
    at("path-help").textContent = found ? `${found.takes}; ${found.changes}` : "";
  });
  at("reset").addEventListener("click", () => { state = { ...state, set: {}, runtime: null, temperature: "warm", calibration: "auto" }; predict(true); });
  at("pin").addEventListener("click", () => {
    if (!answer || failed || answer.repriced) return;
    if (pins.length >= catalogue.most_variants - 1) { complain(`at most ${catalogue.most_variants - 1} variants are pinned; unpin one`); return; }
    const same = pins.find((pin) => writeQuery(pin.state).toString() === writeQuery(state).toString());
    if (same) { complain(`this state is pinned as ${same.label}`); return; }
    pins.push({ label: at("label").value.trim() || named(state), state: structuredClone(state), answer });
    at("label").value = "";
    complain(null);
    remember();
    drawAll();
    exportAll();
  });
  const copy = (id, text) => at(id).addEventListener("click", async () => {
    const said = at(id).textContent;
    await navigator.clipboard.writeText(text()).then(() => { at(id).textContent = "Copied"; }, () => { at(id).textContent = "Copy it by hand"; });
    setTimeout(() => { at(id).textContent = said; }, 1500);
  });
  copy("link", () => location.href);
  copy("copy-command", () => at("command").textContent);
};

const loadPins = async (words) => {
  for (const text of words.getAll("pin").slice(0, catalogue.most_variants - 1)) {
    const own = new URLSearchParams(text), pinned = readQuery(own);
    const found = await ask("/api/predict", { state: pinned, controls: false });
    pins.push({ label: (own.get("label") || named(pinned)).slice(0, 80), state: pinned, answer: found.error ? null : found, error: found.error });
  }
  base = Math.min(Math.max(0, Number.parseInt(words.get("compare") ?? "0", 10) || 0), Math.max(0, pins.length - 1));
};

const begin = async () => {
  if (matchMedia("(max-width: 46rem)").matches) for (const part of document.querySelectorAll("#controls details")) part.open = false;
  catalogue = await (await fetch("/api/catalogue")).json();
  draw.learnCauses(catalogue.causes);
  const words = new URLSearchParams(location.search || catalogue.start);
  state = readQuery(words);
  listChoices();
  connect();
  await loadPins(words);
  await predict(true);
  const strange = [...new Set(words.keys())].filter((one) => !KEYS.includes(one));
  if (strange.length && !failed) complain(`the address has ${strange.map((one) => one.slice(0, 30)).join(", ")}, which means nothing here; accepted: ${KEYS.join(", ")}`);
};

begin().catch((error) => { complain(`the page could not begin: ${error.message}`); document.documentElement.dataset.ready = "failed"; });
