//! The simulator as a transport of the SDK, in the same process.

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use toolgate_transport::{Exchange, HttpRequest, HttpResponse, Method, Transport, TransportError};

use crate::Sim;

/// `Client::builder().transport(sim)`: no port is opened.
impl Transport for Sim {
    fn send(&self, request: HttpRequest) -> Exchange<'_> {
        self.exchange(request).boxed()
    }
}

impl Sim {
    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let HttpRequest { method, url, headers, body } = request;
        let method = match method {
            Method::Get => http::Method::GET,
            Method::Post => http::Method::POST,
        };
        let mut builder = http::Request::builder().method(method).uri(url);
        for (name, value) in headers {
            builder = builder.header(name, value);
        }
        let request = builder
            .body(Bytes::from(body))
            .map_err(|error| TransportError::InvalidRequest(error.to_string()))?;
        let reset = |reset: crate::Reset| TransportError::Interrupted(reset.to_string());
        let response = self.respond(request).await.map_err(reset)?;
        let status = response.status().as_u16();
        let body = response.into_body().map(move |bytes| bytes.map(Vec::from).map_err(reset));
        Ok(HttpResponse { status, body: body.boxed() })
    }
}
