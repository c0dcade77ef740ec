//! Which part of the Responses API a request wants.

use http::{Method, Request};
use hyper::body::Incoming;
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::translate::Dialect;

use super::{create, socket};
use crate::doors::Visit;
use crate::reply::Reply;

pub(super) const DIALECT: Dialect = Dialect::Responses;

/// Everything below `/v1/responses` and `/v1/conversations`.
pub(crate) async fn responses(visit: Visit, request: Request<Incoming>) -> Reply {
    let path = request.uri().path().trim_end_matches('/');
    match (request.method(), path) {
        (&Method::POST, "/v1/responses") => create::create(visit, request).await,
        (&Method::GET, "/v1/responses") => socket::open(visit, request),
        (method, path) => {
            let message = format!("there is no {method} {path}");
            visit.fail(DIALECT, &Failure::new(FailureKind::NotFound, message))
        }
    }
}
