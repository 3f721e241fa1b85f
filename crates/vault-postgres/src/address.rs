//! The address of a vault's index in a database, completed as libpq does: from a service, `PG*` variables and the
//! password file.
//!
//! `postgres://user@host/database#vault`: the part after `#` is the name of the vault, which is otherwise that of its
//! folder. `postgres:` alone takes everything from the environment, and `postgres:?service=team` from a service.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use postgres::Config;
use postgres::config::Host;
use tokio_postgres_rustls::MakeRustlsConnect;
use vault_index::{Error, ErrorKind, Result};

use crate::tls;

/// The variables of the environment, by name.
type Variables<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// The parameters of an address that the client does not know, and those that mean more here than there.
const OWN: [&str; 5] = ["service", "sslmode", "sslrootcert", "sslcert", "sslkey"];

/// An address that was completed.
pub(crate) struct Address {
    pub(crate) config: Config,
    pub(crate) tls: MakeRustlsConnect,
    /// The name of the vault, if the address has it.
    pub(crate) vault: Option<String>,
}

/// Completes an address.
///
/// # Errors
/// [`ErrorKind::Query`] for an address, a service or a variable that cannot be understood, and for certificates that
/// cannot be used. No error shows the address, because it may hold a password.
pub(crate) fn parse(original: &str, variable: &Variables<'_>) -> Result<Address> {
    // Without the prefix, it is a character of a value.
    let (address, vault) = match original.split_once('#').filter(|_| original.starts_with("postgres")) {
        // A name that took `sslmode=require` with it would weaken the connection.
        Some((_, vault)) if vault.contains(['@', '=']) || original.contains(" password=") => {
            return Err(invalid("address").with_remedy(
                "write a URL, a # in its password as %23, and the vault's name at the end, with a = in it as %3D",
            ));
        }
        Some((address, vault)) => (address, Some(decoded(vault)?)),
        None => (original, None),
    };
    let is_url = address.contains("://");
    let rest = match is_url {
        true => address,
        false => address.trim_start_matches("postgresql:").trim_start_matches("postgres:"),
    };
    // A `?` after the first `=` is a character of a value.
    let is_keywords = !is_url && rest.split_once('=').is_some_and(|(key, _)| !key.contains('?'));
    let (text, mut own) = if is_keywords { own_keywords(rest)? } else { own_parameters(rest)? };
    let text = match is_url || is_keywords {
        true => text,
        false => format!("postgres:///{}", text.trim_start_matches('/')),
    };
    let of_service = match own.remove("service").or_else(|| variable("PGSERVICE")) {
        Some(name) => read_service(&name, variable)?,
        None => HashMap::new(),
    };
    let given = |key: &str, name: &str| of_service.get(key).cloned().or_else(|| variable(name));
    let mut config: Config = text.parse().map_err(|error: postgres::Error| invalid("address").because(error))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        let host = given("host", "PGHOST").unwrap_or_else(default_host);
        host.split(',').for_each(|host| _ = config.host(host));
    }
    if config.get_ports().is_empty()
        && let Some(port) = given("port", "PGPORT")
    {
        for port in port.split(',') {
            config.port(port.trim().parse().map_err(|_| invalid("PGPORT"))?);
        }
    }
    if config.get_user().is_none() {
        let system = || variable("USER").or_else(|| variable("USERNAME"));
        given("user", "PGUSER").or_else(system).iter().for_each(|user| _ = config.user(user));
    }
    if config.get_dbname().is_none() {
        let user = config.get_user().map(str::to_owned);
        given("dbname", "PGDATABASE").or(user).iter().for_each(|name| _ = config.dbname(name));
    }
    if config.get_options().is_none() {
        given("options", "PGOPTIONS").iter().for_each(|options| _ = config.options(options));
    }
    if config.get_application_name().is_none() {
        given("application_name", "PGAPPNAME").iter().for_each(|name| _ = config.application_name(name));
    }
    if config.get_connect_timeout().is_none()
        && let Some(seconds) = given("connect_timeout", "PGCONNECT_TIMEOUT")
    {
        let seconds = seconds.parse().map_err(|_| invalid("PGCONNECT_TIMEOUT"))?;
        config.connect_timeout(Duration::from_secs(seconds));
    }
    if config.get_password().is_none() {
        let password = given("password", "PGPASSWORD").or_else(|| password_of(&config, &of_service, variable));
        password.iter().for_each(|password| _ = config.password(password));
    }
    // The host is compared with the server's certificate.
    if config.get_hosts().is_empty() {
        config.get_hostaddrs().to_vec().iter().for_each(|address| _ = config.host(&address.to_string()));
    }
    let is_socket =
        config.get_hostaddrs().is_empty() && config.get_hosts().iter().all(|host| !matches!(host, Host::Tcp(_)));
    let of_tls = |key: &str| match is_socket {
        // A socket has no TLS, and needs none.
        true => (key == "sslmode").then(|| "disable".to_owned()),
        false => own.get(key).cloned().or_else(|| given(key, &format!("PG{}", key.to_uppercase()))),
    };
    let (mode, tls) = tls::connector(&of_tls, home(variable).map(|home| home.join(".postgresql")).as_deref())?;
    config.ssl_mode(mode);
    Ok(Address { config, tls, vault })
}

