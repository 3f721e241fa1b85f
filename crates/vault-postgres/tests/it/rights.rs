//! A role cannot learn what it may not read, by whatever way it asks.

use vault_index::{ErrorKind, Query};

use crate::server::Server;
use crate::vault::{Vault, answer};

const SECRET: &str = "zanzibarsecret";

/// Two vaults; ann reads the first, and wil writes it.
fn shared(server: &Server) -> (Vault, Vault) {
    let owner = server.database("postgres");
    owner.create_schema().unwrap();
    let (open, hidden) = (Vault::new("open"), Vault::new("hidden"));
    open.write("a.md", "# Rose\n\nPrune the rose in winter. #garden");
    hidden.write("b.md", &format!("---\nkey: {SECRET}\n---\n# {SECRET}\n\nThe rose {SECRET} #{SECRET} [[{SECRET}]]"));
    let (reader, writer) = owner.create_vault(open.name).unwrap();
    owner.create_vault(hidden.name).unwrap();
    server.run(&format!("CREATE ROLE ann LOGIN; CREATE ROLE wil LOGIN; GRANT {reader} TO ann; GRANT {writer} TO wil"));
    hidden.sync(&owner).unwrap();
    (open, hidden)
}

#[test]
fn roles_read_and_write_their_vaults_only() {
    let Some(server) = Server::new() else { return };
    let (open, hidden) = shared(&server);
    let (ann, wil) = (server.database("ann"), server.database("wil"));
    assert_eq!(open.sync(&wil).unwrap().added, 1);
    assert_eq!(ann.vaults().unwrap(), ["open"]);
    assert_eq!(open.searcher(&ann).unwrap().search(&Query::literal("rose")).unwrap().results.len(), 1);
    for user in [&ann, &wil] {
        assert_eq!(user.reader(hidden.name).unwrap_err().kind(), ErrorKind::NotFound);
        assert!(hidden.sync(user).is_err());
        assert!(user.create_vault("another").is_err());
    }
    // A reader may not write.
    open.write("c.md", "new");
    let error = open.sync(&ann).unwrap_err();
    assert!(error.one_line().contains("_writer TO ann"), "{}", error.one_line());
    let error = ann.create_vault("another").unwrap_err();
    assert!(error.one_line().contains("let the owner of the tables add"), "{}", error.one_line());
    // One who may read no vault at all.
    server.run("CREATE ROLE eve LOGIN");
    let error = server.database("eve").reader(open.name).unwrap_err();
    assert!(error.one_line().contains("reader or writer role"), "{}", error.one_line());
    // The owner's vaults answer as before.
    let owner = server.database("postgres");
    assert!(answer(&hidden.searcher(&owner).unwrap(), &Query::literal(SECRET)).contains("b.md"));
}

