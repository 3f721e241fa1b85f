import { describe, expect, it } from "vitest";
import type { VocabularyResult } from "../../src/protocol";
import { accept, complete, wordBefore } from "../../src/query";

const vocabulary: VocabularyResult = {
  operators: [
    { insert: "tag:", description: "Notes with this tag", completes: "tags" },
    { insert: "path:", description: "Notes in this folder", completes: "folders" },
    { insert: "link:", description: "Notes that link to this note", completes: "notes" },
    { insert: "[", description: "Notes with this property", completes: "properties" },
    { insert: "task-todo:", description: "Open tasks", completes: "nothing" },
    { insert: "task:", description: "Tasks", completes: "nothing" },
    { insert: "-", description: "Not", completes: "nothing" },
  ],
  tags: [
    { name: "garden", notes: 4 },
    { name: "kitchen/garden", notes: 2 },
    { name: "Über", notes: 1 },
  ],
  properties: ["status", "rating"],
};
const names = { folders: () => ["Garden", "House move"], notes: () => ["Rose bed", "Compost"] };
const inserts = (query: string) => complete(query, query.length, vocabulary, names).map(({ insert }) => insert);

describe("complete", () => {
  it("offers operators for a word that begins so", () => {
    expect(inserts("ta")).toEqual(["tag:", "task-todo:", "task:"]);
    expect(inserts("roses pa")).toEqual(["path:"]);
    expect(inserts("t")).toEqual([]);
    expect(inserts("")).toEqual([]);
  });

  it("offers what can follow an operator, beginnings first", () => {
    expect(inserts("tag:gar")).toEqual(["tag:garden", "tag:kitchen/garden"]);
    expect(inserts("tag:uber")).toEqual(["tag:Über"]);
    expect(inserts("x -path:")).toEqual(["path:Garden", 'path:"House move"']);
    expect(inserts('link:"rose b')).toEqual(['link:"Rose bed"']);
    expect(inserts("[st")).toEqual(["[status"]);
    expect(inserts("task:ca")).toEqual([]);
  });

  it("finds the word at the cursor", () => {
    expect(wordBefore("a tag:x b", 7)).toEqual({ from: 2, word: "tag:x" });
    expect(wordBefore('path:"House mo', 14)).toEqual({ from: 0, word: 'path:"House mo' });
    expect(wordBefore("(ta", 3)).toEqual({ from: 1, word: "ta" });
    expect(wordBefore("-ta", 3)).toEqual({ from: 1, word: "ta" });
  });

  it("replaces the word and leaves the rest", () => {
    const completion = { label: "", detail: "", insert: "tag:garden" };
    expect(accept("a tag:ga b", 8, completion)).toEqual({ query: "a tag:garden b", cursor: 12 });
    expect(accept("tag:ga", 6, completion)).toEqual({ query: "tag:garden ", cursor: 11 });
    expect(accept("ta", 2, { ...completion, insert: "tag:" })).toEqual({ query: "tag:", cursor: 4 });
    expect(accept("x -ta", 5, { ...completion, insert: "tag:" })).toEqual({ query: "x -tag:", cursor: 7 });
  });
});
