//! The tables, their version, and the rights.
//!
//! | table | a row is |
//! | --- | --- |
//! | `schema_version` | the version of all of this; one row |
//! | `vault` | a vault, with its two roles |
//! | `meta` | a setting of a vault |
//! | `file`, `note`, `name`, `shared_heading`, `tag`, `property`, `link`, `former_path`, `warning` | as in the index file |
//! | `passage`, `passage_text` | a passage; its text, read for hits only |
//! | `note_words`, `words` | the terms of the fields of a note or a passage, in order, for phrases |
//! | `posting` | how often a field has a term; `holder` is a passage if `field` is at least [`FIRST_OF_PASSAGE`], else a note |
//! | `vocabulary` | a word, and its stem if that is another word |
//! | `embedding` | the vector of a text, by the key of the text |
//!
//! Paths, tags and keys of properties have no limit, but a row of a B-tree has 2.7 kB at most: they are indexed by their
//! first characters ([`equals`]). Terms and names are short.
//!
//! All tables with a column `vault` are partitioned by it. Texts have the collation "C", so that they compare by bytes
//! as they do in the index file, whatever the locale of the server.

/// The version before all upgrades.
pub(crate) const FIRST_VERSION: i64 = 1;

/// The statements that lead from each version to the next one, from [`FIRST_VERSION`] on. A change of the tables is made
/// in [`create`] and added here. The upgrades run in one transaction, while no session reads or writes.
pub(crate) const UPGRADES: &[&str] = &[];

/// The first number of [`field`](crate::words) of a passage's fields; smaller ones are of notes.
pub(crate) const FIRST_OF_PASSAGE: i16 = 5;

/// The class of the advisory locks of writers; the object is the id of the vault.
pub(crate) const LOCK_CLASS: i32 = 0x7669_6478;

/// The partitioned tables: name, columns besides the vault's, primary key besides the vault's.
pub(crate) const TABLES: [(&str, &str, &str); 17] = [
    ("meta", "key text COLLATE \"C\" NOT NULL, value text COLLATE \"C\" NOT NULL", "key"),
    (
        "file",
        "id bigint NOT NULL, path text COLLATE \"C\" NOT NULL, disk bytea, kind smallint NOT NULL,
         indexed boolean NOT NULL, size bigint NOT NULL, modified_ns bigint NOT NULL, changed_ns bigint NOT NULL,
         inode bigint NOT NULL, seen_ns bigint NOT NULL, hash bytea, version bigint",
        "id",
    ),
    (
        "note",
        "id bigint NOT NULL, title text COLLATE \"C\" NOT NULL, title_source bigint NOT NULL, aliases text COLLATE \"C\" NOT NULL,
         tags text COLLATE \"C\" NOT NULL, frontmatter text COLLATE \"C\" NOT NULL, anchors text COLLATE \"C\" NOT NULL, words bigint NOT NULL,
         file_title text COLLATE \"C\", title_vector bigint",
        "id",
    ),
    (
        "name",
        "note bigint NOT NULL, n bigint NOT NULL, key text COLLATE \"C\" NOT NULL, text text COLLATE \"C\" NOT NULL,
         is_heading boolean NOT NULL",
        "note, n",
    ),
    ("shared_heading", "text text COLLATE \"C\" NOT NULL", "text"),
    ("tag", "note bigint NOT NULL, n bigint NOT NULL, key text COLLATE \"C\" NOT NULL, shown text COLLATE \"C\" NOT NULL", "note, n"),
    (
        "property",
        "key text COLLATE \"C\" NOT NULL, note bigint NOT NULL, n bigint NOT NULL, number double precision,
         text text COLLATE \"C\" NOT NULL",
        "note, n",
    ),
    (
        "passage",
        "id bigint NOT NULL, note bigint NOT NULL, vector bigint, length bigint NOT NULL, said bigint NOT NULL,
         tokens bigint NOT NULL",
        "id",
    ),
    (
        "passage_text",
        "id bigint NOT NULL, headings text COLLATE \"C\" NOT NULL, line bigint NOT NULL, end_line bigint NOT NULL,
         start_byte bigint NOT NULL, end_byte bigint NOT NULL, text text COLLATE \"C\" NOT NULL",
        "id",
    ),
    (
        "link",
        "id bigint NOT NULL, source bigint NOT NULL, line bigint NOT NULL, start_byte bigint NOT NULL,
         end_byte bigint NOT NULL, kind smallint NOT NULL, raw text COLLATE \"C\" NOT NULL, path text COLLATE \"C\" NOT NULL,
         subpath text COLLATE \"C\", display text COLLATE \"C\", name bigint NOT NULL, target bigint",
        "id",
    ),
    // Its key is the hash of the path.
    ("former_path", "key bigint NOT NULL, path text COLLATE \"C\" NOT NULL, file bigint", "key"),
    (
        "note_words",
        "note bigint NOT NULL, title text COLLATE \"C\" NOT NULL, aliases text COLLATE \"C\" NOT NULL, tags text COLLATE \"C\" NOT NULL,
         properties text COLLATE \"C\" NOT NULL, path text COLLATE \"C\" NOT NULL",
        "note",
    ),
    ("words", "passage bigint NOT NULL, headings text COLLATE \"C\" NOT NULL, body text COLLATE \"C\" NOT NULL", "passage"),
    (
        "posting",
        "term text COLLATE \"C\" NOT NULL, field smallint NOT NULL, holder bigint NOT NULL, count integer NOT NULL",
        "term, field, holder",
    ),
    ("vocabulary", "word text COLLATE \"C\" NOT NULL, stem text COLLATE \"C\"", "word"),
    ("embedding", "id bigint NOT NULL, key bytea NOT NULL, embedding vector NOT NULL", "id"),
    (
        "warning",
        "n bigint NOT NULL, file text COLLATE \"C\" NOT NULL, skipped smallint NOT NULL, kind text COLLATE \"C\" NOT NULL,
         line bigint, message text COLLATE \"C\" NOT NULL",
        "n",
    ),
];

