// The JupyterLab and Notebook extension: a saved run opens as the full inspector without a kernel, and %%agent cells look like prose.
//
// Written by hand and shipped as it is: no bundler, nothing to build. JupyterLab loads it as a module federation container, that is
// an object with init(shared modules) and get(name). inspector.js and inspector.css are the same files that the live widget uses;
// they lie beside this one when it is installed. Whatever a host changes, only comfort may be lost: a module that is not there any
// more, a file that does not load or a state that cannot be drawn leaves the HTML that was saved beside it.
(() => {
  const NAME = "nb-agent";
  const MIME = "application/vnd.nb-agent.run+json";
  const VERSION = 1; // of the state, see views/fold.py
  const MOST = 200e6; // bytes of an unpacked run: an untrusted notebook must not fill the memory of the page
  const here = new URL(".", document.currentScript.src);
  let scope = {};

  /** A module that the host shares: the version that it runs itself, where there are several. */
  async function shared(name) {
    const versions = Object.values(scope[name] ?? {});
    const found = versions.find((version) => version.loaded) ?? versions.at(-1);
    if (!found) throw new Error(`the host does not share ${name}`);
    return (await found.get())();
  }

  // ---------------------------------------------------------------------------------------------- saved runs

  async function unzipped(text) {
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
    const parts = [];
    let size = 0;
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      size += part.value.length;
      if (size > MOST) throw new Error("the saved run is too large to be opened");
      parts.push(part.value);
    }
    return new Blob(parts).text();
  }

  /** The run's state from its saved form, see views/saved.py. */
  async function opened(saved) {
    if (saved.version !== VERSION) throw new Error(`the saved run has version ${saved.version}, and ${VERSION} is known here`);
    const state = saved.gzip ? JSON.parse(await unzipped(saved.gzip)) : saved;
    const branches = (state.branches ?? []).map(({ kept = 0, ...branch }) => {
      const rounds = [...state.rounds.slice(0, kept), ...branch.state.rounds];
      return { ...branch, state: { ...branch.state, rounds } };
    });
    return { ...state, branches };
  }

  async function saved() {
    const { Widget } = await shared("@lumino/widgets");
    const { mount } = await import(new URL("inspector.js", here));
    const look = Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL("inspector.css", here) });
    await new Promise((done, failed) => {
      look.onload = done;
      look.onerror = () => failed(new Error("inspector.css did not load"));
      document.head.append(look);
    });

    class Run extends Widget {
      #sanitizer;
      #shown = null;
      #turn = 0; // a newer state may come while an older one is still being unpacked

      constructor({ sanitizer }) {
        super();
        this.#sanitizer = sanitizer;
      }

      async renderModel({ data }) {
        this.#turn += 1;
        const turn = this.#turn;
        try {
          const state = await opened(data[MIME]);
          if (turn !== this.#turn || this.isDisposed) return;
          this.#clear();
          this.#shown = mount(this.node, state);
        } catch (error) {
          if (turn !== this.#turn || this.isDisposed) return;
          console.warn(`${NAME}: the saved HTML is shown, since the inspector could not be: ${error.message}`);
          this.#clear();
          this.#plain(data);
        }
      }

      #clear() {
        this.#shown?.destroy();
        this.#shown = null;
        this.node.replaceChildren();
      }

      /** What JupyterLab would show without this extension. It is cleaned even where the notebook is trusted. */
      #plain(data) {
        const words = (kind) => [data[kind] ?? ""].flat().join("");
        if (this.#sanitizer && data["text/html"]) {
          this.node.classList.add("jp-RenderedHTMLCommon");
          this.node.innerHTML = this.#sanitizer.sanitize(words("text/html"));
        } else {
          this.node.append(Object.assign(document.createElement("pre"), { textContent: words("text/plain") }));
        }
      }

      dispose() {
        this.#clear();
        super.dispose();
      }
    }

    const rendererFactory = { safe: true, mimeTypes: [MIME], createRenderer: (options) => new Run(options ?? {}) };
    return [{ id: `${NAME}:saved`, rendererFactory, rank: 0, dataType: "json" }];
  }

  // ---------------------------------------------------------------------------------------------- cells as prose

  const PROSE = `
.nba-prose .cm-line:not(.nba-prose-magic) { font-family: var(--jp-content-font-family); }
.nba-prose .cm-line:not(.nba-prose-magic) span:not([class*="nba-prose"]) { color: inherit !important; font-weight: inherit !important;
  font-style: inherit !important; text-decoration: none !important; }
.nba-prose .nba-prose-head, .nba-prose .nba-prose-strong { font-weight: 700; }
.nba-prose .nba-prose-code { font-family: var(--jp-code-font-family); font-size: 0.95em; }
`;
  const MARKS = [
    [/^#{1,6} .*$/g, "nba-prose-head"],
    [/\*\*[^*\n]+\*\*/g, "nba-prose-strong"],
    [/`[^`\n]+`/g, "nba-prose-code"],
  ];

  /** The number of the line with %%agent, or 0: IPython leaves out empty lines before a magic. */
  function magicLine(doc) {
    for (let number = 1; number <= doc.lines; number += 1) {
      const { text } = doc.line(number);
      if (/^%%agent(\s|$)/.test(text)) return number;
      if (text.trim()) return 0;
    }
    return 0;
  }

  async function prose() {
    const { EditorExtensionRegistry, IEditorExtensionRegistry } = await shared("@jupyterlab/codemirror");
    const { Decoration, EditorView, ViewPlugin } = await shared("@codemirror/view");

    function drawn({ state: { doc } }) {
      const magic = magicLine(doc);
      const found = magic ? [Decoration.line({ class: "nba-prose-magic" }).range(doc.line(magic).from)] : [];
      for (let number = magic + 1; magic && number <= doc.lines; number += 1) {
        const { from, text } = doc.line(number);
        for (const [pattern, name] of MARKS) {
          for (const { 0: words, index } of text.matchAll(pattern)) {
            found.push(Decoration.mark({ class: name }).range(from + index, from + index + words.length));
          }
        }
      }
      return Decoration.set(found, true);
    }

    class Marks {
      constructor(view) {
        this.decorations = drawn(view);
      }

      update({ docChanged, view }) {
        if (docChanged) this.decorations = drawn(view);
      }
    }

    const only = (name) => ({ doc }) => (magicLine(doc) ? { class: name } : {});
    const extension = [
      EditorView.editorAttributes.compute(["doc"], only("nba-prose")),
      EditorView.contentAttributes.compute(["doc"], only("cm-lineWrapping")),
      ViewPlugin.fromClass(Marks, { decorations: (marks) => marks.decorations }),
    ];
    const factory = () => EditorExtensionRegistry.createImmutableExtension(extension);
    document.head.append(Object.assign(document.createElement("style"), { textContent: PROSE }));
    const activate = (app, registry) => registry.addExtension(Object.freeze({ name: `${NAME}:prose`, factory }));
    return [{ id: `${NAME}:prose`, autoStart: true, requires: [IEditorExtensionRegistry], activate }];
  }

  // ---------------------------------------------------------------------------------------------- the container

  const parts = { "./saved": saved, "./prose": prose };

  async function get(name) {
    let plugins = [];
    try {
      plugins = await parts[name]();
    } catch (error) {
      console.warn(`${NAME}: ${name.slice(2)} is not available in this JupyterLab: ${error.message}`);
    }
    return () => ({ __esModule: true, default: plugins });
  }

  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB[NAME] = { init: (given) => (scope = given), get };
})();
