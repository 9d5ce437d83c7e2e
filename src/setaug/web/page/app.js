// The explorer: fetches everything from the server, and only renders.
const $ = (id) => document.getElementById(id);
const PAGE = 10, BARS = 8;
const state = { data: null, around: null, offset: 0, label: null, model: null, limits: {}, example: null, file: null };
const running = {};

async function ask(path, { method = "GET", body, headers = {}, signal } = {}) {
  const key = sessionStorage.getItem("setaug-key");
  const response = await fetch(path, { method, body, signal, headers: { ...headers, ...(key ? { Authorization: `Bearer ${key}` } : {}) } });
  if (response.status === 401) {
    $("key").hidden = false;
    $("key-value").focus();
  }
  if (!response.ok) {
    const told = await response.json().catch(() => ({}));
    throw new Error(told.error ?? `the server returned status ${response.status}.`);
  }
  return response;
}

// One request of a kind at a time: requests made meanwhile are merged into one at the end, with the latest state.
function latest(kind, work) {
  const slot = running[kind] ??= { again: false, done: null };
  if (slot.done) {
    slot.again = true;
    return slot.done;
  }
  const repeat = async () => {
    try {
      do {
        slot.again = false;
        await work();
      } while (slot.again);
    } finally {
      slot.done = null;
    }
  };
  slot.done = repeat();
  return slot.done;
}

const json = async (path, options) => (await ask(path, options)).json();

let clearing = null;
function say(text, isBad = false) {
  $("message").textContent = text;
  $("message").classList.toggle("bad", isBad);
  clearTimeout(clearing);
  if (!isBad && !text.endsWith("…")) clearing = setTimeout(() => say(""), 4000);
}
$("message").addEventListener("click", () => say(""));

// Run some work; an error is shown at a place of its own, or at the bottom of the page. Aborted work shows nothing.
async function trying(work, { quiet = false, at = null, signal = null } = {}) {
  try {
    await work();
    if (signal?.aborted) return;
    if (at) $(at).textContent = "";
    if (!quiet) say("");
  } catch (error) {
    if (signal?.aborted) return;
    const told = error instanceof TypeError && error.message.includes("fetch") ? "the server does not respond." : error.message;
    if (!at) return say(told, true);
    say("");
    $(at).textContent = told;
  }
}

function element(kind, text, className) {
  const made = document.createElement(kind);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

const number = (value, digits = 0) => value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const share = (part, whole) => (whole ? `${number((100 * part) / whole, 1)} %` : "–");

function thresholds() {
  return new URLSearchParams({ min_pmi: $("pmi").value, min_ratio: $("ratio").value });
}

const address = (what, more = {}) => `/api/datasets/${state.data.id}/${what}?${new URLSearchParams([...thresholds(), ...Object.entries(more)])}`;

function draw(place, svg, onLabel) {
  const picture = document.importNode(new DOMParser().parseFromString(svg, "image/svg+xml").documentElement, true);
  picture.setAttribute("role", "group"); // a picture of one piece would hide its buttons from screen readers
  const wide = Number(picture.getAttribute("width"));
  const room = $("graph").clientWidth;
  picture.setAttribute("width", Math.max(0.7 * wide, Math.min(place === $("graph") ? 1.3 * wide : wide, room))); // small type, not tiny type
  picture.removeAttribute("height"); // it follows
  const hadFocus = place.contains(document.activeElement);
  place.replaceChildren(picture);
  for (const box of place.querySelectorAll("g.label")) {
    const name = box.querySelector("title").textContent;
    box.setAttribute("tabindex", "0");
    box.setAttribute("role", "button");
    box.setAttribute("aria-label", name);
    if (name === state.around) box.setAttribute("aria-current", "true");
    box.addEventListener("click", () => onLabel(name));
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        onLabel(name);
      }
    });
  }
  if (hadFocus) (place.querySelector("[aria-current]") ?? place).focus();
}

// Tell that a picture goes on beyond the edge; many phones show no scroll bar.
function showCue(place) {
  const cue = place.closest("section").querySelector(".cue");
  cue.hidden = place.scrollWidth <= place.clientWidth + 1;
  place.classList.toggle("wide", !cue.hidden);
}
addEventListener("resize", () => showCue($("graph")));

function center(place) {
  const chosen = place.querySelector("[aria-current]")?.getBoundingClientRect();
  const frame = place.getBoundingClientRect();
  if (chosen) place.scrollLeft += chosen.left + chosen.width / 2 - frame.left - frame.width / 2;
}

