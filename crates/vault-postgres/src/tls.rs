//! TLS as libpq does it: `sslmode`, `sslrootcert`, `sslcert` and `sslkey`.
//!
//! | mode | encrypted | the server is checked |
//! | --- | --- | --- |
//! | `disable`, and a socket | no | |
//! | `allow`, `prefer` (the default) | if the server can | no |
//! | `require` | yes | as `verify-ca`, if there is a root certificate |
//! | `verify-ca` | yes | an authority in `sslrootcert` signed its certificate |
//! | `verify-full` | yes | and the certificate is for its host |
//!
//! Source: the chapter "SSL Support" of the documentation of libpq. Two differences: `allow` is `prefer`, and the
//! certificate of an authority is trusted also after its end, because webpki does not keep its dates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use postgres::config::SslMode;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{self, CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_postgres_rustls::MakeRustlsConnect;
use vault_index::{Error, ErrorKind, Result};

/// The values of `sslmode`, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// Makes the TLS of a connection from the parameters of its address. `given` returns the value of a parameter, and
/// `folder` is that of the user's certificates.
///
/// # Errors
/// [`ErrorKind::Query`] for an unknown `sslmode`, and for certificates that cannot be read or that the mode needs.
pub(crate) fn connector(
    given: &dyn Fn(&str) -> Option<String>,
    folder: Option<&Path>,
) -> Result<(SslMode, MakeRustlsConnect)> {
    let named = |name: &str| given(name).map(PathBuf::from);
    let usual = |name: &str| folder.map(|folder| folder.join(name)).filter(|file| file.exists());
    let is_system = given("sslrootcert").as_deref() == Some("system");
    let mode = match given("sslmode").as_deref() {
        None if is_system => Mode::VerifyFull,
        None | Some("prefer" | "allow") => Mode::Prefer,
        Some("disable") => Mode::Disable,
        Some("require") => Mode::Require,
        Some("verify-ca") => Mode::VerifyCa,
        Some("verify-full") => Mode::VerifyFull,
        Some(_) => {
            return Err(invalid("the sslmode of the PostgreSQL database is none that exists")
                .with_remedy("write disable, allow, prefer, require, verify-ca or verify-full"));
        }
    };
    if is_system && mode != Mode::VerifyFull {
        return Err(invalid("sslrootcert=system trusts many authorities, so the host must be checked too")
            .with_remedy("write sslmode=verify-full, or leave sslmode out"));
    }
    let client_mode = match mode {
        Mode::Disable => SslMode::Disable,
        Mode::Prefer => SslMode::Prefer,
        _ => SslMode::Require,
    };
    let root = match is_system || mode < Mode::Require {
        true => None,
        false => named("sslrootcert").or_else(|| usual("root.crt")),
    };
    let roots = match &root {
        Some(file) => certificates(file)?,
        None if mode >= Mode::VerifyCa && !is_system => {
            return Err(invalid("to check the database server, the certificate of its authority is needed").with_remedy(
                "name its file with sslrootcert, save it as ~/.postgresql/root.crt, or write sslrootcert=system for the \
                 authorities that this machine trusts",
            ));
        }
        None => Vec::new(),
    };
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid("TLS cannot be used here").because(error))?;
    let builder = match is_system {
        true => builder
            .with_platform_verifier()
            .map_err(|error| invalid("the certificates of this machine cannot be read").because(error))?,
        false => {
            let verifier = Verifier::new(roots, mode == Mode::VerifyFull, &provider);
            let verifier = verifier.map_err(|error| root.iter().fold(error, |error, file| error.at(file)))?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    let own = match mode {
        Mode::Disable => None,
        _ => named("sslcert").or_else(|| usual("postgresql.crt")),
    };
    let config = match own {
        Some(file) => {
            let key = named("sslkey").or_else(|| usual("postgresql.key"));
            let key = key.ok_or_else(|| {
                invalid("your certificate needs its key").at(&file).with_remedy("name it with sslkey")
            })?;
            builder
                .with_client_auth_cert(certificates(&file)?, private_key(&key)?)
                .map_err(|error| invalid("your certificate and its key cannot be used").at(&file).because(error))?
        }
        None => builder.with_no_client_auth(),
    };
    Ok((client_mode, MakeRustlsConnect::new(config)))
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::Query, what)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(invalid("this file has no certificate").at(file).with_remedy("it must be in the format PEM")),
        Err(error) => Err(invalid("the certificate cannot be read").at(file).because(error)),
    }
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        // A key of root may be readable by a group, as in libpq.
        let forbidden = |file: &std::fs::Metadata| if file.uid() == 0 { 0o037 } else { 0o077 };
        if std::fs::metadata(file).is_ok_and(|found| found.mode() & forbidden(&found) != 0) {
            return Err(invalid("the key is not used, because others can read it").at(file).with_remedy("chmod 600"));
        }
    }
    PrivateKeyDer::from_pem_file(file).map_err(|error| invalid("the key cannot be read").at(file).because(error))
}

/// Checks a server's certificate as far as the mode asks for. That the server has the key of its certificate is checked
/// always.
#[derive(Debug)]
struct Verifier {
    trusted: Vec<CertificateDer<'static>>,
    /// `None`: any certificate is accepted.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    checks_host: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn new(trusted: Vec<CertificateDer<'static>>, checks_host: bool, provider: &Arc<CryptoProvider>) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in &trusted {
            let added = roots.add(certificate.clone());
            added.map_err(|error| invalid("the certificate of the authority is damaged").because(error))?;
        }
        let authorities = match roots.is_empty() {
            true => None,
            false => Some(
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                    .build()
                    .map_err(|error| invalid("the certificate of the authority cannot be used").because(error))?,
            ),
        };
        Ok(Self { trusted, authorities, checks_host, algorithms: provider.signature_verification_algorithms })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let Some(authorities) = &self.authorities else { return Ok(ServerCertVerified::assertion()) };
        // A certificate that signed itself is trusted by name, as the documentation of PostgreSQL recommends for tests.
        // The library refuses it, because it is one of an authority; but before that, it checks the dates.
        if self.trusted.iter().any(|trusted| trusted == end_entity) {
            if let Err(rustls::Error::InvalidCertificate(
                error @ (CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. }),
            )) = authorities.verify_server_cert(end_entity, &[], server_name, ocsp_response, now)
            {
                return Err(error.into());
            }
            if self.checks_host {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        match authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is checked last.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_host => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
