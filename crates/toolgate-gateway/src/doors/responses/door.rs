//! Which part of the Responses API a request wants.

use http::{Method, Request};
use hyper::body::Incoming;
use toolgate_core::canon::{Failure, FailureKind, percent_decoded};
use toolgate_core::translate::Dialect;

use super::{compact, conversations, create, socket, stored};
use crate::doors::Visit;
use crate::reply::{self, Reply};
use crate::session::Refused;

pub(super) const DIALECT: Dialect = Dialect::Responses;

/// Everything below `/v1/responses` and `/v1/conversations`.
pub(crate) async fn responses(visit: Visit, request: Request<Incoming>) -> Reply {
    let path = request.uri().path().trim_end_matches('/').to_owned();
    let owned: Vec<String> = path.split('/').skip(2).map(decoded).collect();
    let steps: Vec<&str> = owned.iter().map(String::as_str).collect();
    let method = request.method().clone();
    let told = match (method.as_str(), steps.as_slice()) {
        ("POST", ["responses"]) => return create::create(visit, request).await,
        ("GET", ["responses"]) => return socket::open(visit, request),
        ("POST", ["responses", "compact"]) => compact::compact(&visit, request).await,
        ("DELETE", ["responses", id]) => stored::delete(&visit, id).await,
        ("POST", ["responses", id, "cancel"]) => stored::cancel(&visit, id).await,
        (_, _) => {
            let work = |visit: Visit| async move {
                let steps: Vec<&str> = owned.iter().map(String::as_str).collect();
                read_or_changed(&visit, &steps, request).await
            };
            visit.compute(0, work).await.unwrap_or_else(|failure| Err(failure.into()))
        }
    };
    match told {
        Ok(reply) => {
            visit.ledger(DIALECT).answered();
            reply
        }
        Err(refused) => visit.refuse(DIALECT, &refused),
    }
}

/// The methods of a path of the Responses API; `None` where there is no such path.
pub(crate) fn methods(path: &str) -> Option<&'static str> {
    let path = path.trim_end_matches('/');
    let steps: Vec<&str> = path.split('/').skip(2).collect();
    match steps.as_slice() {
        ["responses"] | ["conversations", _, "items"] => Some("GET, POST"),
        ["responses", "compact"] | ["responses", _, "cancel"] | ["conversations"] => Some("POST"),
        ["responses", _] | ["conversations", _, "items", _] => Some("GET, DELETE"),
        ["responses", _, "input_items"] => Some("GET"),
        ["conversations", _] => Some("GET, POST, DELETE"),
        _ => None,
    }
}

/// Endpoints that touch the store only. How much they have to read is known when they have it.
async fn read_or_changed(
    visit: &Visit,
    steps: &[&str],
    request: Request<Incoming>,
) -> Result<Reply, Refused> {
    let query = request.uri().query().unwrap_or("").to_owned();
    let method = request.method().clone();
    match (method.as_str(), steps) {
        ("GET", ["responses", id]) => stored::retrieve(visit, id, &query).await,
        ("GET", ["responses", id, "input_items"]) => stored::input_items(visit, id, &query).await,
        ("POST", ["conversations"]) => conversations::create(visit, request).await,
        ("GET", ["conversations", id]) => conversations::retrieve(visit, id).await,
        ("POST", ["conversations", id]) => conversations::update(visit, id, request).await,
        ("DELETE", ["conversations", id]) => conversations::delete(visit, id).await,
        ("GET", ["conversations", id, "items"]) => conversations::items(visit, id, &query).await,
        ("POST", ["conversations", id, "items"]) => conversations::add(visit, id, request).await,
        ("GET", ["conversations", id, "items", item]) => conversations::item(visit, id, item).await,
        ("DELETE", ["conversations", id, "items", item]) => {
            conversations::remove(visit, id, item).await
        }
        (_, _) => {
            let path = request.uri().path().trim_end_matches('/');
            Err(nothing_there(&method, path))
        }
    }
}

/// A name as it was before it was put into an address.
pub(super) fn decoded(name: &str) -> String {
    String::from_utf8(percent_decoded(name)).unwrap_or_else(|_| name.to_owned())
}

fn nothing_there(method: &Method, path: &str) -> Refused {
    let message = format!("there is no {method} {path}");
    Refused::Missing { message, param: None, code: None }
}

/// A JSON answer of the store's.
pub(super) fn json(body: impl Into<bytes::Bytes>) -> Reply {
    reply::json(http::StatusCode::OK, body)
}

/// A request that cannot be granted.
pub(super) fn wrong(message: impl Into<String>) -> Refused {
    Failure::new(FailureKind::InvalidRequest, message).into()
}
