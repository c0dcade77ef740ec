//! Servers on loopback.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// An HTTPS server whose certificate a private CA has signed.
pub(crate) struct TlsServer {
    pub(crate) port: u16,
    ca: String,
    task: JoinHandle<()>,
}

impl TlsServer {
    /// Starts a server with a certificate for `name`.
    pub(crate) async fn start(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &ca).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that does not trust the CA ends the handshake.
                    if let Ok(stream) = acceptor.accept(stream).await {
                        answer(stream).await;
                    }
                });
            }
        });
        Self { port, ca: ca.pem(), task }
    }

    /// Writes the CA's certificate to a file.
    pub(crate) fn ca_file(&self) -> PathBuf {
        let path = folder().join("ca.pem");
        std::fs::write(&path, &self.ca).unwrap();
        path
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers one request with its own first line.
async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut stream = BufReader::new(stream);
    let head = read_head(&mut stream).await;
    let text = format!("{} over TLS", head[0].trim_end_matches(" HTTP/1.1"));
    let response = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(response.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
}

/// Lines of a request's head.
async fn read_head(stream: &mut (impl AsyncBufReadExt + Unpin)) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        let read = stream.read_line(&mut line).await.unwrap();
        let line = line.trim_end().to_owned();
        if read == 0 || line.is_empty() {
            return lines;
        }
        lines.push(line);
    }
}

/// A CONNECT proxy that leads every name to one port on loopback.
pub(crate) struct ProxyServer {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl ProxyServer {
    /// Starts a proxy to `target` that requires these credentials.
    pub(crate) async fn start(target: u16, credentials: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (log, credentials) = (Arc::clone(&requests), credentials.map(ToOwned::to_owned));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(tunnel(stream, target, credentials.clone(), Arc::clone(&log)));
            }
        });
        Self { port, requests, task }
    }

    /// First lines of the requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for ProxyServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn tunnel(
    stream: TcpStream,
    target: u16,
    credentials: Option<String>,
    log: Arc<Mutex<Vec<String>>>,
) {
    let mut stream = BufReader::new(stream);
    let head = read_head(&mut stream).await;
    log.lock().unwrap().push(head[0].clone());
    let given = head.iter().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("proxy-authorization").then_some(value)
    });
    if credentials.is_some() && given != credentials.as_deref() {
        let refused = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(refused).await.unwrap();
        return;
    }
    let mut upstream = TcpStream::connect(("127.0.0.1", target)).await.unwrap();
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    // The tunnel ends when either side closes it.
    let _ = tokio::io::copy_bidirectional(&mut stream, &mut upstream).await;
}

/// A port that nothing listens on.
pub(crate) async fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}

/// A port that accepts connections and never answers.
pub(crate) struct Silent {
    pub(crate) port: u16,
    _listener: TcpListener,
}

pub(crate) async fn silent_port() -> Silent {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Silent { port: listener.local_addr().unwrap().port(), _listener: listener }
}

/// A new folder for the files of a test.
pub(crate) fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("transport-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
