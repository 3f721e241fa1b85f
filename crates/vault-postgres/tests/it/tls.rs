//! TLS to a real server. The servers of the tests are built without it, so a relay in front of one speaks it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use vault_postgres::Database;

use crate::server::Server;

/// An authority, and the folder with its certificate `root.crt`.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    der: rustls::pki_types::CertificateDer<'static>,
    folder: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        let (key, mut params) = (KeyPair::generate().unwrap(), CertificateParams::default());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("root.crt"), certificate.pem()).unwrap();
        Self { issuer: Issuer::new(params, key), der: certificate.der().clone(), folder }
    }

    /// A certificate for a host, and its key.
    fn signed(&self, host: &str) -> (rcgen::Certificate, KeyPair) {
        let (key, params) = (KeyPair::generate().unwrap(), CertificateParams::new([host.to_owned()]).unwrap());
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root.crt")
    }
}

/// How the relay answers.
#[derive(Clone, Copy)]
enum Speaks {
    /// The server has no TLS.
    Plain,
    Tls,
    /// It wants a certificate of the client.
    MutualTls,
    /// It offers TLS, and ends the connection when the client begins it.
    BrokenTls,
    /// With TLS it refuses the client, with this code and message.
    RefusesTls(&'static str, &'static str),
}

/// Reads the first message of a client, and refuses it.
async fn refuse(client: &mut TlsStream<TcpStream>, code: &str, message: &str) -> io::Result<()> {
    let length = client.read_u32().await?;
    client.read_exact(&mut vec![0; length as usize - 4]).await?;
    let fields = format!("SFATAL\0VFATAL\0C{code}\0M{message}\0\0");
    client.write_u8(b'E').await?;
    client.write_u32(fields.len() as u32 + 4).await?;
    client.write_all(fields.as_bytes()).await?;
    client.shutdown().await
}

/// Starts a relay to the socket of a server, and returns its port. It ends with the test.
fn relay(socket: &Path, speaks: Speaks, certificate: &(rcgen::Certificate, KeyPair), authority: &Authority) -> u16 {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let builder = match speaks {
        Speaks::MutualTls => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
        _ => builder.with_no_client_auth(),
    };
    let (certificate, key) = (certificate.0.der().clone(), PrivateKeyDer::Pkcs8(certificate.1.serialize_der().into()));
    let acceptor = TlsAcceptor::from(Arc::new(builder.with_single_cert(vec![certificate], key).unwrap()));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let (port, socket) = (listener.local_addr().unwrap().port(), socket.to_owned());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((mut client, _)) = listener.accept().await {
                let (acceptor, socket) = (acceptor.clone(), socket.clone());
                tokio::spawn(async move {
                    let mut server = UnixStream::connect(socket).await?;
                    // Each client asks first whether there is TLS: a length of 8, and a code.
                    let mut asked = [0; 8];
                    client.read_exact(&mut asked).await?;
                    if asked != [0, 0, 0, 8, 4, 210, 22, 47] {
                        server.write_all(&asked).await?;
                    } else if let Speaks::Plain = speaks {
                        client.write_all(b"N").await?;
                    } else {
                        client.write_all(b"S").await?;
                        if let Speaks::BrokenTls = speaks {
                            return Ok(());
                        }
                        let mut client = acceptor.accept(client).await?;
                        if let Speaks::RefusesTls(code, message) = speaks {
                            return refuse(&mut client, code, message).await;
                        }
                        copy_bidirectional(&mut client, &mut server).await?;
                        return Ok(());
                    }
                    copy_bidirectional(&mut client, &mut server).await?;
                    io::Result::Ok(())
                });
            }
        });
    });
    port
}

#[test]
fn a_server_is_checked_as_sslmode_says() {
    let Some(server) = Server::new() else { return };
    let (ours, other) = (Authority::new(), Authority::new());
    let connect = |port: u16, parameters: &str| {
        let address =
            format!("host=localhost hostaddr=127.0.0.1 port={port} user=postgres dbname=postgres {parameters}");
        Database::new(&address).and_then(|database| database.create_schema()).map_err(|error| error.one_line())
    };
    let of = |authority: &Authority| format!("sslrootcert={}", authority.root().display());
    let socket = server.socket();

    let port = relay(&socket, Speaks::Tls, &ours.signed("localhost"), &ours);
    for mode in ["disable", "prefer", "require", "verify-ca", "verify-full"] {
        connect(port, &format!("sslmode={mode} {}", of(&ours))).unwrap_or_else(|error| panic!("{mode}: {error}"));
        // With a root certificate, `require` checks as `verify-ca` does.
        let of_other = connect(port, &format!("sslmode={mode} {}", of(&other)));
        assert_eq!(of_other.is_ok(), matches!(mode, "disable" | "prefer"), "{mode}: {of_other:?}");
        of_other.err().iter().for_each(|error| assert!(error.contains("invalid peer certificate"), "{error}"));
    }
    connect(port, "sslmode=require").unwrap();
    let unknown = connect(port, "sslmode=verify-full sslrootcert=system").unwrap_err();
    assert!(unknown.contains("TLS"), "{unknown}");

    let port = relay(&socket, Speaks::Tls, &ours.signed("db.example"), &ours);
    connect(port, &format!("sslmode=verify-ca {}", of(&ours))).unwrap();
    let elsewhere = connect(port, &format!("sslmode=verify-full {}", of(&ours))).unwrap_err();
    assert!(elsewhere.contains("db.example") && elsewhere.contains("subjectAltName"), "{elsewhere}");

    let port = relay(&socket, Speaks::Plain, &ours.signed("localhost"), &ours);
    connect(port, "sslmode=prefer").unwrap();
    let none = connect(port, "sslmode=require").unwrap_err();
    assert!(none.contains("has no TLS") && none.contains("turn on ssl at the server"), "{none}");
}

