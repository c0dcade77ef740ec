//! `POST /v1/responses`

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use toolgate_core::canon::Losses;

use super::door::DIALECT;
use super::{background, prewarm};
use crate::doors::{Visit, turns};
use crate::reply::{self, Reply};
use crate::session::{self, Local, Opened, Refused};
use crate::turn::{self, Ask};

pub(super) async fn create(visit: Visit, request: Request<Incoming>) -> Reply {
    let report = turns::wants_report(&request);
    let body = match visit.body(request).await {
        Ok(body) => body,
        Err(failure) => return visit.fail(DIALECT, &failure),
    };
    let opened = match open(&visit, body, None).await {
        Ok(opened) => opened,
        Err(refused) => return visit.refuse(DIALECT, &refused),
    };
    let (size, opening) = (opened.body.len(), opened.body.clone());
    let look =
        |_| async move { (prewarm::is_asked_for(&opening), background::is_asked_for(&opening)) };
    let (is_prewarm, is_background) = match visit.compute(size, look).await {
        Ok(asked) => asked,
        Err(failure) => return visit.fail(DIALECT, &failure),
    };
    if is_prewarm {
        return match prewarm::answer(&visit, opened).await {
            Ok(warm) => {
                let reply = reply::json(StatusCode::OK, warm.whole.json);
                reported(reply, report.then_some(warm.losses))
            }
            Err(failure) => visit.fail(DIALECT, &failure),
        };
    }
    if is_background {
        let losses = if report { lost(&visit, &opened).await } else { None };
        return match background::begin(visit.clone(), opened).await {
            Ok(reply) => reported(reply, losses),
            Err(refused) => visit.refuse(DIALECT, &refused),
        };
    }
    let ask = Ask::new(DIALECT, opened.body, &visit.client);
    let ask = Ask { before: Arc::new(opened.before), ..ask };
    match turns::run(&visit, &ask).await {
        Ok(outcome) => {
            let losses = report.then(|| outcome.losses.clone());
            reported(turns::shown(&visit, outcome, Some(opened.keeper)).await, losses)
        }
        Err(failure) => reply::failure(DIALECT, &failure, &visit.request_id),
    }
}

/// Completes a request from the store, or from the last answer of its connection.
pub(super) async fn open(
    visit: &Visit,
    body: Bytes,
    local: Option<Arc<Local>>,
) -> Result<Opened, Refused> {
    let size = body.len() + local.as_ref().map_or(0, |local| local.size());
    let open = |visit: Visit| async move {
        session::open_responses(&visit, &body, local.as_deref()).await
    };
    visit.compute(size, open).await?
}

/// What is lost of a question that is asked later; `None` where it cannot be asked.
async fn lost(visit: &Visit, opened: &Opened) -> Option<Losses> {
    let ask = Ask::new(DIALECT, opened.body.clone(), &visit.client);
    let ask = Ask { before: Arc::new(opened.before.clone()), ..ask };
    turn::prepare(visit, &ask).await.ok().map(|prepared| prepared.losses)
}

fn reported(mut reply: Reply, losses: Option<Losses>) -> Reply {
    if let Some(losses) = losses {
        turns::add_report(&mut reply, &losses);
    }
    reply
}
