//! Source of HTTP tools.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, Response, header};
use hyper::body::Incoming;
use serde_json::value::RawValue;

use super::template::HttpTemplate;
use crate::mcp::Credentials;
use crate::net::{Addresses, HttpClient, read_body};
use crate::{Content, Control, Definition, Failure, Listed, Output, Request, Source};

/// Largest response.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// One HTTP endpoint as a tool.
#[derive(Clone, Debug)]
pub struct HttpTool {
    /// Name of the tool.
    pub name: String,
    /// Definition for the model.
    pub definition: Definition,
    /// Request that is made of the arguments.
    pub template: HttpTemplate,
    /// Headers whose values are secrets.
    pub credentials: Credentials,
}

/// HTTP endpoints as a source of tools.
pub struct HttpTools {
    tools: HashMap<String, HttpTool>,
    client: HttpClient,
}

impl std::fmt::Debug for HttpTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpTools").finish_non_exhaustive()
    }
}

impl HttpTools {
    /// A source of endpoints.
    ///
    /// # Errors
    /// Fails if TLS cannot be set up.
    pub fn new(tools: impl IntoIterator<Item = HttpTool>) -> io::Result<Self> {
        let tools = tools.into_iter().map(|tool| (tool.name.clone(), tool)).collect();
        Ok(Self { tools, client: HttpClient::new(Addresses::Any)? })
    }

    async fn run(&self, name: &str, arguments: &RawValue) -> Result<Output, Failure> {
        let tool = self.tools.get(name).ok_or(Failure::UnknownTool)?;
        let request = tool.template.fill(arguments).map_err(Failure::Arguments)?;
        let mut headers = HeaderMap::new();
        let accept = HeaderValue::from_static("application/json, text/*;q=0.9, */*;q=0.5");
        headers.insert(header::ACCEPT, accept);
        let agent = concat!("toolgate/", env!("CARGO_PKG_VERSION"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
        if request.body.is_some() {
            let json = HeaderValue::from_static("application/json");
            headers.insert(header::CONTENT_TYPE, json);
        }
        let secrets = tool.credentials.read();
        headers.extend(secrets.map_err(|error| Failure::Unreachable(error.to_string()))?);
        let body = Bytes::from(request.body.unwrap_or_default());
        let response = self.client.send(&request.method, &request.uri, &headers, &body).await?;
        match response.status().as_u16() {
            status @ (401 | 403) => Err(Failure::Unauthorized { status }),
            status if !response.status().is_success() => Err(Failure::Http { status }),
            _ => decode(response, &request.method).await,
        }
    }
}

/// Makes a result of a response.
async fn decode(response: Response<Incoming>, method: &Method) -> Result<Output, Failure> {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.and_then(|it| it.split(';').next()).unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    if *method == Method::HEAD {
        return Ok(Output::text(""));
    }
    let body = read_body(response.into_body(), MAX_BODY_BYTES).await?;
    if kind == "application/json" || kind.ends_with("+json") {
        let value: Option<Box<RawValue>> = serde_json::from_slice(&body).ok();
        if let Some(value) = value {
            return Ok(Output::json(value));
        }
    }
    let media = |content: Content| Output { content: vec![content], ..Output::default() };
    if kind.starts_with("image/") {
        return Ok(media(Content::Image { data: STANDARD.encode(&body), mime_type: kind }));
    }
    if kind.starts_with("audio/") {
        return Ok(media(Content::Audio { data: STANDARD.encode(&body), mime_type: kind }));
    }
    match String::from_utf8(body.into()) {
        Ok(text) => Ok(Output::text(text)),
        Err(error) => {
            let bytes = error.as_bytes().len();
            Ok(Output::text(format!("[{kind}, {bytes} bytes: not shown]")))
        }
    }
}

impl Source for HttpTools {
    fn list(self: Arc<Self>) -> BoxFuture<'static, Result<Vec<Listed>, Failure>> {
        Box::pin(async move {
            let tools = self.tools.values();
            Ok(tools.map(|it| Listed::new(it.name.clone(), it.definition.clone())).collect())
        })
    }

    fn call(
        self: Arc<Self>,
        request: Request,
        control: Control,
    ) -> BoxFuture<'static, Result<Output, Failure>> {
        Box::pin(async move {
            tokio::select! {
                // Dropping the request closes its connection.
                () = control.cancelled() => Err(Failure::Cancelled),
                result = self.run(&request.name, &request.arguments) => result,
            }
        })
    }
}
