//! HTTP/1.1 and HTTP/2 with pooled connections, with or without TLS.

use std::error::Error as _;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use http::header::{HeaderName, HeaderValue};
use http_body_util::{BodyExt as _, BodyStream, Full};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::{Exchange, HttpRequest, HttpResponse, Method, Transport, TransportError};

/// The default transport.
#[derive(Clone, Debug)]
pub(crate) struct Http(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl Http {
    /// Creates the transport without opening a connection.
    pub(crate) fn new(connect: Duration) -> Result<Self, TransportError> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(connect));
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(rustls::crypto::ring::default_provider())
            .map_err(|error| refused(&format!("cannot set up TLS: {error}")))?
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(90))
            .build(https);
        Ok(Self(client))
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let response = self.0.request(hyper_request(request)?).await.map_err(|error| {
            let mut why = error.to_string();
            let mut cause = error.source();
            while let Some(error) = cause {
                why = error.to_string();
                cause = error.source();
            }
            TransportError {
                message: format!("cannot reach Gemini: {why}"),
                unreachable: error.is_connect(),
            }
        })?;
        let status = response.status().as_u16();
        let body = BodyStream::new(response.into_body().map_err(|error| TransportError {
            message: format!("connection lost: {error}"),
            unreachable: false,
        }));
        let body = body.filter_map(async |frame| match frame {
            Ok(frame) => frame.into_data().ok().map(|data| Ok(Vec::from(data))),
            Err(error) => Some(Err(error)),
        });
        Ok(HttpResponse { status, body: body.boxed() })
    }
}

impl Transport for Http {
    fn send(&self, request: HttpRequest) -> Exchange<'_> {
        self.exchange(request).boxed()
    }
}

fn hyper_request(request: HttpRequest) -> Result<http::Request<Full<Bytes>>, TransportError> {
    let HttpRequest { method, url, headers, body } = request;
    let method = match method {
        Method::Get => http::Method::GET,
        Method::Post => http::Method::POST,
    };
    let mut builder = http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        let name =
            HeaderName::try_from(name).map_err(|_| refused("a header has an invalid name"))?;
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| refused(&format!("the header `{name}` has an invalid value")))?;
        value.set_sensitive(true);
        builder = builder.header(name, value);
    }
    builder
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| refused(&format!("invalid request: {error}")))
}

/// Error before anything was sent. A retry would not help.
fn refused(message: &str) -> TransportError {
    TransportError { message: message.to_owned(), unreachable: false }
}
