// The truth board: TRUTH_ROWS in a table that is filtered and sorted here, TRUTH_SEALED in a line.
(() => {
  const FILTERS = ["board", "library", "network", "quantity", "in interval"];
  const UNITS = {time: [[1e6, "s"], [1e3, "ms"], [1, "us"]], energy: [[1e3, "mJ"], [1, "uJ"]]};
  const write = (quantity, value) => {
    const [size, unit] = UNITS[quantity].find(([least]) => value >= least) || UNITS[quantity].at(-1);
    return `${Number((value / size).toPrecision(3))} ${unit}`;
  };
  const error = (row) => row.predicted / row.published - 1;
  const inside = (row) => (row.low <= row.published && row.published <= row.high ? "yes" : "no");
  const COLUMNS = {
    board: (row) => [row.board], quantity: (row) => [row.quantity],
    published: (row) => [write(row.quantity, row.published), row.published],
    predicted: (row) => [write(row.quantity, row.predicted), row.predicted],
    error: (row) => [`${error(row) > 0 ? "+" : ""}${(100 * error(row)).toFixed(1)} %`, Math.abs(error(row))],
    "90 % interval": (row) => [
      `${write(row.quantity, row.low)} to ${write(row.quantity, row.high)}`, row.high / row.low],
    "in interval": (row) => [inside(row)], library: (row) => [row.library],
    network: (row) => [row.network], how: (row) => [row.how], row: (row) => [row.row],
  };
  const make = (name, parent, text) => {
    const element = document.createElement(name);
    element.textContent = text ?? "";
    parent.append(element);
    return element;
  };

  const board = document.getElementById("truth");
  const filters = make("div", board);
  filters.className = "truth-filters";
  const count = make("p", board);
  count.className = "truth-count";
  count.setAttribute("role", "status");
  const scroll = make("div", board);
  scroll.className = "truth-scroll";
  scroll.tabIndex = 0;
  const table = make("table", scroll);
  table.className = "truth-table";  // The theme's own look is of tables without a class.
  const head = make("tr", make("thead", table));
  const body = make("tbody", table);

  const rows = TRUTH_ROWS.map((facts) => {
    const line = make("tr", body);
    const cells = Object.values(COLUMNS).map((column) => column(facts));
    for (const [text, key] of cells) {
      make("td", line, text).className = key === undefined ? "" : "truth-number";
    }
    line.className = inside(facts) === "no" ? "truth-outside" : "";
    return {facts, line, keys: cells.map(([text, key]) => key ?? text)};
  });

  const selects = FILTERS.map((name) => {
    const select = make("select", make("label", filters, name));
    make("option", select, "all").value = "";
    for (const value of [...new Set(rows.map(({facts}) => COLUMNS[name](facts)[0]))].sort()) {
      make("option", select, value);
    }
    select.dataset.column = name;
    select.addEventListener("change", show);
    return select;
  });

  const heads = Object.keys(COLUMNS).map((name, place) => {
    const cell = make("th", head);
    cell.scope = "col";
    const button = make("button", cell, name);
    button.type = "button";
    button.addEventListener("click", () => sort(place));
    return cell;
  });

  function show() {
    const shown = rows.filter(({facts, line}) => {
      line.hidden = selects.some(
        (select) => select.value && COLUMNS[select.dataset.column](facts)[0] !== select.value);
      return !line.hidden;
    });
    const errors = shown.map(({facts}) => Math.abs(error(facts))).sort((a, b) => a - b);
    const middle = (errors[(errors.length - 1) >> 1] + errors[errors.length >> 1]) / 2;
    const covered = shown.filter(({facts}) => inside(facts) === "yes").length;
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

  document.getElementById("truth-sealed").textContent = "Sealed rows are shown as medians only: "
    + TRUTH_SEALED.map(([kind, number, median, covered]) => (
      `${kind}: ${number} rows, median error ${median}, ${covered} in the 90 % interval`)).join("; ") + ".";
  show();
})();
