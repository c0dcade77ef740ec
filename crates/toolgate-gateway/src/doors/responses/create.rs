//! `POST /v1/responses`

use http::{Request, StatusCode};
use hyper::body::Incoming;

use super::door::DIALECT;
use super::{background, prewarm};
use crate::doors::{Visit, turns};
use crate::reply::{self, Reply};
use crate::session;
use crate::turn::Ask;

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
            Ok(warm) => reply::json(StatusCode::OK, warm.whole.json),
            Err(failure) => visit.fail(DIALECT, &failure),
        };
    }
    if background::is_asked_for(&opened.body) {
        let begun = background::begin(visit.clone(), opened).await;
        return begun.unwrap_or_else(|refused| visit.refuse(DIALECT, &refused));
    }
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