/// A reader tries everything that SQL offers; none of it names the other vault's content.
#[test]
fn a_reader_cannot_read_around_the_policies() {
    let Some(server) = Server::new() else { return };
    let (open, hidden) = shared(&server);
    open.sync(&server.database("wil")).unwrap();
    // Statistics hold samples of the content.
    server.run("ANALYZE");
    let mut owner = server.client("postgres");
    let id: i32 = owner.query_one("SELECT id FROM vault_search.vault WHERE name = 'hidden'", &[]).unwrap().get(0);
    let tables: Vec<String> = owner
        .query("SELECT relname::text FROM pg_class WHERE relnamespace = 'vault_search'::regnamespace AND relkind IN ('r', 'p')", &[])
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert!(tables.len() > 50, "{tables:?}");
    let sees = |user: &str, sql: &str| -> String {
        let mut client = server.client(user);
        client.batch_execute("SET search_path = vault_search, public").unwrap();
        match client.simple_query(sql) {
            Ok(rows) => format!("{rows:?}"),
            // With all that the server says.
            Err(error) => format!("{error:?}"),
        }
    };
    // The owner sees it this way, so the test looks at the right place.
    assert!(sees("postgres", "SELECT posting FROM posting").contains(SECRET));
    assert!(
        sees("postgres", "SELECT most_common_vals, histogram_bounds FROM pg_stats WHERE schemaname = 'vault_search'")
            .contains(SECRET)
    );
    // Cheap, so that the server would rather call it before the policies. It fails only for a row of the other vault.
    let leaks = format!(
        "CREATE FUNCTION pg_temp.leak(anyelement) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN
           IF $1::text LIKE '%{}%' THEN RAISE EXCEPTION 'seen %', $1; END IF; RETURN true; END $$;",
        &SECRET[..4]
    );
    assert!(
        sees("postgres", &format!("{leaks} SELECT * FROM passage_text AS t WHERE pg_temp.leak(t)")).contains(SECRET)
    );
    for user in ["ann", "wil"] {
        let mut asked = vec![
            "SELECT * FROM pg_stats".to_owned(),
            "SELECT * FROM pg_stats_ext".to_owned(),
            "SELECT * FROM pg_statistic".to_owned(),
            "SELECT query FROM pg_stat_activity".to_owned(),
            "SELECT * FROM vault".to_owned(),
            "SET row_security = off; SELECT * FROM passage_text".to_owned(),
            "SET ROLE postgres; SELECT * FROM passage_text".to_owned(),
            "SELECT query_to_xml('SELECT * FROM posting', true, true, '')".to_owned(),
            "EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM posting WHERE term > 'y'".to_owned(),
            "CREATE TEMP VIEW v WITH (security_invoker = false) AS SELECT * FROM passage_text; SELECT * FROM v"
                .to_owned(),
            "COPY passage_text TO STDOUT".to_owned(),
            format!("SELECT 1 / (embedding <#> embedding)::integer FROM embedding WHERE vault = {id}"),
            format!("INSERT INTO vocabulary VALUES({id}, '{}', NULL)", &SECRET[..4]),
            format!("INSERT INTO vocabulary VALUES({id}, '{}', NULL) ON CONFLICT DO NOTHING RETURNING *", &SECRET[..4]),
            format!("UPDATE vocabulary SET vault = {id}"),
            format!("DELETE FROM vocabulary WHERE vault = {id} RETURNING *"),
            format!("SELECT count(*) FROM note WHERE vault = {id}"),
            "ALTER TABLE passage_text DISABLE ROW LEVEL SECURITY; SELECT * FROM passage_text".to_owned(),
        ];
        for table in &tables {
            asked.push(format!("SELECT t FROM {table} AS t"));
            asked.push(format!("{leaks} SELECT * FROM {table} AS t WHERE pg_temp.leak(t)"));
            asked.push(format!("SELECT t::text::integer FROM {table} AS t"));
            asked.push(format!("TABLE ONLY {table}"));
        }
        for sql in asked {
            let seen = sees(user, &sql);
            assert!(!seen.contains(&SECRET[..6]), "{user}: {sql}\n{seen}");
        }
        // Not even the number of rows.
        assert!(sees(user, &format!("SELECT 'rows=' || count(*) FROM passage WHERE vault = {id}")).contains("rows=0"));
    }
    // Nothing of it was changed.
    let owner = server.database("postgres");
    assert_eq!(hidden.sync(&owner).unwrap().changed, 0);
    assert!(answer(&hidden.searcher(&owner).unwrap(), &Query::literal(SECRET)).contains("b.md"));
}

/// A grant on all tables, as owners often make it, opens no partition.
#[test]
fn a_grant_on_all_tables_opens_no_other_vault() {
    let Some(server) = Server::new() else { return };
    shared(&server);
    server.run("GRANT SELECT ON ALL TABLES IN SCHEMA vault_search TO ann");
    let mut owner = server.client("postgres");
    let partitions = owner
        .query("SELECT relname::text FROM pg_class WHERE relispartition AND relkind = 'r' AND relnamespace = 'vault_search'::regnamespace", &[])
        .unwrap();
    let mut ann = server.client("ann");
    for row in &partitions {
        let table: String = row.get(0);
        let rows: i64 = ann.query_one(&format!("SELECT count(*) FROM vault_search.{table}"), &[]).unwrap().get(0);
        assert_eq!(rows, 0, "{table}");
    }
    assert!(partitions.len() > 30);
}

/// A superuser is needed for the extension at most, as on a rented server.
#[test]
fn an_owner_who_is_no_superuser_can_do_everything() {
    let Some(server) = Server::new() else { return };
    server.run("CREATE EXTENSION vector; CREATE ROLE olga LOGIN CREATEROLE; GRANT CREATE ON DATABASE postgres TO olga");
    let owner = server.database("olga");
    owner.create_schema().unwrap();
    owner.create_schema().unwrap();
    let (first, second) = (Vault::new("first"), Vault::new("second"));
    let (reader, writer) = owner.create_vault(first.name).unwrap();
    owner.create_vault(second.name).unwrap();
    assert_eq!(owner.create_vault(first.name).unwrap_err().kind(), ErrorKind::Query);
    first.write("a.md", "A rose.");
    assert_eq!(first.sync(&owner).unwrap().added, 1);
    assert!(answer(&first.searcher(&owner).unwrap(), &Query::literal("rose")).contains("a.md"));
    server.client("olga").batch_execute("CREATE ROLE ann LOGIN").unwrap();
    server.client("olga").batch_execute(&format!("GRANT {writer} TO ann")).unwrap();
    first.write("b.md", "Another rose.");
    assert_eq!(first.sync(&server.database("ann")).unwrap().added, 1);
    owner.forget_vault(first.name).unwrap();
    assert_eq!(owner.vaults().unwrap(), ["second"]);
    let roles: i64 = server
        .client("postgres")
        .query_one("SELECT count(*) FROM pg_roles WHERE rolname IN ($1, $2)", &[&reader, &writer])
        .unwrap()
        .get(0);
    assert_eq!(roles, 0);
    assert_eq!(owner.forget_vault(first.name).unwrap_err().kind(), ErrorKind::NotFound);
}
