//! Root certificates that servers are verified with.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::SetupError;

/// TLS settings that trust Mozilla's roots, the system's roots (or those of `SSL_CERT_FILE` and
/// `SSL_CERT_DIR`), and the certificates of a PEM file.
pub fn tls_config(ca_file: Option<&Path>) -> Result<ClientConfig, SetupError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        tracing::warn!(%error, "system root certificates are incomplete");
    }
    // A system store may hold certificates that rustls does not accept; the others still count.
    roots.add_parsable_certificates(system.certs);
    if let Some(path) = ca_file {
        add_file(&mut roots, path)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| SetupError(format!("cannot set up TLS: {error}")))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), SetupError> {
    let refused = |reason: String| SetupError(format!("CA file {}: {reason}", path.display()));
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| refused(error.to_string()))?;
    if certificates.is_empty() {
        return Err(refused("it has no certificate in PEM form".to_owned()));
    }
    for certificate in certificates {
        roots.add(certificate).map_err(|error| refused(error.to_string()))?;
    }
    Ok(())
}
