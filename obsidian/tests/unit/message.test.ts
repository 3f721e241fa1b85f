import { Component, type App } from "obsidian";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { MarkdownMessage } from "../../src/views/markdown-message";

let parent: HTMLElement;

beforeEach(() => {
  activeDocument.body.empty();
  parent = activeDocument.body.createDiv();
});

function start() {
  const opened: unknown[] = [];
  const notes = new Set(["Note", "Two words"]);
  const app = {
    metadataCache: { getFirstLinkpathDest: (link: string) => (notes.has(link) ? { path: `Folder/${link}.md` } : null) },
    vault: { getFileByPath: (path: string) => (path === "a b.md" ? { path } : null) },
    workspace: { openLinkText: (link: string) => opened.push(link), getLeaf: () => ({ openFile: (_: unknown, state: unknown) => opened.push(state) }) },
  } as unknown as App;
  const component = new Component();
  const living = new Set<Component>();
  const [add, remove] = [component.addChild.bind(component), component.removeChild.bind(component)];
  component.addChild = (child) => {
    living.add(child);
    return add(child);
  };
  component.removeChild = (child) => {
    living.delete(child);
    return remove(child);
  };
  return { message: new MarkdownMessage(parent, { app, component }), living, opened, notes };
}

describe("a message", () => {
  it("grows by its last block, and is drawn as a whole at the end", async () => {
    const { message, living } = start();
    message.show("First *one*.\n\nSec", false);
    await vi.waitFor(() => expect(parent.textContent).toContain("Sec"));
    const first = parent.querySelector("p");
    for (const [text, end] of [["First *one*.\n\nSecond", "Second"], ["First *one*.\n\nSecond.\n\n- th", "th"], ["First *one*.\n\nSecond.\n\n- third", "third"]] as const) {
      message.show(text, false);
      await vi.waitFor(() => expect(parent.textContent).toContain(end));
    }
    expect(first?.isConnected).toBe(true);
    message.show("First *one*.\n\nSecond.\n\n- third\n\n- fourth", true);
    await vi.waitFor(() => expect(parent.textContent).toContain("fourth"));
    expect(parent.querySelectorAll("ul")).toHaveLength(1);
    expect([parent.querySelectorAll("li").length, parent.querySelector("em")?.textContent, living.size]).toEqual([2, "one", 1]);
  });

  it("has links to places, notes and the web, and no others", async () => {
    const { message, opened } = start();
    message.show("See [a b.md:3], [gone.md:4], `a b.md:5`, [[Note]], [web](https://x.test/y), [bad](javascript:alert(1)), [app](obsidian://run).", true);
    await vi.waitFor(() => expect(parent.textContent).toContain("See"));
    expect([...parent.querySelectorAll("a")].map((link) => link.textContent)).toEqual(["a b:3", "a b.md:5", "Note", "web"]);
    expect(parent.textContent?.trim()).toBe("See [a b:3], [gone:4], a b.md:5, Note, web (x.test), bad, app.");
    for (const link of [...parent.querySelectorAll("a")].slice(0, 3)) link.click();
    expect(opened).toEqual([{ active: true, eState: { line: 2 } }, { active: true, eState: { line: 4 } }, "Folder/Note.md"]);
  });

  it("opens notes that are there, at their headings, and creates none", async () => {
    const { message, opened, notes } = start();
    message.show("[[Note#Part one]], [[Missing]], [[Note]], [[#Here]], [[Two%20words#A%20b]]", true);
    await vi.waitFor(() => expect(parent.textContent).toContain("Missing"));
    const links = [...parent.querySelectorAll("a")];
    expect(links.map((link) => link.textContent)).toEqual(["Note#Part one", "Note", "Two%20words#A%20b"]);
    links[0]?.click();
    notes.delete("Note");
    links[1]?.click();
    links[2]?.click();
    expect(opened).toEqual(["Folder/Note.md#Part one", "Folder/Two words.md#A b"]);
    expect(activeDocument.body.textContent).toContain("Note is not in this vault any more.");
  });

  it.each([
    ["[https://bank.test/login?from=evil.test](https://evil.test/x)", "https://bank.test/login?from=evil.test (evil.test)", "https://evil.test/x"],
    ["[https://bank.test](https:evil.test)", "https://bank.test (evil.test)", "https://evil.test/"],
    ["<https://bank.test@evil.test>", "https://bank.test@evil.test (evil.test)", "https://evil.test/"],
    ["[evil.test/bank.test](https://bank.test:8080@evil.test/)", "evil.test/bank.test (evil.test)", "https://evil.test/"],
    ["[bank.test](https://bank.test.evil.test)", "bank.test (bank.test.evil.test)", "https://bank.test.evil.test/"],
    ["[bank.test](https://b\u0430nk.test)", "bank.test (xn--bnk-6cd.test)", "https://xn--bnk-6cd.test/"],
    ["[bank.test](HTTPS:/evil.test)", "bank.test (evil.test)", "https://evil.test/"],
    ["[help@bank.test](mailto:x@evil.test)", "help@bank.test (x@evil.test)", "mailto:x@evil.test"],
    ["[good.test](https://good.test/a?b)", "good.test", "https://good.test/a?b"],
    ["[https://good.test](https://good.test)", "https://good.test", "https://good.test/"],
    ["[https://good.test/a](https://good.test/a)", "https://good.test/a", "https://good.test/a"],
  ])("shows the host that a link leads to: %s", async (markdown, text, href) => {
    const { message } = start();
    message.show(`See ${markdown.startsWith("<") ? `[${markdown.slice(1, -1)}](${markdown.slice(1, -1)})` : markdown}`, true);
    await vi.waitFor(() => expect(parent.querySelector("a")).not.toBeNull());
    expect(parent.textContent?.trim()).toBe(`See ${text}`);
    expect(parent.querySelector("a")?.getAttribute("href")).toBe(href);
  });

  it("puts code back as text and lets nothing act", async () => {
    const { message } = start();
    message.show('```dataviewjs\n<b>x</b>\n```\n\n`$= y` <img src=x onerror=z> ![p](https://x.test/p.png)', true);
    await vi.waitFor(() => expect(parent.querySelector("pre")?.textContent).toContain("<b>x</b>"));
    expect((window as { hacked?: unknown }).hacked).toBeUndefined();
    expect(parent.querySelectorAll("img, b, button, script")).toHaveLength(0);
    expect(parent.textContent).toContain("$= y <img src=x onerror=z> !p");
  });
});
