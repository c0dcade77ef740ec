//! The Responses API.

use http::{Method, Request};
use hyper::body::Incoming;
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::translate::Dialect;

use super::{Visit, turn};
use crate::reply::Reply;

const DIALECT: Dialect = Dialect::Responses;

/// Everything below `/v1/responses` and `/v1/conversations`.
pub(crate) async fn responses(visit: Visit, request: Request<Incoming>) -> Reply {
    let path = request.uri().path().trim_end_matches('/');
    match (request.method(), path) {
        (&Method::POST, "/v1/responses") => turn(visit, DIALECT, request).await,
        (method, path) => {
            let message = format!("there is no {method} {path}");
            visit.fail(DIALECT, &Failure::new(FailureKind::NotFound, message))
        }
    }
}
