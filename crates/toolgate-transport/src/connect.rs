//! Connections: TCP, a tunnel through a proxy, TLS.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryFutureExt as _;
use futures_util::future::MapErr;
use http::Uri;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiAddrs, GaiFuture, GaiResolver, Name};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tower_service::Service;

use crate::error::root_cause;
use crate::{ConnectError, ConnectErrorKind, Proxy, SetupError, roots};

/// Settings of connections.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Longest time until a connection is open: name resolution, proxy and TLS included.
    pub connect_timeout: Duration,
    /// PEM file with further root certificates.
    pub ca_file: Option<PathBuf>,
    /// Proxy rules.
    pub proxy: Proxy,
}

impl Default for Settings {
    /// Ten seconds, no CA file, no proxy.
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(10), ca_file: None, proxy: Proxy::none() }
    }
}

/// Connection pool of one runtime.
pub type Pool = Client<Connector, Full<Bytes>>;

/// Opens connections, with HTTP/2 where the server offers it.
#[derive(Clone)]
pub struct Connector {
    https: HttpsConnector<Dialer>,
    timeout: Duration,
}

/// Interval of TCP keep-alive probes.
const TCP_KEEPALIVE: Duration = Duration::from_secs(60);
/// Time after which an idle connection is closed.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(90);

impl Connector {
    /// Reads the root certificates. Opens no connection.
    pub fn new(settings: &Settings) -> Result<Self, SetupError> {
        let config = roots::tls_config(settings.ca_file.as_deref())?;
        let mut tcp = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(settings.connect_timeout));
        tcp.set_keepalive(Some(TCP_KEEPALIVE));
        let to_proxy = HttpsConnectorBuilder::new()
            .with_tls_config(config.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp.clone());
        let dialer = Dialer { tcp, to_proxy, proxy: settings.proxy.clone() };
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(dialer);
        Ok(Self { https, timeout: settings.connect_timeout })
    }

    /// Creates a connection pool that keeps up to `max_idle` connections of a host open.
    pub fn pool(&self, max_idle: usize) -> Pool {
        Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .pool_max_idle_per_host(max_idle)
            .build(self.clone())
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<Stream>;
    type Error = ConnectError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        // The system's resolver and the dialer are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        let host = host_and_port(&url);
        let is_http = matches!(url.scheme_str(), Some("http" | "https"));
        let (connecting, limit) = (self.https.call(url), self.timeout);
        Box::pin(async move {
            let failed = |kind, detail| Err(ConnectError { kind, host: host.clone(), detail });
            if !is_http {
                let detail = "the URL begins with neither http:// nor https://".to_owned();
                return failed(ConnectErrorKind::Connect, detail);
            }
            match tokio::time::timeout(limit, connecting).await {
                Ok(Ok(stream)) => Ok(stream),
                Ok(Err(error)) => match error.downcast::<ConnectError>() {
                    Ok(error) => Err(*error),
                    Err(error) => failed(ConnectErrorKind::Tls, root_cause(&*error)),
                },
                Err(_) => failed(ConnectErrorKind::Timeout, format!("not open after {limit:?}")),
            }
        })
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// Future of a connection.
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, ConnectError>> + Send>>;
/// Byte stream to the server, or to the proxy that tunnels to it.
type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;
type Tcp = HttpConnector<Resolver>;

/// Opens the byte stream that carries HTTP or TLS: direct, or tunnelled.
#[derive(Clone)]
struct Dialer {
    tcp: Tcp,
    to_proxy: HttpsConnector<Tcp>,
    proxy: Proxy,
}

impl Service<Uri> for Dialer {
    type Response = Stream;
    type Error = ConnectError;
    type Future = Connecting<Stream>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        let Some(proxy) = self.proxy.intercept(&url) else {
            let host = host_and_port(&url);
            let connecting = self.tcp.call(url);
            return Box::pin(async move {
                let stream = connecting.await.map_err(|error| {
                    let kind = kind_of(&error);
                    ConnectError { kind, host, detail: root_cause(&error) }
                })?;
                Ok(MaybeHttpsStream::Http(stream))
            });
        };
        let host = host_and_port(proxy.uri());
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.to_proxy.clone());
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        let opening = tunnel.call(with_port(url));
        Box::pin(opening.map_err(move |error| {
            let detail = root_cause(&error);
            ConnectError { kind: ConnectErrorKind::Proxy, host, detail }
        }))
    }
}

/// Resolves names with the system's resolver; its errors are told apart from the socket's.
#[derive(Clone, Debug)]
struct Resolver(GaiResolver);

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct ResolveError(io::Error);

impl Service<Name> for Resolver {
    type Response = GaiAddrs;
    type Error = ResolveError;
    type Future = MapErr<GaiFuture, fn(io::Error) -> ResolveError>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context).map_err(ResolveError)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        self.0.call(name).map_err(ResolveError)
    }
}

/// Phase that an error of the TCP connector belongs to.
fn kind_of(error: &(dyn StdError + 'static)) -> ConnectErrorKind {
    let mut next = Some(error);
    while let Some(cause) = next {
        if cause.is::<ResolveError>() {
            return ConnectErrorKind::Dns;
        }
        let io = cause.downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            return ConnectErrorKind::Timeout;
        }
        next = cause.source();
    }
    ConnectErrorKind::Connect
}

fn host_and_port(url: &Uri) -> String {
    let host = url.host().unwrap_or_default();
    match url.port_u16() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// The same URL with a port: a tunnel to a plain `http` URL would otherwise lead to port 443.
fn with_port(url: Uri) -> Uri {
    if url.port().is_some() || url.scheme_str() != Some("http") {
        return url;
    }
    let with_port = format!("http://{}:80/", url.host().unwrap_or_default()).parse();
    with_port.unwrap_or(url)
}
