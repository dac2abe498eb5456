// The truth board: filters and sorts the table that stands on the page, which needs no script.
(() => {
  const FILTERS = ["board", "library", "network", "quantity", "in interval"];
  const make = (name, parent, text) => {
    const element = document.createElement(name);
    element.textContent = text ?? "";
    parent.append(element);
    return element;
  };

  const count = document.querySelector(".truth-count");
  const heads = [...document.querySelectorAll(".truth-table th")];
  const names = heads.map((cell) => cell.textContent);
  const body = document.querySelector(".truth-table tbody");
  const rows = [...body.rows].map((line) => ({
    line, texts: [...line.cells].map((cell) => cell.textContent),
    keys: [...line.cells].map((cell) => (
      cell.dataset.key === undefined ? cell.textContent : Number(cell.dataset.key))),
  }));
  const error = names.indexOf("error"), inside = names.indexOf("in interval");

  const filters = document.createElement("div");
  filters.className = "truth-filters";
  count.before(filters);
  const selects = FILTERS.map((name) => {
    const select = make("select", make("label", filters, name));
    make("option", select, "all").value = "";
    for (const value of [...new Set(rows.map(({texts}) => texts[names.indexOf(name)]))].sort()) {
      make("option", select, value);
    }
    select.dataset.column = name;
    select.addEventListener("change", show);
    return select;
  });
  heads.forEach((cell, place) => {
    cell.textContent = "";
    const button = make("button", cell, names[place]);
    button.type = "button";
    button.addEventListener("click", () => sort(place));
  });

  function show() {
    const shown = rows.filter(({line, texts}) => {
      line.hidden = selects.some((select) => (
        select.value && texts[names.indexOf(select.dataset.column)] !== select.value));
      return !line.hidden;
    });
    const errors = shown.map(({keys}) => keys[error]).sort((a, b) => a - b);
    const middle = (errors[(errors.length - 1) >> 1] + errors[errors.length >> 1]) / 2;
    const covered = shown.filter(({texts}) => texts[inside] === "yes").length;
    count.textContent = shown.length
      ? `${shown.length} of ${rows.length} rows: median error ${(100 * middle).toFixed(1)} %, ${covered} `
        + `in the 90 % interval (${(100 * covered / shown.length).toFixed(0)} %)`
      : `0 of ${rows.length} rows: choose fewer filters`;
  }

  function sort(place) {
    const up = heads[place].getAttribute("aria-sort") !== "ascending";
    heads.forEach((cell) => cell.removeAttribute("aria-sort"));
    heads[place].setAttribute("aria-sort", up ? "ascending" : "descending");
    rows.sort(({keys: {[place]: one}}, {keys: {[place]: other}}) => (up ? 1 : -1) * (
      typeof one === "number" ? one - other : one.localeCompare(other)));
    body.append(...rows.map(({line}) => line));
  }
})();