/// The address without its password, for messages.
pub(crate) fn shown(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        #[cfg(unix)]
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => config.get_hostaddrs().first().map(ToString::to_string).unwrap_or_default(),
    };
    let port =
        config.get_ports().first().filter(|port| **port != 5432).map_or(String::new(), |port| format!(":{port}"));
    let user = config.get_user().map_or(String::new(), |user| format!("{user}@"));
    format!("postgres://{user}{host}{port}/{}", config.get_dbname().unwrap_or_default())
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::Query, format!("the {what} of the PostgreSQL database is invalid"))
        .with_remedy("write postgres://user@host/database, and `#vault` after it for another name than the folder's")
}

/// A URL without the parameters in [`OWN`], and these.
fn own_parameters(address: &str) -> Result<(String, HashMap<String, String>)> {
    let own = |part: &str| {
        let (key, value) = part.split_once('=')?;
        OWN.contains(&key).then(|| (key.to_owned(), value.to_owned()))
    };
    let Some((before, query)) = address.split_once('?') else { return Ok((address.to_owned(), HashMap::new())) };
    let (taken, others): (Vec<_>, Vec<_>) = query.split('&').partition(|part| own(part).is_some());
    let question = if others.is_empty() { "" } else { "?" };
    let text = format!("{before}{question}{}", others.join("&"));
    // The client finds the parameters after the password, and its mode would be replaced by the default.
    if text.contains("sslmode=") {
        return Err(invalid("address").with_remedy("write a ? in a password as %3F"));
    }
    let taken = taken.into_iter().filter_map(own).map(|(key, value)| Ok((key, decoded(&value)?)));
    Ok((text, taken.collect::<Result<_>>()?))
}

/// An address of the form `key=value key=value` without the parameters in [`OWN`], and these. As in libpq, there may be
/// blanks around `=`, a value with blanks is in single quotes, and `\` precedes a quote or a `\` of a value.
fn own_keywords(address: &str) -> Result<(String, HashMap<String, String>)> {
    let (mut others, mut own) = (Vec::new(), HashMap::new());
    let mut rest = address.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').ok_or_else(|| invalid("address"))?;
        let (value, after) = keyword_value(after.trim_start()).ok_or_else(|| invalid("address"))?;
        match key.trim() {
            key if OWN.contains(&key) => drop(own.insert(key.to_owned(), value)),
            key => others.push(format!("{key}='{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))),
        }
        rest = after.trim_start();
    }
    Ok((others.join(" "), own))
}

/// The value at the start of a text, and the text after it; `None` if a quote is not closed.
fn keyword_value(text: &str) -> Option<(String, &str)> {
    let is_quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut characters = text.char_indices().skip(usize::from(is_quoted));
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            '\'' if is_quoted => return Some((value, &text[at + 1..])),
            blank if !is_quoted && blank.is_whitespace() => return Some((value, &text[at..])),
            other => value.push(other),
        }
    }
    (!is_quoted).then_some((value, ""))
}

