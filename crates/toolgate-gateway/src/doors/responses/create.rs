//! `POST /v1/responses`

use http::{Request, StatusCode};
use hyper::body::Incoming;
use toolgate_core::canon::Losses;

use super::door::DIALECT;
use super::{background, prewarm};
use crate::doors::{Visit, turns};
use crate::reply::{self, Reply};
use crate::session::{self, Opened};
use crate::turn::{self, Ask};

pub(super) async fn create(visit: Visit, request: Request<Incoming>) -> Reply {
    let report = turns::wants_report(&request);
    let body = match visit.body(request).await {
        Ok(body) => body,
        Err(failure) => return visit.fail(DIALECT, &failure),
    };
    let opened = match session::open_responses(&visit, &body, None).await {
        Ok(opened) => opened,
        Err(refused) => return visit.refuse(DIALECT, &refused),
    };
    if prewarm::is_asked_for(&opened.body) {
        return match prewarm::answer(&visit, &opened).await {
            Ok(warm) => {
                let reply = reply::json(StatusCode::OK, warm.whole.json);
                reported(reply, report.then_some(warm.losses))
            }
            Err(failure) => visit.fail(DIALECT, &failure),
        };
    }
    if background::is_asked_for(&opened.body) {
        let losses = if report { lost(&visit, &opened).await } else { None };
        return match background::begin(visit.clone(), opened).await {
            Ok(reply) => reported(reply, losses),
            Err(refused) => visit.refuse(DIALECT, &refused),
        };
    }
    let ask = Ask { before: opened.before, ..Ask::new(DIALECT, opened.body, &visit.client) };
    match turns::run(&visit, &ask).await {
        Ok(outcome) => {
            let losses = report.then(|| outcome.losses.clone());
            reported(turns::shown(&visit, outcome, Some(opened.keeper)).await, losses)
        }
        Err(failure) => reply::failure(DIALECT, &failure, &visit.request_id),
    }
}

/// What is lost of a question that is asked later; `None` where it cannot be asked.
async fn lost(visit: &Visit, opened: &Opened) -> Option<Losses> {
    let ask = Ask::new(DIALECT, opened.body.clone(), &visit.client);
    let ask = Ask { before: opened.before.clone(), ..ask };
    let prepared = turn::prepare(&visit.app, &visit.current, &ask, visit.session.as_deref()).await;
    prepared.ok().map(|prepared| prepared.losses)
}

fn reported(mut reply: Reply, losses: Option<Losses>) -> Reply {
    if let Some(losses) = losses {
        turns::add_report(&mut reply, &losses);
    }
    reply
}
