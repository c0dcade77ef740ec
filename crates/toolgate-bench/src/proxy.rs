//! Baseline: a reverse proxy that only copies bytes, on the gateway's HTTP stack.

use std::convert::Infallible;

use anyhow::Result;
use http::header::HOST;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

type Http = Client<HttpConnector, Full<bytes::Bytes>>;
type Body = UnsyncBoxBody<bytes::Bytes, hyper::Error>;

pub(crate) async fn run(upstream: &str) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("proxy on http://{}", listener.local_addr()?);
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    let http: Http = Client::builder(TokioExecutor::new()).build(tcp);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (http, upstream) = (http.clone(), upstream.to_owned());
        let service = service_fn(move |request| {
            let (http, upstream) = (http.clone(), upstream.clone());
            async move { Ok::<_, Infallible>(pass(&http, &upstream, request).await) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn pass(http: &Http, upstream: &str, request: Request<Incoming>) -> Response<Body> {
    let failed = || {
        let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        response
    };
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |it| it.as_str());
    let Ok(uri) = format!("{upstream}{path}").parse::<Uri>() else { return failed() };
    head.uri = uri;
    head.headers.remove(HOST);
    // The gateway reads a complete request before it translates it, so the baseline does too.
    let Ok(body) = body.collect().await else { return failed() };
    match http.request(Request::from_parts(head, Full::new(body.to_bytes()))).await {
        Ok(response) => response.map(http_body_util::BodyExt::boxed_unsync),
        Err(_) => failed(),
    }
}