// ---- data ----

async function open(found) {
  state.data = found;
  Object.assign(state, { around: null, label: null, offset: 0, example: null });
  $("search").value = "";
  $("set").value = "";
  $("orders").replaceChildren();
  $("explorer").hidden = false;
  $("intro").hidden = true;
  $("opened").hidden = false;
  $("opened").replaceChildren(element("strong", found.name), `: ${number(found.n_examples)} ${found.n_examples === 1 ? "example" : "examples"}`);
  $("data-error").textContent = "";
  $("unknown").hidden = true;
  showJoined(found);
  for (const id of ["numbers", "graph", "scores", "sentence"]) $(id).replaceChildren();
  showCommand();
  say("");
  await Promise.all([showNumbers(), showGraph(), showExamples()]);
  if (state.data !== found) return;
  document.title = `${found.name} – setaug`;
  trying(showHelp, { quiet: true });
}

// Open what the server returns. The next choice aborts it, so that a slow reply never replaces a later one.
let opening = new AbortController();
async function openFrom(path, options) {
  opening.abort();
  const { signal } = (opening = new AbortController());
  await trying(async () => {
    const found = await json(path, { ...options, signal });
    if (!signal.aborted) await open(found);
  }, { quiet: true, at: "data-error", signal });
}

// Labels that look like several: the wrong separator, or lists as text.
function showJoined({ joined, kind, fields }) {
  $("joined").hidden = joined === null;
  if (joined === null) return;
  const { label, separator } = joined;
  const isTable = kind !== "jsonl";
  const such = `Most labels look like several labels in one, such as “${label.length > 60 ? `${label.slice(0, 60)}…` : label}”.`;
  const name = separator === "\t" ? "tab" : separator;
  const remedy = separator === "["
    ? "Lists in a text cell are not parsed: separate the labels of a cell with a delimiter, or use JSON lines with lists."
    : isTable ? `They are split at “${fields.delimiter}”; if these are several labels, choose “${name}” as the separator.` : `If these are several labels, put them into a list in the file.`;
  $("joined-text").textContent = `${such} ${remedy}`;
  const canChoose = isTable && separator !== "[" && state.file !== null;
  $("use-separator").hidden = !canChoose;
  $("use-separator").textContent = `separate labels at “${name}”`;
}
$("use-separator").addEventListener("click", () => {
  $("delimiter").value = state.data.joined.separator;
  upload(state.file);
});

const FIELDS = ["text-field", "labels-field", "delimiter"];

// The file is kept, so that it can be read again with other fields.
async function upload(file) {
  state.file = file;
  $("kept").hidden = false;
  $("kept-name").textContent = file.name;
  for (const id of FIELDS) $(id).removeAttribute("aria-invalid");
  if (file.size > state.limits.upload_bytes) {
    $("data-error").textContent = `${file.name} is too large; the limit is ${number(state.limits.upload_bytes / 1048576)} MB.`;
    return;
  }
  say(`reading ${file.name} …`);
  const fields = { name: file.name, text_field: $("text-field").value, labels_field: $("labels-field").value, delimiter: $("delimiter").value };
  await openFrom(`/api/datasets?${new URLSearchParams(fields)}`, { method: "POST", body: file });
  showWrongFields($("data-error").textContent);
}

function showWrongFields(error) {
  const wrong = FIELDS.filter((id) => error.includes(`${JSON.stringify($(id).value)} is missing`));
  for (const id of wrong) $(id).setAttribute("aria-invalid", "true");
  if (wrong.length) {
    $("format").open = true;
    $(wrong[0]).select(); // so that typing replaces it
  }
}

$("file").addEventListener("change", () => {
  const [file] = $("file").files;
  $("file").value = "";
  if (file) upload(file);
});
$("again").addEventListener("click", () => upload(state.file));
for (const id of FIELDS) $(id).addEventListener("change", () => {
  if (state.file && $(id).value) upload(state.file);
});
function openSample() {
  say("reading the sample …");
  Object.assign(state, { file: null });
  $("kept").hidden = true;
  openFrom("/api/sample", { method: "POST" });
}
$("sample").addEventListener("click", openSample);
$("start-sample").addEventListener("click", openSample);
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault(); // anywhere: a browser would leave the page and open the file
    $("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop" && event.dataTransfer.files.length) upload(event.dataTransfer.files[0]);
  });
}

// ---- graph ----

