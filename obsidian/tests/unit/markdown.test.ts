import { describe, expect, it } from "vitest";
import { completeUpTo, guard, placeIn, sourcesIn } from "../../src/conversation/markdown";

const NONCE = "vaqqqq";
const of = (source: string) => guard(source, NONCE);
const code = (source: string) => of(source).pieces.flatMap((piece) => (piece.kind === "code" ? [piece.text] : []));

describe("guard", () => {
  it("leaves prose, lists, tables and links as they are", () => {
    for (const text of ["# Title", "- a\n- b", "> quote", "| a | b |\n| - | - |", "[[Note|name]] and [web](https://x.test)", "**b** _i_ ~~gone~~ 100 %"]) {
      expect(of(text).markdown).toBe(text);
    }
  });

  it("makes HTML, embeds, math and comments text", () => {
    expect(of('<img src=x> ![a](b) ![[c]] $x$ %%d%%').markdown).toBe("&lt;img src=x> &#33;[a](b) &#33;[[c]] &#36;x&#36; &#37;%d&#37;%");
    // A backslash before it hides nothing: `\&#33;` is text, and the link after it stays a link.
    expect(of("\\![a](b)").markdown).toBe("\\&#33;[a](b)");
    expect(of("---\na: 1\n---").markdown).toBe("***\na: 1\n---");
  });

  it("takes code out, whatever it is fenced with and wherever it stands", () => {
    expect(code("```js\na\n```")).toEqual(["a"]);
    expect(code("~~~~dataviewjs\n~~~\nb\n~~~~")).toEqual(["~~~\nb"]);
    expect(code("- item\n  ```dataviewjs\n  c\n  ```\n")).toEqual(["c"]);
    expect(code("1. > ~~~dataviewjs\n   > d\n   > ~~~")).toEqual(["d"]);
    expect(code("text\n\n    e\n    f\n\nmore")).toEqual(["e\nf"]);
    expect(code("```\nnever closed")).toEqual(["never closed"]);
    expect(code("`$= g` and ``h ` i`` and ` `` `")).toEqual(["$= g", "h ` i", "``"]);
    for (const source of ["```dataviewjs\nx\n```", "`$= x`", "> - ```dataviewjs\n>   x\n>   ```"]) {
      expect(of(source).markdown).not.toMatch(/dataview|\$=|\bx\b/);
    }
  });

  it("leaves no mark that could begin code", () => {
    const parts = ["`", "``", "```", "~~~", "\n", " ", "    ", "- ", "> ", "1. ", "\\", "a", "$= x", "dataviewjs", "\t", "<b>", "!["];
    let seed = 7;
    const next = () => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648);
    for (let round = 0; round < 3_000; round++) {
      const text = Array.from({ length: 1 + (next() % 12) }, () => parts[next() % parts.length]).join("");
      const { markdown } = of(text);
      // What is left of the marks are those around placeholders.
      const left = markdown.replaceAll(new RegExp(`\`${NONCE}\\d+x\``, "g"), "").replaceAll(new RegExp(`\`\`\`\\n[ \\t>]*${NONCE}\\d+x\\n[ \\t>]*\`\`\``, "g"), "");
      expect(left, JSON.stringify(text)).not.toMatch(/`|~~~|<|!\[/);
    }
  });

  it("takes places out, and not what only looks like one", () => {
    const { markdown, pieces } = of("It is so [Garden/Compost.md:19]. Or [a_b.md:1-3; c d.md:7], not [x](y.md:2) nor [12:30].");
    expect(markdown).toBe(`It is so ${NONCE}0x. Or ${NONCE}1x, not [x](y.md:2) nor [12:30].`);
    expect(pieces).toEqual([
      { kind: "sources", sources: [{ path: "Garden/Compost.md", line: 19 }] },
      { kind: "sources", sources: [{ path: "a_b.md", line: 1 }, { path: "c d.md", line: 7 }] },
    ]);
    expect(sourcesIn("no place")).toEqual([]);
    const cited = (text: string) => of(text).pieces.flatMap((piece) => (piece.kind === "sources" ? piece.sources.map(({ path, line }) => `${path}:${line}`) : []));
    expect(cited("[Notes, old.md:4]")).toEqual(["Notes, old.md:4"]);
    expect(cited("[ a.md:1 ,b.md:2-3;  Notes, old.md:4]")).toEqual(["a.md:1", "b.md:2", "Notes, old.md:4"]);
    expect(cited("[a.md:1, , b.md:2]")).toEqual([]);
    expect([placeIn("a b.md:5-7"), placeIn("a.md:5 and b.md:6"), placeIn("x\na.md:5"), placeIn(`${"a".repeat(2_000)}.md:5`)]).toEqual([{ path: "a b.md", line: 5 }, null, null, null]);
  });

  it.each([
    ["a citation that does not end", (size: number) => `[${"a.md:1,          ".repeat(size / 16)}x`],
    ["places with commas and spaces", (size: number) => `[a.md:1${", ".repeat(size / 2)}`],
    ["a path without a line", (size: number) => `[${"a".repeat(size)}`],
    ["brackets", (size: number) => "[a.md:1".repeat(size / 7)],
    ["pieces of code", (size: number) => "`a` ".repeat(size / 4)],
    ["runs of backticks that do not close", (size: number) => Array.from({ length: Math.sqrt(2 * size) }, (_, at) => "`".repeat(at + 1)).join(" ")],
    ["code that begins with a space", (size: number) => `\` a ${"x".repeat(size)}\``],
  ])("takes time in proportion to a hostile text: %s", (_, hostile) => {
    const shortest = (text: string) => Math.min(...Array.from({ length: 3 }, () => {
      const began = performance.now();
      guard(text);
      sourcesIn(text);
      placeIn(text);
      return performance.now() - began;
    }));
    // An exponential number of ways is seen in a short text already.
    expect(shortest(hostile(128))).toBeLessThan(500);
    // Twice the text takes twice the time, and not four times or more; what is less than a tick of a busy machine is not counted.
    const [once, twice] = [shortest(hostile(50_000)), shortest(hostile(100_000))];
    expect(twice).toBeLessThan(3 * once + 60);
  });

  it("shows characters that hide or reorder others, and has a new placeholder each time", () => {
    expect(of("gpj\u202Eexe").markdown).toContain("⟨U+202E⟩");
    expect(guard("`a`").markdown).not.toBe(guard("`a`").markdown);
  });
});

it("text that grows is complete up to the last empty line outside of code", () => {
  const upTo = (text: string) => text.slice(0, completeUpTo(text));
  expect(upTo("one")).toBe("");
  expect(upTo("one\n\ntwo")).toBe("one\n\n");
  expect(upTo("one\n\n```js\na\n\nb")).toBe("one\n\n");
  expect(upTo("```\na\n\n```\n\ntwo")).toBe("```\na\n\n```\n\n");
  expect(upTo("one\n")).toBe("");
});