/// The settings of a service: the user's file, else that of the system.
fn read_service(name: &str, variable: &Variables<'_>) -> Result<HashMap<String, String>> {
    let of_user = match variable("PGSERVICEFILE") {
        Some(file) => Some(PathBuf::from(file)),
        None => home(variable).map(|home| home.join(".pg_service.conf")),
    };
    let of_system = variable("PGSYSCONFDIR").map(|folder| Path::new(&folder).join("pg_service.conf"));
    for file in of_user.iter().chain(&of_system) {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let mut lines = text.lines().map(str::trim).skip_while(|line| *line != format!("[{name}]"));
        // The line of the service itself.
        if lines.next().is_some() {
            let lines = lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#'));
            let settings = lines.filter_map(|line| line.split_once('='));
            return Ok(settings.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect());
        }
    }
    Err(Error::new(ErrorKind::NotFound, format!("there is no PostgreSQL service {name:?}"))
        .with_remedy("add it to ~/.pg_service.conf, or to the file that PGSERVICEFILE names"))
}

/// The password of the first line of the password file that matches.
fn password_of(config: &Config, service: &HashMap<String, String>, variable: &Variables<'_>) -> Option<String> {
    let named = service.get("passfile").cloned().or_else(|| variable("PGPASSFILE")).map(PathBuf::from);
    let file = named.or_else(|| home(variable).map(|home| home.join(".pgpass")))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&file).ok()?.permissions().mode();
        if mode & 0o077 != 0 {
            log::warn!("{} is not read, because others can read it (chmod 600)", file.display());
            return None;
        }
    }
    let text = std::fs::read_to_string(file).ok()?;
    // A password is for one machine.
    let host = match (config.get_hosts(), config.get_hostaddrs()) {
        ([], [address]) => address.to_string(),
        ([Host::Tcp(host)], _) => host.clone(),
        #[cfg(unix)]
        ([Host::Unix(_)], _) => "localhost".to_owned(),
        _ => return None,
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let wanted = [host.as_str(), &port, config.get_dbname()?, config.get_user()?];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [of @ .., password] = fields.as_slice() else { return None };
        let matches = of.len() == wanted.len() && of.iter().zip(wanted).all(|(of, is)| of == "*" || of == is);
        matches.then(|| password.clone())
    })
}

/// The fields of a line of the password file: separated by `:`, with `\` before a `:` or `\` of their own.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (character, fields.last_mut()) {
            (':', _) => fields.push(String::new()),
            ('\\', Some(field)) => field.extend(characters.next()),
            (character, Some(field)) => field.push(character),
            (_, None) => {}
        }
    }
    fields
}

fn home(variable: &Variables<'_>) -> Option<PathBuf> {
    variable("HOME").or_else(|| variable("USERPROFILE")).map(PathBuf::from)
}

/// The folder of the server's socket, or this machine.
fn default_host() -> String {
    let folders = ["/var/run/postgresql", "/tmp"];
    let socket = |folder: &&str| cfg!(unix) && Path::new(folder).join(".s.PGSQL.5432").exists();
    folders.into_iter().find(socket).unwrap_or("localhost").to_owned()
}

/// Decodes `%20` and the like.
fn decoded(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        let byte = after.first_chunk::<2>().and_then(|digits| code(digits)).filter(|_| *first == b'%');
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    match String::from_utf8(bytes) {
        Ok(name) if !name.is_empty() => Ok(name),
        _ => Err(invalid("vault, or a parameter, in the address")),
    }
}

#[cfg(test)]
mod tests {
    use postgres::config::SslMode;

    use super::*;

    fn parsed(address: &str, variables: &[(&str, &str)]) -> Result<(String, Config, Option<String>)> {
        let variable = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        parse(address, &variable).map(|address| (shown(&address.config), address.config, address.vault))
    }

