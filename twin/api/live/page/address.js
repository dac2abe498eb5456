// States as queries: what stands in the address of the page, and of each pinned variant in it.

const START = { model: "kws", board: "nucleo_l4r5zi" };

export const KEYS = ["model", "board", "runtime", "temperature", "calibration", "set", "pin", "compare"];

export const readQuery = (words) => {
  const one = (name, other) => words.get(name) || other;
  const found = { model: one("model", START.model), board: one("board", START.board), runtime: one("runtime", null),
    temperature: one("temperature", "warm"), calibration: one("calibration", "auto"), set: {} };
  for (const word of words.getAll("set")) {
    const cut = word.indexOf("=");
    if (cut > 0) found.set[word.slice(0, cut)] = word.slice(cut + 1);
  }
  return found;
};

export const writeQuery = (what, label) => {
  const words = new URLSearchParams();
  if (label !== undefined) words.append("label", label);
  words.append("model", what.model);
  words.append("board", what.board);
  if (what.runtime) words.append("runtime", what.runtime);
  if (what.temperature !== "warm") words.append("temperature", what.temperature);
  if (what.calibration !== "auto") words.append("calibration", what.calibration);
  for (const [path, value] of Object.entries(what.set)) words.append("set", `${path}=${value}`);
  return words;
};