const INDEXES: &str = "
CREATE INDEX ON file(vault, left(path, 200));
CREATE INDEX ON name(vault, key);
CREATE INDEX ON name(vault, text) WHERE is_heading;
CREATE INDEX ON tag(vault, left(key, 200));
CREATE INDEX ON property(vault, left(key, 200));
CREATE INDEX ON passage(vault, note);
CREATE INDEX ON passage(vault, note) WHERE vector IS NULL;
CREATE INDEX ON note(vault, id) WHERE title_vector IS NULL AND file_title IS NOT NULL;
CREATE INDEX ON link(vault, target);
CREATE INDEX ON link(vault, name);
CREATE INDEX ON former_path(vault, file) WHERE file IS NOT NULL;
CREATE INDEX ON posting(vault, holder, field);
CREATE INDEX ON vocabulary(vault, stem) WHERE stem IS NOT NULL;
CREATE UNIQUE INDEX ON embedding(vault, key);
CREATE INDEX ON warning(vault, left(file, 200));
";

/// The condition that a text without a limit is `value`, for the index on its first characters.
pub(crate) fn equals(column: &str, value: &str) -> String {
    format!("{column} = {value} AND left({column}, 200) = left({value}, 200)")
}

/// The vaults that the current role may read or write. It is computed once for a statement, not for each row.
fn allowed(role: &str) -> String {
    format!("vault = ANY (ARRAY(SELECT id FROM vault_search.vault WHERE pg_has_role({role}, 'USAGE')))")
}