    #[test]
    fn an_address_goes_before_a_service_and_that_before_variables() {
        let folder = tempfile::tempdir().unwrap();
        let services = folder.path().join("services.conf");
        std::fs::write(
            &services,
            "[other]\nhost=x\n\n[team]\n# ours\nhost = db\ndbname=notes\nuser=ann\n[last]\nport=1\n",
        )
        .unwrap();
        let services = services.to_str().unwrap();
        let variables = [
            ("PGSERVICEFILE", services),
            ("PGUSER", "eve"),
            ("PGPORT", "6000"),
            ("PGHOST", "far"),
            ("PGDATABASE", "d"),
        ];
        let shown = |address: &str| parsed(address, &variables).unwrap().0;
        assert_eq!(shown("postgres:"), "postgres://eve@far:6000/d");
        assert_eq!(shown("postgresql://"), "postgres://eve@far:6000/d");
        assert_eq!(shown("postgres:?service=team"), "postgres://ann@db:6000/notes");
        assert_eq!(shown("postgres://bob@/x?service=team"), "postgres://bob@db:6000/x");
        assert_eq!(shown("postgres:///x?service=team&application_name=y"), "postgres://ann@db:6000/x");
        assert_eq!(shown("postgresql://bob@near:7/x"), "postgres://bob@near:7/x");
        assert_eq!(shown("postgres:host=near user=bob"), "postgres://bob@near:6000/d");
        assert_eq!(parsed("postgres:", &[("USER", "ann"), ("PGHOST", "h")]).unwrap().0, "postgres://ann@h/ann");
        assert!(parsed("postgres:?service=none", &variables).unwrap_err().one_line().contains("\"none\""));
    }

    #[test]
    fn a_vault_is_named_after_the_address() {
        let vault = |address: &str| parsed(address, &[]).unwrap().2;
        assert_eq!(vault("postgres://h/d"), None);
        assert_eq!(vault("postgres://h/d#garden").as_deref(), Some("garden"));
        assert_eq!(vault("postgres:#My%20notes%").as_deref(), Some("My notes%"));
        assert!(parsed("postgres://h/d#", &[]).is_err());
        for password in ["postgres://ann:pass#word@h/d", "postgres:host=h password=pass#word"] {
            let refused = parsed(password, &[]).unwrap_err().one_line();
            assert!(refused.contains("%23") && !refused.contains("word@") && !refused.contains("pass#"), "{refused}");
        }
        assert_eq!(vault("postgres://ann:pass%23word@h/d"), None);
        assert_eq!(vault("host=h password=pass#word"), None);
        assert_eq!(vault("postgres://h/d#a%3Db").as_deref(), Some("a=b"));
    }

