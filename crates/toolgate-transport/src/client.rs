//! HTTP/1.1 and HTTP/2 with pooled connections.

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use http::header::{HeaderName, HeaderValue};
use http_body_util::{BodyExt as _, BodyStream, Full};

use crate::{
    Connector, Exchange, HttpRequest, HttpResponse, Method, Pool, Settings, SetupError, Transport,
    TransportError,
};

/// Transport over HTTP, with or without TLS.
#[derive(Clone, Debug)]
pub struct HttpTransport(Pool);

impl HttpTransport {
    /// Creates the transport. Opens no connection.
    pub fn new(settings: &Settings) -> Result<Self, SetupError> {
        Ok(Self(Connector::new(settings)?.pool(usize::MAX)))
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let sent = self.0.request(hyper_request(request)?).await;
        let response = sent.map_err(|error| TransportError::from(&error))?;
        let status = response.status().as_u16();
        let body = response.into_body();
        let body =
            BodyStream::new(body.map_err(|error| TransportError::Interrupted(error.to_string())));
        let body = body.filter_map(async |frame| match frame {
            Ok(frame) => frame.into_data().ok().map(|data| Ok(Vec::from(data))),
            Err(error) => Some(Err(error)),
        });
        Ok(HttpResponse { status, body: body.boxed() })
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: HttpRequest) -> Exchange<'_> {
        self.exchange(request).boxed()
    }
}

fn hyper_request(request: HttpRequest) -> Result<http::Request<Full<Bytes>>, TransportError> {
    let invalid = |reason: String| TransportError::InvalidRequest(reason);
    let HttpRequest { method, url, headers, body } = request;
    let method = match method {
        Method::Get => http::Method::GET,
        Method::Post => http::Method::POST,
    };
    let mut builder = http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        let name = HeaderName::try_from(name)
            .map_err(|_| invalid("a header has an invalid name".to_owned()))?;
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| invalid(format!("the header `{name}` has an invalid value")))?;
        value.set_sensitive(true);
        builder = builder.header(name, value);
    }
    builder
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| invalid(format!("invalid request: {error}")))
}