/// Creates everything in an empty database; one transaction.
pub(crate) fn create(version: i64) -> String {
    let mut sql = format!(
        "CREATE EXTENSION IF NOT EXISTS vector;
         CREATE SCHEMA vault_search;
         CREATE TABLE vault_search.schema_version(version bigint NOT NULL);
         INSERT INTO vault_search.schema_version VALUES({version});
         CREATE TABLE vault_search.vault(
           id integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY, name text COLLATE \"C\" NOT NULL UNIQUE,
           reader name NOT NULL DEFAULT '', writer name NOT NULL DEFAULT '');
         ALTER TABLE vault_search.vault ENABLE ROW LEVEL SECURITY;
         CREATE POLICY reads ON vault_search.vault FOR SELECT USING (pg_has_role(reader, 'USAGE'));
         DO $$ BEGIN
           EXECUTE format('SET LOCAL search_path = vault_search, %I', (SELECT nspname FROM pg_extension
             JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'));
         END $$;"
    );
    for (table, columns, key) in TABLES {
        let (reads, writes) = (allowed("reader"), allowed("writer"));
        sql.push_str(&format!(
            "CREATE TABLE {table}(vault integer NOT NULL, {columns}, PRIMARY KEY(vault, {key})) PARTITION BY LIST(vault);
             ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
             CREATE POLICY reads ON {table} FOR SELECT USING ({reads});
             CREATE POLICY adds ON {table} FOR INSERT WITH CHECK ({writes});
             CREATE POLICY changes ON {table} FOR UPDATE USING ({writes}) WITH CHECK ({writes});
             CREATE POLICY removes ON {table} FOR DELETE USING ({writes});\n"
        ));
    }
    sql + INDEXES
}

/// Takes the lock of changes of the schema until the end of the transaction. Two sessions that grant rights on the same
/// table at once fail otherwise.
pub(crate) fn lock() -> String {
    format!("SELECT pg_advisory_xact_lock({LOCK_CLASS}, 0)")
}

/// Takes the tables for an upgrade until the end of the transaction, or fails after three seconds, for which new readers
/// wait. Every transaction that reads or writes has locked the table with the version.
pub(crate) const LOCK_OUT: &str = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '3s';
    LOCK TABLE vault_search.schema_version IN ACCESS EXCLUSIVE MODE";

/// The sessions that use the tables, some of them.
pub(crate) const SESSIONS: &str = "SELECT string_agg(session, ', ') FROM (
    SELECT concat_ws(' ', coalesce(usename::text, 'another user'), nullif(application_name, ''),
      '(process ' || pid || ' of the server)') AS session
    FROM pg_locks JOIN pg_stat_activity USING(pid)
    WHERE relation = 'vault_search.schema_version'::regclass AND granted AND pid <> pg_backend_pid()
    ORDER BY pid LIMIT 5)";

/// Creates the partitions and the roles of a vault. The partitions have row-level security without a policy, so that a
/// grant on them by mistake opens nothing. They are attached, because `PARTITION OF` would wait for all open readers, and
/// all new readers for it.
pub(crate) fn create_vault(id: i32, reader: &str, writer: &str) -> String {
    let mut sql = format!(
        "CREATE ROLE {reader} NOLOGIN; CREATE ROLE {writer} NOLOGIN; GRANT {reader} TO {writer};
         GRANT USAGE ON SCHEMA vault_search TO {reader};
         GRANT SELECT ON vault_search.schema_version, vault_search.vault TO {reader};
         UPDATE vault_search.vault SET reader = '{reader}', writer = '{writer}' WHERE id = {id};\n"
    );
    for (table, ..) in TABLES {
        sql.push_str(&format!(
            "CREATE TABLE vault_search.{table}_{id}(LIKE vault_search.{table} INCLUDING INDEXES);
             ALTER TABLE vault_search.{table}_{id} ENABLE ROW LEVEL SECURITY;
             ALTER TABLE vault_search.{table} ATTACH PARTITION vault_search.{table}_{id} FOR VALUES IN ({id});
             GRANT SELECT ON vault_search.{table} TO {reader};
             GRANT INSERT, UPDATE, DELETE ON vault_search.{table} TO {writer};\n"
        ));
    }
    sql
}

/// Removes a vault with its roles. Its partitions are emptied, and stay until [`drop_partitions`]: this waits for
/// sessions that use the vault, for 10 seconds at most, and for no others.
pub(crate) fn remove_vault(id: i32, reader: &str, writer: &str) -> String {
    let partitions: Vec<String> = TABLES.iter().map(|(table, ..)| format!("vault_search.{table}_{id}")).collect();
    // DROP OWNED would need membership in the roles, which their creator need not have.
    format!(
        "SET LOCAL lock_timeout = '10s'; TRUNCATE {};
         DELETE FROM vault_search.vault WHERE id = {id};
         REVOKE ALL ON ALL TABLES IN SCHEMA vault_search FROM {reader}, {writer};
         REVOKE ALL ON SCHEMA vault_search FROM {reader}; DROP ROLE {writer}; DROP ROLE {reader};",
        partitions.join(", ")
    )
}

/// Drops the partitions of removed vaults. It fails at once while any session uses the tables, because it would wait for
/// it, and all new readers for this.
pub(crate) fn drop_partitions() -> String {
    let tables: Vec<String> = TABLES.iter().map(|(table, ..)| format!("vault_search.{table}")).collect();
    format!(
        "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE NOWAIT;
         DO $$ DECLARE partition text; BEGIN
           FOR partition IN SELECT relname FROM pg_class
             WHERE relispartition AND relkind = 'r' AND relnamespace = 'vault_search'::regnamespace
               AND substring(relname FROM '[0-9]+$')::integer NOT IN (SELECT id FROM vault_search.vault)
           LOOP EXECUTE format('DROP TABLE vault_search.%I', partition); END LOOP;
         END $$;",
        tables.join(", ")
    )
}
