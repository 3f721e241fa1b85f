//! A vault in a temporary folder with an index beside it, and all that an index says, as text to compare.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use tempfile::TempDir;
use vault_index::{HashedEmbedder, Index, Options, Report};

/// A vault that is deleted when dropped.
pub struct Vault {
    folder: TempDir,
}

impl Vault {
    /// From one text: a line `//- path` begins a file.
    pub fn new(files: &str) -> Self {
        let vault = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(vault.root()).unwrap();
        let mut path = None;
        let mut content = String::new();
        for line in files.lines().chain(["//- "]) {
            if let Some(next) = line.trim_start().strip_prefix("//- ") {
                if let Some(path) = path.replace(next.to_string()) {
                    vault.write(&path, &content);
                }
                content.clear();
            } else {
                content.push_str(line.trim_start());
                content.push('\n');
            }
        }
        vault
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("vault")
    }

    pub fn index_file(&self) -> PathBuf {
        self.folder.path().join("index/index.db")
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let file = self.root().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    pub fn options(&self) -> Options {
        hashed(self.index_file())
    }

    pub fn index(&self) -> Index {
        Index::open(self.root(), self.options()).unwrap()
    }

    pub fn sync(&self) -> Report {
        self.index().sync().unwrap()
    }

    /// Everything the index says.
    pub fn dump(&self) -> String {
        dump(&self.index_file())
    }

    /// Everything an index built from nothing would say.
    pub fn dump_of_rebuild(&self) -> String {
        let fresh = tempfile::tempdir().unwrap();
        let file = fresh.path().join("index.db");
        Index::open(self.root(), hashed(file.clone())).unwrap().sync().unwrap();
        dump(&file)
    }
}

fn hashed(file: PathBuf) -> Options {
    Options::new().index_file(file).embedder(Arc::new(HashedEmbedder::new()))
}

/// Rows of what other programs may read, and of the keyword index, without ids, in an order of their own.
pub fn dump(index: &Path) -> String {
    // Opening an index once makes sqlite-vec known to all connections of this process.
    let options = Options::new().index_file(index);
    drop(Index::open(std::env::temp_dir(), options).unwrap().tags());
    let db = Connection::open(index).unwrap();
    db.execute_batch(
        "CREATE VIRTUAL TABLE temp.passages USING fts5vocab(main, words, row);
         CREATE VIRTUAL TABLE temp.notes USING fts5vocab(main, note_words, row);",
    )
    .unwrap();
    let mut text = String::new();
    for sql in [
        "SELECT path, title, frontmatter, word_count, size, content_hash FROM documents ORDER BY path",
        "SELECT path, kind, indexed FROM file ORDER BY path",
        "SELECT path, aliases, tags, anchors, title_source, title_vector IS NULL FROM note JOIN file USING(id) ORDER BY path",
        "SELECT path, content, headings, start_line, end_line, start_byte, end_byte, hex(embedding)
         FROM chunks JOIN documents ON documents.id = document_id ORDER BY path, start_byte",
        "SELECT source_path, target_path, link_text, link_type, line, link_path, subpath, display
         FROM links ORDER BY source_path, line, link_text, target_path",
        "SELECT path, n, key, text FROM name JOIN file ON file.id = note ORDER BY path, n",
        "SELECT key, shown, path FROM tag JOIN file ON file.id = note ORDER BY key, path",
        "SELECT key, number, text, path FROM property JOIN file ON file.id = note ORDER BY path, key, text",
        "SELECT file, skipped, kind, line, message FROM warning ORDER BY file, line, message",
        "SELECT term, doc, cnt FROM temp.passages ORDER BY term",
        "SELECT term, doc, cnt FROM temp.notes ORDER BY term",
    ] {
        let mut statement = db.prepare(sql).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                let value: rusqlite::types::Value = row.get(column).unwrap();
                write!(text, "{value:?} ").unwrap();
            }
            text.push('\n');
        }
        text.push_str("--\n");
    }
    text
}