    #[test]
    fn passwords_come_from_the_usual_places_and_are_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pgpass");
        std::fs::write(&file, "# old\nh:5432:other:ann:wrong\n*:*:d\\:1:ann:se\\:cret\\\\\nh:*:*:*:last\n").unwrap();
        let file = file.to_str().unwrap();
        let variables = [("PGPASSFILE", file)];
        let password = |address: &str, variables: &[(&str, &str)]| {
            let (shown, config, _) = parsed(address, variables).unwrap();
            let password = config.get_password().map(|password| String::from_utf8_lossy(password).into_owned());
            password.iter().for_each(|password| assert!(!shown.contains(password)));
            password
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).unwrap();
            assert_eq!(password("postgres://ann@h/d:1", &variables), None);
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        assert_eq!(password("postgres://ann@h/d:1", &variables).as_deref(), Some("se:cret\\"));
        assert_eq!(password("postgres://bob@h/d", &variables).as_deref(), Some("last"));
        assert_eq!(password("postgres://bob@i/d", &variables), None);
        assert_eq!(password("postgres://bob:own@h/d", &variables).as_deref(), Some("own"));
        assert_eq!(password("postgres://bob@h/d", &[("PGPASSWORD", "env")]).as_deref(), Some("env"));
        let wrong = parsed("postgres://bob:hunter2@h:port/d", &[]).unwrap_err();
        assert!(!format!("{wrong:?} {}", wrong.one_line()).contains("hunter2"));
    }

    #[test]
    fn the_address_decides_about_tls_before_variables() {
        let mode = |address: &str, variables: &[(&str, &str)]| parsed(address, variables).map(|p| p.1.get_ssl_mode());
        let refused = |address: &str, variables: &[(&str, &str)]| mode(address, variables).unwrap_err().one_line();
        assert_eq!(mode("postgres://h/d", &[]).unwrap(), SslMode::Prefer);
        assert_eq!(mode("postgres://h/d?sslmode=require", &[]).unwrap(), SslMode::Require);
        for keywords in [
            "host=h sslmode=require dbname=d",
            "host=h sslmode = require dbname = d",
            "host=h password=why?not sslmode=require",
            "host=h password='a  b' sslmode='require'",
            "host='h' password='it\\'s \\\\' sslmode=require",
        ] {
            let (_, config, _) = parsed(&format!("postgres:{keywords}"), &[]).unwrap();
            assert_eq!(config.get_ssl_mode(), SslMode::Require, "{keywords}");
            assert_eq!(config.get_hosts(), [Host::Tcp("h".to_owned())], "{keywords}");
        }
        let password = |keywords: &str| {
            let (_, config, _) = parsed(&format!("postgres:host=h {keywords}"), &[]).unwrap();
            String::from_utf8(config.get_password().unwrap().to_vec()).unwrap()
        };
        assert_eq!(password("password=why?not sslmode=require"), "why?not");
        assert_eq!(password("password='a  b' sslmode=require"), "a  b");
        assert_eq!(password(r"password='it\'s \\' sslmode=require"), r"it's \");
        assert!(parsed("postgres:host=h password='open", &[]).is_err());
        for hidden in ["require", "verify-full"] {
            let behind_password = refused(&format!("postgres://ann:why?not@h/d?sslmode={hidden}"), &[]);
            assert!(behind_password.contains("%3F"), "{behind_password}");
            for behind_name in [
                format!("postgres://h/d#garden?sslmode={hidden}"),
                format!("postgres://h/d?password=pass#word&sslmode={hidden}"),
                format!("postgres:host=h password = pass#word sslmode={hidden}"),
            ] {
                assert!(refused(&behind_name, &[]).contains("%23"), "{behind_name}");
            }
        }
        assert!(
            refused("postgres:host=h sslmode=require sslrootcert='/My Certs/r.crt'", &[]).contains("/My Certs/r.crt")
        );
        #[cfg(unix)]
        {
            assert_eq!(mode("postgres:host=/tmp hostaddr=10.0.0.5 sslmode=require", &[]).unwrap(), SslMode::Require);
            assert!(refused("postgres:host=/tmp hostaddr=10.0.0.5 sslmode=verify-full", &[]).contains("sslrootcert"));
        }
        assert_eq!(mode("postgres://h/d", &[("PGSSLMODE", "require")]).unwrap(), SslMode::Require);
        assert_eq!(mode("postgres://h/d?sslmode=disable", &[("PGSSLMODE", "require")]).unwrap(), SslMode::Disable);
        #[cfg(unix)]
        assert_eq!(mode("postgres:host=/tmp", &[("PGSSLMODE", "verify-full")]).unwrap(), SslMode::Disable);
        assert!(refused("postgres://h/d?sslmode=verify-full", &[]).contains("sslrootcert"));
        assert!(refused("postgres://h/d?sslmode=full", &[]).contains("verify-full"));
        assert!(refused("postgres://h/d?sslmode=require&sslrootcert=/no/such", &[]).contains("/no/such"));
        assert!(refused("postgres://h/d?sslmode=require&sslrootcert=system", &[]).contains("verify-full"));
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".postgresql")).unwrap();
        std::fs::write(home.path().join(".postgresql/root.crt"), "").unwrap();
        let variables = [("HOME", home.path().to_str().unwrap())];
        assert_eq!(mode("postgres://h/d?sslrootcert=system", &variables).unwrap(), SslMode::Require);
        assert_eq!(mode("postgres://h/d?sslmode=prefer", &variables).unwrap(), SslMode::Prefer);
        assert!(refused("postgres://h/d?sslmode=require", &variables).contains("root.crt"));
        let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        std::fs::write(home.path().join(".postgresql/root.crt"), damaged).unwrap();
        assert_eq!(mode("postgres://h/d?sslrootcert=system", &variables).unwrap(), SslMode::Require);
        let refused = refused("postgres://h/d?sslmode=require", &variables);
        assert!(refused.contains("damaged") && refused.contains("root.crt"), "{refused}");
        let (_, config, _) = parsed("postgres:hostaddr=127.0.0.1 dbname=d sslmode=require", &[]).unwrap();
        assert_eq!(config.get_hosts(), [Host::Tcp("127.0.0.1".to_owned())]);
    }
}