#[test]
fn prefer_connects_without_tls_where_only_that_is_possible() {
    let Some(server) = Server::new() else { return };
    let authority = Authority::new();
    let connect = |speaks: Speaks, parameters: &str| {
        let port = relay(&server.socket(), speaks, &authority.signed("localhost"), &authority);
        let address =
            format!("host=localhost hostaddr=127.0.0.1 port={port} user=postgres dbname=postgres {parameters}");
        Database::new(&address).and_then(|database| database.create_schema()).map_err(|error| error.one_line())
    };
    connect(Speaks::BrokenTls, "").unwrap();
    connect(Speaks::BrokenTls, "sslmode=require").unwrap_err();
    // What stops the second connection is what the user can change.
    let elsewhere = connect(Speaks::BrokenTls, "dbname=none").unwrap_err();
    assert!(elsewhere.contains("no such database"), "{elsewhere}");
    for message in [
        "no pg_hba.conf entry for host \"127.0.0.1\", user \"postgres\", database \"postgres\", SSL encryption",
        "pg_hba.conf rejects connection for host \"127.0.0.1\", user \"ann\", database \"postgres\", SSL encryption",
        "kein pg_hba.conf-Eintrag für Host »127.0.0.1«, Benutzer »postgres«, Datenbank »postgres«, SSL-Verschlüsselung",
    ] {
        let refuses = Speaks::RefusesTls("28000", message);
        connect(refuses, "").unwrap_or_else(|error| panic!("{message}: {error}"));
        let refused = connect(refuses, "sslmode=require").unwrap_err();
        assert!(refused.contains("sslmode=disable"), "{refused}");
    }
    // The password would cross the network in clear.
    let refuses = Speaks::RefusesTls("28P01", "password authentication failed for user \"postgres\"");
    connect(refuses, "").unwrap_err();
    connect(Speaks::Plain, "sslnegotiation=direct").unwrap_err();
}

#[test]
fn a_certificate_that_signed_itself_is_trusted_by_name() {
    let Some(server) = Server::new() else { return };
    let authority = Authority::new();
    let file = authority.folder.path().join("server.crt");
    // Starts a relay whose certificate is valid from one year to another.
    let start = |is_authority: bool, from: i32, to: i32| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.is_ca = if is_authority { IsCa::Ca(BasicConstraints::Unconstrained) } else { IsCa::NoCa };
        (params.not_before, params.not_after) = (rcgen::date_time_ymd(from, 1, 1), rcgen::date_time_ymd(to, 1, 1));
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(&file, certificate.pem()).unwrap();
        relay(&server.socket(), Speaks::Tls, &(certificate, key), &authority)
    };
    let connect = |port: u16, host: &str, root: &Path, mode: &str| {
        let address = format!(
            "host={host} hostaddr=127.0.0.1 port={port} user=postgres dbname=postgres sslmode={mode} sslrootcert={}",
            root.display()
        );
        Database::new(&address).unwrap().create_schema().map_err(|error| error.one_line())
    };
    for is_authority in [true, false] {
        let port = start(is_authority, 1975, 4096);
        connect(port, "localhost", &file, "verify-full").unwrap();
        connect(port, "db.example", &file, "verify-full").unwrap_err();
        connect(port, "db.example", &file, "verify-ca").unwrap();
        connect(port, "localhost", &authority.root(), "verify-full").unwrap_err();
        for (from, to, reason) in [(1975, 2000, "expired"), (4000, 4096, "not valid yet")] {
            let port = start(is_authority, from, to);
            for mode in ["require", "verify-ca", "verify-full"] {
                let refused = connect(port, "localhost", &file, mode).unwrap_err();
                assert!(refused.contains(reason), "{mode}: {refused}");
            }
        }
    }
}

#[test]
fn a_server_that_wants_a_certificate_gets_it() {
    use std::os::unix::fs::PermissionsExt;
    let Some(server) = Server::new() else { return };
    let authority = Authority::new();
    let port = relay(&server.socket(), Speaks::MutualTls, &authority.signed("localhost"), &authority);
    let (certificate, key) = authority.signed("ann");
    let [certificate_file, key_file] = ["ann.crt", "ann.key"].map(|name| authority.folder.path().join(name));
    std::fs::write(&certificate_file, certificate.pem()).unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();
    let address =
        format!("host=localhost hostaddr=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=require");
    let with_key = format!("{address} sslcert={} sslkey={}", certificate_file.display(), key_file.display());
    let open = |mode: u32| std::fs::set_permissions(&key_file, std::fs::Permissions::from_mode(mode)).unwrap();
    open(0o644);
    let readable = Database::new(&with_key).unwrap_err().one_line();
    assert!(readable.contains("others can read it"), "{readable}");
    open(0o600);
    Database::new(&with_key).unwrap().create_schema().unwrap();
    Database::new(&address).unwrap().create_schema().unwrap_err();
}
