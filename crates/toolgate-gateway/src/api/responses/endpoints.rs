//! Endpoints of the Responses API.

use bytes::Bytes;
use http::Request;
use toolgate_core::canon::{Failure, FailureKind, percent_decoded};
use toolgate_core::translate::Dialect;

use super::{compact, conversations, create, stored, websocket};
use crate::api::RequestContext;
use crate::api::reply::{self, Reply};
use crate::sessions::SessionError;

pub(super) const DIALECT: Dialect = Dialect::Responses;

/// An endpoint of the Responses API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Create,
    WebSocket,
    Compact,
    Retrieve,
    Delete,
    Cancel,
    InputItems,
    CreateConversation,
    RetrieveConversation,
    UpdateConversation,
    DeleteConversation,
    ListItems,
    AddItems,
    RetrieveItem,
    DeleteItem,
}

/// Serves a request. `parameters` are those of the path, in order.
pub(crate) async fn responses(
    endpoint: Endpoint,
    context: RequestContext,
    request: Request<Bytes>,
    parameters: Vec<String>,
) -> Reply {
    let id = parameters.first().map_or("", String::as_str);
    let result = match endpoint {
        Endpoint::Create => return create::create(context, request).await,
        Endpoint::WebSocket => return websocket::open(context, request),
        Endpoint::Compact => compact::compact(&context, request).await,
        Endpoint::Delete => stored::delete(&context, id).await,
        Endpoint::Cancel => stored::cancel(&context, id).await,
        Endpoint::Retrieve
        | Endpoint::InputItems
        | Endpoint::CreateConversation
        | Endpoint::RetrieveConversation
        | Endpoint::UpdateConversation
        | Endpoint::DeleteConversation
        | Endpoint::ListItems
        | Endpoint::AddItems
        | Endpoint::RetrieveItem
        | Endpoint::DeleteItem => {
            let work = |context: RequestContext| async move {
                stored_state(endpoint, &context, request, &parameters).await
            };
            context.compute(0, work).await.unwrap_or_else(|failure| Err(failure.into()))
        }
    };
    match result {
        Ok(reply) => {
            context.turn.audit(DIALECT).answered();
            reply
        }
        Err(error) => context.refuse(DIALECT, &error),
    }
}

/// Endpoints that use the store only. The size of the computation is known when the store has answered.
async fn stored_state(
    endpoint: Endpoint,
    context: &RequestContext,
    request: Request<Bytes>,
    parameters: &[String],
) -> Result<Reply, SessionError> {
    let query = request.uri().query().unwrap_or("").to_owned();
    let parameter = |index: usize| parameters.get(index).map_or("", String::as_str);
    let (id, item) = (parameter(0), parameter(1));
    match endpoint {
        Endpoint::Retrieve => stored::retrieve(context, id, &query).await,
        Endpoint::InputItems => stored::input_items(context, id, &query).await,
        Endpoint::CreateConversation => conversations::create(context, request).await,
        Endpoint::RetrieveConversation => conversations::retrieve(context, id).await,
        Endpoint::UpdateConversation => conversations::update(context, id, request).await,
        Endpoint::DeleteConversation => conversations::delete(context, id).await,
        Endpoint::ListItems => conversations::items(context, id, &query).await,
        Endpoint::AddItems => conversations::add(context, id, request).await,
        Endpoint::RetrieveItem => conversations::item(context, id, item).await,
        Endpoint::DeleteItem => conversations::remove(context, id, item).await,
        Endpoint::Create
        | Endpoint::WebSocket
        | Endpoint::Compact
        | Endpoint::Delete
        | Endpoint::Cancel => Err(wrong("not an endpoint of stored state")),
    }
}

/// Percent-decodes a name.
pub(super) fn decoded(name: &str) -> String {
    String::from_utf8(percent_decoded(name)).unwrap_or_else(|_| name.to_owned())
}

/// A JSON reply.
pub(super) fn json(body: impl Into<Bytes>) -> Reply {
    reply::json(http::StatusCode::OK, body)
}

/// An invalid request.
pub(super) fn wrong(message: impl Into<String>) -> SessionError {
    Failure::new(FailureKind::InvalidRequest, message).into()
}
