"use strict";
// What a report can do beyond being read: light up a name wherever it stands, go through the derivation with keys, and choose settings.
(() => {
  const page = document;
  const read = (id) => { const e = page.getElementById(id); return e ? e.textContent : ""; };

  // ---- names ----
  let lit = [];
  const light = (target) => {
    for (const e of lit) e.classList.remove("lit");
    lit = [];
    const named = target && target.closest && target.closest("[data-axis],[data-array],[data-statement]");
    if (!named) return;
    for (const key of ["axis", "array", "statement"]) {
      const name = named.dataset[key];
      if (name === undefined) continue;
      // A statement and the array that it makes have one name.
      const keys = key === "axis" ? ["axis"] : ["array", "statement"];
      for (const k of keys) lit.push(...page.querySelectorAll(`[data-${k}="${CSS.escape(name)}"]`));
    }
    for (const e of lit) e.classList.add("lit");
  };
  page.addEventListener("pointerover", (event) => light(event.target));
  page.addEventListener("focusin", (event) => light(event.target));

  // ---- the derivation ----
  const steps = [...page.querySelectorAll(".step")];
  let current = 0;
  const show = (index) => {
    if (index < 0 || index >= steps.length) return;
    steps[current].open = false;
    current = index;
    steps[current].open = true;
    steps[current].querySelector("summary").focus({ preventScroll: true });
    steps[current].scrollIntoView({ block: "nearest" });
  };
  page.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input,select,pre,.wide")) return;
    if (event.key === "ArrowRight") show(current + 1);
    else if (event.key === "ArrowLeft") show(current - 1);
    else return;
    event.preventDefault();
  });

  // A link to a line opens what the line is in.
  const reveal = () => {
    const line = location.hash.length > 1 && page.getElementById(location.hash.slice(1));
    const closed = line && line.closest("details:not([open])");
    if (closed) { closed.open = true; line.scrollIntoView(); }
  };
  addEventListener("hashchange", reveal);
  reveal();

  // ---- settings ----
  const controls = page.getElementById("controls");
  const state = page.getElementById("state");
  const first = JSON.parse(read("request"));
  const say = (text) => { state.textContent = text; };
  // What is open stays open.
  const fill = (part, html) => {
    const opened = new Map([...part.querySelectorAll("details[id]")].map((e) => [e.id, e.open]));
    part.innerHTML = html;
    for (const e of part.querySelectorAll("details[id]")) if (opened.has(e.id)) e.open = opened.get(e.id);
  };
  const put = (answer) => {
    if (answer.errors) { say(answer.errors.join("; ")); stale(true); return; }
    for (const [id, html] of Object.entries(answer.fragments)) {
      const part = page.getElementById(id);
      if (!part) continue;
      fill(part, html);
      live.add(id);
    }
    window.napkin.figures = answer.figures;
    stale(false);
    say("");
  };
  // Parts that follow the setting. What does not says which one it is of, where another is chosen.
  const live = new Set(["summary"]);
  const stale = (on) => { for (const id of live) page.getElementById(id).classList.toggle("stale", on); };
  const fixed = (is_another, setting) => {
    for (const e of page.querySelectorAll(".fixed")) e.hidden = !is_another || live.has(e.nextElementSibling && e.nextElementSibling.id);
    const words = (kind, option) => Object.entries((setting || {})[kind] || {}).map(([axis, n]) => ` --${option} ${axis}=${n}`).join("");
    for (const e of page.querySelectorAll(".command")) {
      // What is of letters takes neither a machine nor tiles.
      const ofMachine = setting && !("letters" in e.dataset) ? " --machine " + setting.machine : "";
      e.textContent = setting ? e.dataset.command + ofMachine + words("sizes", "set") + (ofMachine && words("group", "group")) + words("stream", "stream") : "";
      e.parentElement.hidden = !setting;
    }
  };
  window.napkin = { figures: JSON.parse(read("figures")), ready: false, live };

  // The core as WebAssembly: it asks its surroundings for nothing but to write, which nobody reads, and to end.
  const load = async (base64) => {
    const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const module = await WebAssembly.compile(await new Response(stream).arrayBuffer());
    const imports = {};
    for (const i of WebAssembly.Module.imports(module)) (imports[i.module] ||= {})[i.name] = () => (i.name === "fd_write" ? 8 : 52);
    let memory;
    const none = (where, bytes) => { new DataView(memory.buffer).setUint32(where, 0, true); new DataView(memory.buffer).setUint32(bytes, 0, true); return 0; };
    const wasi = imports.wasi_snapshot_preview1 || {};
    if (wasi.environ_sizes_get) wasi.environ_sizes_get = none;
    if (wasi.environ_get) wasi.environ_get = () => 0;
    if (imports.env && imports.env.emscripten_notify_memory_growth) imports.env.emscripten_notify_memory_growth = () => {};
    const core = (await WebAssembly.instantiate(module, imports)).exports;
    memory = core.memory;
    if (core._initialize) core._initialize();
    const call = (what) => (request) => {
      const text = new TextEncoder().encode(JSON.stringify(request) + "\0");
      const at = core.napkin_allocate(text.length);
      new Uint8Array(memory.buffer).set(text, at);
      const answer = what(at);
      core.napkin_free(at);
      const bytes = new Uint8Array(memory.buffer, answer);
      return JSON.parse(new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0))));
    };
    return call(core.napkin_figures);
  };

  const inputs = [...controls.querySelectorAll("input[type=range]")];
  const machine = page.getElementById("machine");
  const value = (input) => Number(input.dataset.values.split(" ")[Number(input.value)]);
  const request = () => {
    const out = { ...first, sizes: { ...first.sizes }, group: { ...first.group }, stream: { ...first.stream }, warpgroup: { ...first.warpgroup } };
    if (machine.value !== first.machine) { out.machine = machine.value; out.machine_text = ""; }
    for (const input of inputs) {
      if (input.value === input.defaultValue) continue;
      const n = value(input);
      // 0: left to the model, or to the schedule.
      if (n > 0) out[input.dataset.kind][input.dataset.of] = n;
      else delete out[input.dataset.kind][input.dataset.of];
    }
    return out;
  };
  const label = (input) => { input.nextElementSibling.textContent = value(input) > 0 ? String(value(input)) : "as given"; input.setAttribute("aria-valuetext", input.nextElementSibling.textContent); };

  const setting = page.getElementById("setting");
  // The plan of the page's own setting is the page's, which the assembler's report has been asked for.
  const planned = page.querySelector(".planned");
  const parts = ["heading", "summary", "numbers", "plan-content", "steps", "roofline", "tiles", "machine-chart", "step-pictures"];
  const own = { figures: window.napkin.figures, fragments: {} };
  for (const id of parts) if (page.getElementById(id)) own.fragments[id] = page.getElementById(id).innerHTML;
  // Controls work at once. What is chosen before the core is there waits for it. A plan takes a while, so that the setting must stay for a moment.
  const follow = (loading) => {
    let due = 0;
    const change = () => {
      for (const input of inputs) label(input);
      clearTimeout(due);
      stale(true);
      due = setTimeout(async () => {
        const mine = due;
        const core = await loading;
        if (mine !== due) return;
        const began = performance.now();
        const asked = request();
        const isOwn = !inputs.some((i) => i.value !== i.defaultValue) && machine.value === first.machine;
        put(isOwn ? own : core(asked));
        fixed(!isOwn, asked);
        planned.hidden = isOwn;
        window.napkin.milliseconds = performance.now() - began;
        window.napkin.changes = (window.napkin.changes || 0) + 1;
      }, 150);
    };
    for (const input of [...inputs, machine]) input.addEventListener("input", change);
    for (const input of inputs) label(input);
  };
  const fromGrid = () => {
    for (const e of controls.querySelectorAll(".live")) e.hidden = true;
    const answers = JSON.parse(read("answers") || "[]");
    // What an answer does not say is as in the page's own setting, the first.
    const whole = (answer) => answer.errors ? answer : { ...answer, fragments: { ...answers[0].fragments, ...answer.fragments } };
    setting.parentElement.hidden = false;
    setting.addEventListener("input", () => { put(whole(answers[Number(setting.value)])); fixed(setting.value !== "0"); window.napkin.changes = (window.napkin.changes || 0) + 1; });
  };
  const packed = read("core");
  const cannot = (why) => {
    for (const e of controls.querySelectorAll(".live")) e.disabled = true;
    say("Settings cannot be chosen here: the core does not run in this browser (" + why + ").");
  };
  controls.hidden = false;
  if (!packed) {
    fromGrid();
    window.napkin.ready = "grid";
  } else if (!("WebAssembly" in window) || !("DecompressionStream" in window)) {
    cannot("it has no " + ("WebAssembly" in window ? "DecompressionStream" : "WebAssembly"));
  } else {
    window.napkin.ready = "controls";
    for (const id of Object.keys(own.fragments)) live.add(id);
    // After the page is shown: what the core takes to start, nobody waits for.
    const loading = new Promise((done) => requestAnimationFrame(() => setTimeout(done))).then(() => load(packed.trim()));
    loading.then(() => { window.napkin.ready = "core"; }, (error) => cannot(error.message));
    follow(loading);
  }
})();