const showNumbers = () => latest("numbers", async () => {
  const found = await json(address("statistics", { diagnosis: false }));
  const shown = {
    "sets": number(found.n_sets),
    "distinct labels": number(found.n_labels),
    "labels per set": number(found.mean_size, 2),
    "edges": number(found.n_edges),
    "sets with an edge": share(found.n_constrained_sets, found.n_sets),
    "allowed orders (mean log2)": number(found.mean_log2_orders, 2),
    "all orders (mean log2)": number(found.mean_log2_all_orders, 2),
  };
  const ids = ["n_sets", "n_labels", "mean_size", "n_edges", "n_constrained_sets", "mean_log2_orders", "mean_log2_all_orders"];
  $("numbers").replaceChildren(...Object.entries(shown).map(([name, value], at) => {
    const pair = element("div");
    const told = element("dd", value);
    told.dataset.name = ids[at];
    told.dataset.value = found[ids[at]];
    pair.append(element("dt", name), told);
    return pair;
  }));
  showCommand();
});

const showGraph = () => latest("graph", async () => {
  const around = state.around === null ? {} : { around: state.around };
  const found = await json(address("graph", { ...around, top: innerWidth < 600 ? 16 : 30 }));
  draw($("graph"), found.svg, look);
  showCue($("graph"));
  center($("graph"));
  const what = state.around === null ? "The strongest edges" : `Neighbours of “${state.around}”`;
  $("shown").textContent = found.edges.length
    ? `${what}: ${found.labels.length} labels, ${found.edges.length} edges. Select a label to see its neighbours.`
    : `${what}: no edges at these thresholds.`;
  $("whole").hidden = state.around === null;
});

const showHelp = () => latest("help", async () => {
  $("help").classList.add("busy");
  $("measuring").hidden = false;
  try {
    const found = await json(address("statistics"));
    tellHelp(found.diagnosis, found.command);
  } finally {
    $("help").classList.remove("busy");
    $("measuring").hidden = true;
  }
});

function tellHelp(diagnosis, command) {
  $("sentence").textContent = diagnosis.sentence;
  $("sentence").dataset.verdict = diagnosis.verdict;
  const head = element("thead");
  const names = element("tr");
  names.append(...["ordering", "bits per set", "difference to random", "95 % interval"].map((name) => {
    const cell = element("th", name);
    cell.scope = "col";
    return cell;
  }));
  head.append(names);
  const rows = element("tbody");
  for (const [name, score] of Object.entries(diagnosis.scores)) {
    const row = element("tr");
    const title = element("th", name);
    title.scope = "row";
    row.append(title, ...scoreCells(score).map((text) => element("td", text)));
    rows.append(row);
  }
  $("scores").replaceChildren(...(rows.children.length ? [head, rows] : []));
  $("advice").replaceChildren(...(diagnosis.advice?.sentences ?? []).map((text) => element("li", text)));
  $("train-command").textContent = command ?? "";
  $("train-command").hidden = !command;
}

function scoreCells(score) {
  const isBase = score.difference === 0 && score.low === 0 && score.high === 0;
  const signed = (value) => `${value > 0 ? "+" : ""}${number(value, 2)}`;
  return [number(score.bits, 2), isBase ? "" : signed(score.difference), isBase ? "" : `${signed(score.low)} to ${signed(score.high)}`];
}

async function look(label) {
  state.around = label;
  Object.assign(state, { label, offset: 0 });
  $("search").value = label;
  await trying(() => Promise.all([showGraph(), showExamples()]));
  $("graph-title").scrollIntoView({ block: "nearest" });
}

for (const [slider, output] of [["pmi", "pmi-value"], ["ratio", "ratio-value"]]) {
  $(slider).addEventListener("input", () => {
    $(output).textContent = $(slider).value;
    trying(() => Promise.all([showNumbers(), showGraph(), showOrders()]));
  });
  $(slider).addEventListener("change", () => trying(showHelp));
}

$("whole").addEventListener("click", () => {
  Object.assign(state, { around: null, label: null, offset: 0 });
  $("search").value = "";
  trying(() => Promise.all([showGraph(), showExamples()]));
});
const search = () => latest("search", async () => {
  const found = await json(address("labels", { search: $("search").value, limit: 20 }));
  state.hits = found.labels.map(({ label }) => label);
  $("found").replaceChildren(...found.labels.map(({ label, count }) => {
    const option = element("option", `in ${number(count)} ${count === 1 ? "set" : "sets"}`);
    option.value = label;
    return option;
  }));
});
$("search").addEventListener("input", () => trying(search, { quiet: true }));
$("search").addEventListener("change", () => trying(async () => {
  const wanted = $("search").value;
  if (!wanted) return;
  await search();
  if (!state.hits.length) throw new Error(`no label contains “${wanted}”.`);
  await look(state.hits[0]); // the label of that name, or the most frequent one that has it in it
}, { quiet: true, at: "search-error" }));

