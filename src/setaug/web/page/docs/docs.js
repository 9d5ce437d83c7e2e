// The API as a page, made from its OpenAPI description.
const METHODS = ["get", "post", "put", "patch", "delete"];

function element(kind, ...content) {
  const made = document.createElement(kind);
  made.append(...content);
  return made;
}

const classed = (name, made) => {
  made.className = name;
  return made;
};

const resolve = (schema, api) => {
  const name = schema?.$ref?.split("/").at(-1);
  return name ? api.components.schemas[name] : schema ?? {};
};

// The type of a value in a few words: "list of string", "number, at least 1".
function typeOf(schema, api) {
  const found = resolve(schema, api);
  if (found.anyOf) return found.anyOf.map((one) => typeOf(one, api)).join(" or ");
  if (found.enum) return found.enum.map((value) => JSON.stringify(value)).join(", ");
  if (found.type === "array") return `list of ${typeOf(found.items, api)}`;
  const bounds = [["minimum", "at least"], ["maximum", "at most"]].filter(([name]) => name in found).map(([name, words]) => `${words} ${found[name]}`);
  return [found.type ?? "any value", ...bounds].join(", ");
}

// Text in which code stands between double backticks.
const prose = (text) => text.split("``").map((part, at) => (at % 2 ? element("code", part) : part));

// Rows of texts; a column without any is left out.
function table(rows) {
  const columns = ["name", "type", "default", "meaning"].map((name, at) => [name, at]).filter(([, at]) => rows.some((row) => row[at]));
  const head = element("tr", ...columns.map(([name]) => Object.assign(element("th", name), { scope: "col" })));
  const body = rows.map((row) => element("tr", ...columns.map(([, at]) => (at ? element("td", ...prose(row[at])) : Object.assign(element("th", element("code", row[at])), { scope: "row" })))));
  return classed("scroll", element("div", element("table", element("thead", head), element("tbody", ...body))));
}

function fields(schema, api) {
  const found = resolve(schema, api);
  return Object.entries(found.properties ?? {}).map(([name, one]) => {
    const isRequired = found.required?.includes(name) && !("default" in one);
    return [name, typeOf(one, api), isRequired ? "required" : "default" in one ? JSON.stringify(one.default) : "", one.description ?? resolve(one, api).description ?? ""];
  });
}

const parameters = (operation, api) => (operation.parameters ?? []).map(({ name, required, schema, description }) => [
  name, typeOf(schema, api), required ? "required" : "default" in schema ? JSON.stringify(schema.default) : "", description ?? schema.description ?? "",
]);

// An example value of a body: its required fields.
function sampleOf(schema, api) {
  const found = resolve(schema, api);
  if (found.type === "object") return Object.fromEntries((found.required ?? []).map((name) => [name, sampleOf(found.properties[name], api)]));
  if (found.type === "array") return [sampleOf(found.items, api)];
  return { string: "...", integer: 0, number: 0, boolean: true }[found.type] ?? null;
}

function command(path, method, operation, api) {
  const content = operation.requestBody?.content ?? {};
  const asked = `${location.origin}${path.replaceAll(/\{(\w+)\}/g, (_, name) => name.toUpperCase())}`;
  const key = api.components?.securitySchemes ? ` -H "Authorization: Bearer $SETAUG_API_KEY"` : "";
  if (content["application/json"]) {
    return `curl -s '${asked}'${key} -H 'Content-Type: application/json' -d '${JSON.stringify(sampleOf(content["application/json"].schema, api))}'`;
  }
  if (Object.keys(content).length) return `curl -s '${asked}?name=train.csv'${key} --data-binary @train.csv`;
  return `curl -s${method === "get" ? "" : ` -X ${method.toUpperCase()}`} '${asked}'${key}`;
}

function described(path, method, operation, api) {
  const body = operation.requestBody?.content ?? {};
  const given = parameters(operation, api);
  const parts = [element("pre", element("code", command(path, method, operation, api)))];
  if (given.length) parts.push(element("h3", "Parameters"), table(given));
  if (body["application/json"]) parts.push(element("h3", "Body, as JSON"), table(fields(body["application/json"].schema, api)));
  else if (Object.keys(body).length) parts.push(element("h3", "Body"), element("p", "The raw file."));
  const [status, good] = Object.entries(operation.responses).find(([code]) => code.startsWith("2"));
  const answer = fields(good.content?.["application/json"]?.schema, api).map(([name, type, , meaning]) => [name, type, "", meaning]);
  parts.push(element("h3", `Answer, ${status}`), answer.length ? table(answer) : element("p", good.description));
  const refusals = Object.keys(operation.responses).filter((code) => !code.startsWith("2"));
  if (refusals.length) parts.push(element("p", `Refused with ${refusals.join(", ")}.`));
  const details = element("details", element("summary", classed("method", element("span", method.toUpperCase())), " ", classed("path", element("code", path))), element("div", ...parts));
  return element("section", element("p", ...prose(operation.description ?? operation.summary ?? "")), details);
}

const place = document.getElementById("api");
try {
  const api = await (await fetch("/openapi.json")).json();
  place.replaceChildren(...Object.entries(api.paths).flatMap(([path, operations]) =>
    METHODS.filter((method) => method in operations).map((method) => described(path, method, operations[method], api))));
} catch {
  place.replaceChildren(element("p", "The API description could not be loaded; reload the page."));
}
