//! `POST /v1/chat/completions`: the OpenAI Chat Completions API.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use toolgate_core::translate::Dialect;

use super::RequestContext;
use super::answer::deliver;
use super::loss_report::{wants_report, with_report};
use super::reply::{self, Reply};
use super::source::BodySource;
use crate::turn::{self, Input};

const DIALECT: Dialect = Dialect::Chat;

pub(crate) async fn completions(context: RequestContext, request: Request<Bytes>) -> Reply {
    let report = wants_report(&request);
    let input = Input::new(Arc::new(BodySource::new(DIALECT, request.into_body())));
    let audit = context.turn.audit(DIALECT);
    match turn::run(&context.turn, &input, None, audit).await {
        Ok(outcome) => {
            let losses = report.then(|| outcome.losses.clone());
            with_report(deliver(&context, outcome, None).await, losses)
        }
        Err(failure) => reply::failure(DIALECT, &failure, &context.turn.request_id),
    }
}
