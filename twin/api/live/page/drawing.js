// Figures as text and bars: nothing here knows of the server or of what is chosen.

export const element = (name, settings = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(settings)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "class") made.className = value;
    else if (key === "text") made.textContent = value;
    else if (key === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};

const digits = (value, most = 3) => {
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  if (size === 0) return "0";
  return value.toFixed(Math.max(0, Math.min(6, most - 1 - Math.floor(Math.log10(size)))));
};

const scaled = (value, units) => {
  if (value === null || value === undefined) return "not known";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const [least, unit] = units.find(([from]) => size >= from) ?? units[units.length - 1];
  return `${digits(value / least)} ${unit}`.replace("-", "\u2212");
};

export const time = (us) => scaled(us, [[1e6, "s"], [1e3, "ms"], [1, "us"], [1e-3, "ns"]]);
export const energy = (uj) => scaled(uj, [[1e6, "J"], [1e3, "mJ"], [1, "uJ"], [1e-3, "nJ"]]);
export const size = (bytes) => (bytes < 1024 ? `${bytes} B` : scaled(bytes, [[1 << 20, "MiB"], [1 << 10, "KiB"]]).replace(/\.0+ /, " "));
export const frequency = (hz) => {
  const [least, unit] = hz >= 1e9 ? [1e9, "GHz"] : hz >= 1e6 ? [1e6, "MHz"] : [1e3, "kHz"];
  return `${Number((hz / least).toPrecision(6))} ${unit}`;
};
export const percent = (share) => `${(100 * share).toFixed(Math.abs(share) < 0.1 ? 1 : 0)} %`;
export const count = (value) => Math.round(value).toLocaleString("en-US");

export const signed = (value, write) => `${value > 0 ? "+" : value < 0 ? "\u2212" : "\u00b1"}${write(Math.abs(value))}`;

// What a figure is beside another, and whether that is better: less is.
export const difference = (now, before, write) => {
  if (now === null || before === null || now === undefined || before === undefined) return null;
  const gap = now - before;
  if (Math.abs(gap) <= 1e-9 * Math.abs(before)) return { text: "the same", side: "" };
  const ratio = before > 0 && now > 0 ? now / before : 1;
  const share = ratio < 0.1 || ratio > 10 ? ` (${count(Math.max(ratio, 1 / ratio))} times ${ratio > 1 ? "as much" : "less"})`
    : before ? ` (${signed(gap / before, percent)})` : "";
  return { text: `${signed(gap, write)}${share}`, side: gap < 0 ? "better" : "worse" };
};

export const energyPlace = (answer) => answer.energy_kind.replace(/^\w+ /, "");

// What an energy is beside another's, or why it is beside none: they are counted elsewhere.
export const energyDifference = (answer, other) => (!answer.whole_uj || !other?.whole_uj ? null : answer.energy_kind === other.energy_kind
  ? difference(answer.whole_uj.value, other.whole_uj.value, energy) : { text: `not compared with one ${energyPlace(other)}`, side: "" });

// What an energy is called that lacks the draw of its idle board.
export const energyName = ({ energy_uj: energy, whole_uj: whole }) => (whole && whole.value !== energy.value ? "Energy above idle" : "Energy");

let styles = new Map();
export const learnCauses = (causes) => { styles = new Map(causes.map((one) => [one.cause, one])); };
export const causeStyle = (cause) => styles.get(cause) ?? { cause, colour: "#999999", hatch: "", text: "", group: "" };

// Hatches of the project's pictures, by the character they are named with there.
const HATCHES = { "/": "rise", "\\": "fall", "-": "lines", "|": "bars", "x": "cross", "+": "grid", ".": "dots" };

const paint = (made, cause) => {
  const style = causeStyle(cause);
  made.style.backgroundColor = style.colour;
  if (HATCHES[style.hatch]) made.classList.add(`hatch-${HATCHES[style.hatch]}`);
  return made;
};

export const key = (cause) => paint(element("span", { class: "key", "aria-hidden": "true" }), cause);

// A stacked bar of [cause, value]; `whole` is what a full width is.
export const bar = (parts, whole, { small = false, label = "", write = time } = {}) => {
  const made = element("div", { class: small ? "bar small" : "bar", role: "img", "aria-label": label });
  for (const [cause, value] of parts) {
    if (!(value > 0) || !(whole > 0)) continue;
    const piece = paint(element("span", { title: `${cause}: ${write(value)}` }), cause);
    piece.style.width = `${(100 * value) / whole}%`;
    made.append(piece);
  }
  return made;
};

// A bar of one colour, where causes are not known yet.
export const plainBar = (value, whole, label) => {
  const made = element("div", { class: "span full", role: "img", "aria-label": label });
  const filled = element("i");
  filled.style.width = `${Math.min(100, (100 * value) / (whole || 1))}%`;
  made.append(filled);
  return made;
};

// An interval with its value, from nought to a little above its end.
export const intervalBar = (quantity) => {
  const whole = 1.1 * Math.max(quantity.high ?? 0, quantity.value);
  const made = element("div", { class: "span", "aria-hidden": "true" });
  const range = element("i"), mark = element("b");
  range.style.left = `${(100 * (quantity.low ?? 0)) / whole}%`;
  range.style.width = `${(100 * ((quantity.high ?? quantity.value) - (quantity.low ?? 0))) / whole}%`;
  mark.style.left = `${(100 * quantity.value) / whole}%`;
  made.append(range, mark);
  return made;
};

export const causeParts = (answer, field) => answer.causes.map((one) => [one.cause, one[field]]);
