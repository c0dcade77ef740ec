//! The Responses API.

use http::{Method, Request};
use hyper::body::Incoming;
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::translate::Dialect;

use super::{Visit, turns};
use crate::reply::{self, Reply};
use crate::session;
use crate::turn::Ask;

const DIALECT: Dialect = Dialect::Responses;

/// Everything below `/v1/responses` and `/v1/conversations`.
pub(crate) async fn responses(visit: Visit, request: Request<Incoming>) -> Reply {
    let path = request.uri().path().trim_end_matches('/');
    match (request.method(), path) {
        (&Method::POST, "/v1/responses") => create(visit, request).await,
        (method, path) => {
            let message = format!("there is no {method} {path}");
            visit.fail(DIALECT, &Failure::new(FailureKind::NotFound, message))
        }
    }
}

/// `POST /v1/responses`
async fn create(visit: Visit, request: Request<Incoming>) -> Reply {
    let report = turns::wants_report(&request);
    let body = match visit.body(request).await {
        Ok(body) => body,
        Err(failure) => return visit.fail(DIALECT, &failure),
    };
    let opened = match session::open_responses(&visit, &body).await {
        Ok(opened) => opened,
        Err(refused) => return visit.refuse(DIALECT, &refused),
    };
    let ask = Ask { before: opened.before, ..Ask::new(DIALECT, opened.body, visit.client.owner) };
    match turns::run(&visit, &ask).await {
        Ok(outcome) => {
            let losses = report.then(|| outcome.losses.clone());
            let mut reply = turns::shown(&visit, outcome, Some(opened.keeper)).await;
            if let Some(losses) = losses {
                turns::add_report(&mut reply, &losses);
            }
            reply
        }
        Err(failure) => reply::failure(DIALECT, &failure, &visit.request_id),
    }
}
