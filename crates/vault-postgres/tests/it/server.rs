//! A PostgreSQL server of a test's own, in a temporary folder, reached by a socket in it. It needs no client library,
//! because the tests of the commands use it as well.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Names the folder with `postgres`, `initdb` and pgvector. Empty: the tests are skipped.
const PROGRAMS: &str = "VAULT_POSTGRES_BIN";

/// The user `nobody`: PostgreSQL refuses to run as root.
const NOBODY: u32 = 65534;

/// Whether tests run long: at more moments, for a minute.
pub fn is_long() -> bool {
    std::env::var_os("VAULT_POSTGRES_LONG").is_some_and(|value| !value.is_empty())
}

pub struct Server {
    programs: PathBuf,
    folder: TempDir,
    is_root: bool,
    process: Option<Child>,
}

impl Server {
    /// Starts an empty server. `None`: these tests are skipped.
    pub fn new() -> Option<Self> {
        let programs =
            std::env::var_os(PROGRAMS).unwrap_or_else(|| panic!("{PROGRAMS} is not set, see CONTRIBUTING.md"));
        if programs.is_empty() {
            return None;
        }
        let mut server = Self::stopped(programs.into());
        let made = server
            .program("initdb")
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--pgdata"])
            .arg(server.data())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        server.start();
        Some(server)
    }

    /// One without data.
    fn stopped(programs: PathBuf) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let is_root = folder.path().metadata().unwrap().uid() == 0;
        if is_root {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { programs, folder, is_root, process: None }
    }

    /// Starts a replica, which follows this server.
    pub fn replica(&self) -> Self {
        let mut replica = Self::stopped(self.programs.clone());
        let copied = replica
            .program("pg_basebackup")
            .args(["--checkpoint=fast", "--no-sync", "--write-recovery-conf", "--dbname", &self.address("postgres")])
            .arg("--pgdata")
            .arg(replica.data())
            .output()
            .unwrap();
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        replica.start();
        replica
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(self.folder.path()).stdin(Stdio::null()).env("LC_ALL", "C");
        if self.is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Starts it, and waits until it answers.
    pub fn start(&mut self) {
        let until = Instant::now() + Duration::from_secs(60);
        self.process = Some(self.spawn());
        while let Err(error) = self.psql("SELECT 1") {
            let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "{error}: {}", log());
            std::thread::sleep(Duration::from_millis(20));
            // Processes of a killed server may still hold its memory; then a new one ends at once.
            if self.process.as_mut().is_some_and(|process| process.try_wait().unwrap().is_some()) {
                self.process = Some(self.spawn());
            }
        }
    }

    fn spawn(&self) -> Child {
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        self.program("postgres")
            .args(["-c", "listen_addresses=", "-c", "max_connections=60", "-c", "shared_buffers=32MB", "-k"])
            .arg(self.folder.path())
            .arg("-D")
            .arg(self.data())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    /// Replaces the rules of who may connect.
    pub fn admit(&self, rules: &str) {
        std::fs::write(self.data().join("pg_hba.conf"), rules).unwrap();
        self.run("SELECT pg_reload_conf()");
    }

    /// Kills the server's first process; its other ones end when they notice.
    pub fn kill(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        process.kill().unwrap();
        process.wait().unwrap();
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join(".s.PGSQL.5432")
    }

    pub fn address(&self, user: &str) -> String {
        format!("host={} user={user} dbname=postgres", self.folder.path().display())
    }

    /// Runs SQL as the owner.
    pub fn run(&self, sql: &str) {
        self.psql(sql).unwrap();
    }

    /// Runs a program of PostgreSQL as the owner, and returns what it prints.
    pub fn output(&self, program: &str, arguments: &[&str]) -> Vec<u8> {
        let output =
            self.program(program).args(arguments).args(["--dbname", &self.address("postgres")]).output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// Runs a script of SQL as the owner.
    pub fn script(&self, script: &[u8]) {
        std::fs::write(self.folder.path().join("backup.sql"), script).unwrap();
        self.output("psql", &["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file", "backup.sql"]);
    }

    /// Restores what `pg_dump --format=custom` wrote.
    pub fn restore(&self, dump: &[u8]) {
        std::fs::write(self.folder.path().join("notes.dump"), dump).unwrap();
        self.output("pg_restore", &["--exit-on-error", "notes.dump"]);
    }

    /// The error has all that the program says.
    fn psql(&self, sql: &str) -> Result<(), String> {
        let output = self
            .program("psql")
            .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--command", sql, "--dbname"])
            .arg(self.address("postgres"))
            .output()
            .unwrap();
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let stopped = self.program("pg_ctl").args(["stop", "-m", "immediate", "-D"]).arg(self.data()).output();
            if !stopped.is_ok_and(|stopped| stopped.status.success()) {
                let _ = process.kill();
            }
            let _ = process.wait();
        }
    }
}