// ---- orders ----

// The labels that were typed; a known label may hold a comma, so the server splits the text.
async function chosenSet() {
  const text = $("set").value;
  if (state.example?.labels.join(", ") === text) return state.example.labels.map((label) => ({ label, count: 1 }));
  return text.trim() ? (await json(address("typed", { text }))).labels : [];
}

function showUnknown(found) {
  const unknown = found.filter(({ count }) => !count).map(({ label }) => `“${label}”`);
  $("unknown").hidden = !unknown.length;
  $("unknown").textContent = `Unknown ${unknown.length === 1 ? "label" : "labels"}: ${unknown.join(", ")}. No set contains ${unknown.length === 1 ? "it" : "them"}, so there are no edges to ${unknown.length === 1 ? "it" : "them"}.`;
}

const showOrders = () => latest("orders", async () => {
  const chosen = await chosenSet();
  const labels = chosen.map(({ label }) => label);
  showUnknown(chosen);
  if (!labels.length) {
    $("orders").replaceChildren();
    return;
  }
  const question = { labels, min_pmi: Number($("pmi").value), min_ratio: Number($("ratio").value), n: 8 };
  const found = await json(`/api/datasets/${state.data.id}/orders`, {
    method: "POST",
    body: JSON.stringify(question),
    headers: { "Content-Type": "application/json" },
  });
  const picture = element("div", undefined, "scroll");
  draw(picture, found.svg, look);
  const told = element("p", `${found.labels.length} labels, ${found.edges.length} edges: ${countOrders(found)} As a model learns to write them:`);
  told.dataset.orders = found.n_orders ?? "";
  const list = element("ol");
  list.append(...found.completions.map((text) => {
    const item = element("li");
    item.append(element("span", text, "written"));
    return item;
  }));
  $("orders").replaceChildren(picture, told, list);
  showCue(picture);
});

function countOrders({ labels, n_orders }) {
  if (n_orders === null) return "too many orders to count.";
  const all = labels.reduce((product, _, at) => product * BigInt(at + 1), 1n);
  const allowed = BigInt(n_orders);
  return `${allowed.toLocaleString("en")} of ${all.toLocaleString("en")} orders ${allowed === 1n ? "is" : "are"} allowed.`;
}

$("set-form").addEventListener("submit", (event) => {
  event.preventDefault();
  trying(showOrders, { at: "set-error" });
});

// ---- examples ----

const showExamples = () => latest("examples", async () => {
  const filter = state.label === null ? {} : { label: state.label };
  const found = await json(address("examples", { ...filter, offset: state.offset, limit: PAGE }));
  const which = state.label === null ? "" : ` with the label “${state.label}”`;
  const last = Math.min(state.offset + PAGE, found.n);
  $("examples-about").textContent = found.n ? `${number(state.offset + 1)} to ${number(last)} of ${number(found.n)}${which}. Select one to see its orders.` : `none${which}`;
  $("examples").replaceChildren(...found.examples.map((example) => {
    const item = element("li");
    const button = element("button");
    button.type = "button";
    const chips = example.labels.length ? example.labels.map((label) => element("span", label, "chip")) : [element("em", "no labels")];
    button.append(element("span", example.text), element("br"), ...chips);
    button.addEventListener("click", () => {
      state.example = example;
      $("set").value = example.labels.join(", ");
      trying(showOrders, { at: "set-error" });
      $("set").scrollIntoView({ block: "center" });
    });
    item.append(button);
    return item;
  }));
  $("earlier").disabled = state.offset === 0;
  $("later").disabled = last >= found.n;
});

for (const [id, step] of [["earlier", -PAGE], ["later", PAGE]]) {
  $(id).addEventListener("click", () => {
    state.offset = Math.max(0, state.offset + step);
    trying(showExamples);
  });
}

// ---- pairs ----

function pairSettings() {
  const form = $("pairs").elements;
  return { orders: form.orders.value, ordering: form.ordering.value, format: form.format.value, seed: form.seed.value, size: form.size.checked };
}

const USUAL = {
  "text-field": "text", "labels-field": "labels", delimiter: ";",
  orders: "2", ordering: "topological", format: "prompt-completion", seed: "0", "min-pmi": "1", "min-ratio": "3",
};
const quoted = (text) => (/^[\w.,:@%+/=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

function showCommand() {
  const { size, ...settings } = pairSettings();
  const chosen = { ...state.data.fields, ...settings, "min-pmi": $("pmi").value, "min-ratio": $("ratio").value };
  const options = Object.keys(USUAL).filter((name) => chosen[name] !== USUAL[name]).map((name) => `--${name} ${quoted(chosen[name])}`);
  $("augment-command").textContent = ["setaug augment", quoted(state.data.name), "-o pairs.jsonl", ...options, ...(size ? [] : ["--no-size"])].join(" ");
}

$("pairs").addEventListener("input", showCommand);
$("pairs").addEventListener("submit", (event) => {
  event.preventDefault();
  trying(async () => {
    const response = await ask(address("augment", pairSettings()));
    const link = element("a");
    link.href = URL.createObjectURL(await response.blob());
    link.download = "pairs.jsonl";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }, { at: "pairs-error" });
});

// ---- model ----

const predict = (options) => json("/api/predict", {
  method: "POST",
  body: JSON.stringify({ texts: [$("text").value], ...options }),
  headers: { "Content-Type": "application/json" },
});

// A bar per share; all but the first ones are folded.
function bars(shares, taken) {
  const all = Object.entries(shares);
  const made = [chart(all.slice(0, BARS), taken)];
  if (all.length > BARS) {
    const rest = element("details");
    rest.append(element("summary", `${number(all.length - BARS)} more`), chart(all.slice(BARS), taken));
    made.push(rest);
  }
  return made;
}

function chart(shares, taken) {
  const made = element("div", undefined, "bars");
  for (const [name, value] of shares) {
    const bar = element("div", undefined, "bar");
    const filled = element("span");
    filled.style.width = `${100 * value}%`;
    bar.append(filled);
    const title = element("span", taken.has(name) ? `✓ ${name}` : name, taken.has(name) ? "taken" : "");
    made.append(title, bar, element("span", `${number(100 * value)} %`, "share"));
  }
  return made;
}

function way(title, prediction) {
  const part = element("div");
  part.append(element("h3", title), ...prediction.labels.map((label) => element("span", label, "chip")));
  if (!prediction.labels.length) part.append(element("p", "the empty set"));
  if (prediction.generation !== undefined) part.append(element("p", prediction.generation, "written"));
  const flaws = ["repeated", "unknown", "malformed"].filter((flaw) => prediction[flaw]?.length).map((flaw) => `${flaw}: ${prediction[flaw].join(", ")}`);
  if (flaws.length) part.append(element("p", flaws.join("; ")));
  return part;
}

$("predict").addEventListener("submit", (event) => {
  event.preventDefault();
  trying(async () => {
    $("prediction").classList.add("busy");
    say("predicting …");
    try {
      const ways = element("div", undefined, "ways");
      const writes = state.model.kind === "generator";
      const asked = writes ? [predict({ constrained: false }), predict({}), predict({ samples: 16 })] : [predict({})];
      const found = (await Promise.all(asked)).map((answer) => answer.predictions[0]);
      const titles = writes ? ["free text, greedy", "with the set constraint", "16 samples, highest expected F1"] : ["the set"];
      ways.append(...titles.map((title, at) => way(title, found[at])));
      const vote = found.at(-1);
      const made = [ways];
      if (vote.probabilities) made.push(element("h3", "Probability of each label"), ...bars(vote.probabilities, new Set(vote.labels)));
      if (vote.sizes) made.push(element("h3", "Number of labels"), ...bars(vote.sizes, new Set([String(vote.labels.length)])));
      $("prediction").replaceChildren(...made);
    } finally {
      $("prediction").classList.remove("busy");
    }
  }, { at: "predict-error" });
});

// ---- start ----

$("key").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("setaug-key", $("key-value").value);
  $("key").hidden = true;
  start();
});

const start = () => trying(async () => {
  const health = await json("/api/health");
  say("");
  state.model = health.model;
  state.limits = health.limits;
  for (const [name, values] of Object.entries(health.choices)) {
    $("pairs").elements[name].replaceChildren(...values.map((value) => new Option(value)));
  }
  $("model").hidden = health.model === null;
  $("model-name").textContent = health.model === null ? "" : `Model: ${health.model.name} (${health.model.kind})`;
  $("intro").hidden = health.model !== null || health.dataset !== null || state.data !== null;
  if (health.dataset !== null) await open(health.dataset);
}, { quiet: true });

start();
