//! `/v1/models`, in the shape of whoever asks.

use http::{Request, StatusCode};
use hyper::body::Incoming;
use serde::Deserialize;
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::gemini::upstream::decode_error;
use toolgate_core::translate::Dialect;
use toolgate_core::{anthropic, chat};

use super::Visit;
use crate::reply::{self, Reply};
use crate::turn::Plan;
use crate::upstream::whole;

/// A model, as lists show it.
struct Model {
    id: String,
    name: String,
    input: u64,
    output: u64,
}

/// Lists models, or shows one, to OpenAI's and Anthropic's clients.
pub(crate) async fn models(visit: Visit, request: &Request<Incoming>) -> Reply {
    let anthropic = request.headers().contains_key("anthropic-version");
    let dialect = if anthropic { Dialect::Anthropic } else { Dialect::Chat };
    let mut ledger = visit.ledger(dialect);
    let wanted = request.uri().path().strip_prefix("/v1/models").unwrap_or("").trim_matches('/');
    let listed = match listed(&visit).await {
        Ok(listed) => listed,
        Err(failure) => {
            ledger.failed(&failure);
            return reply::failure(dialect, &failure, &visit.request_id);
        }
    };
    if wanted.is_empty() {
        ledger.answered();
        return reply::json(StatusCode::OK, list(&listed, anthropic));
    }
    let meaning = visit.current.config.models.meaning(wanted).model;
    match listed.into_iter().find(|model| model.id == wanted || model.id == meaning) {
        Some(model) => {
            ledger.answered();
            let shown = Model { id: wanted.to_owned(), ..model };
            reply::json(StatusCode::OK, one(&shown, anthropic))
        }
        None => {
            let failure =
                Failure::new(FailureKind::NotFound, format!("there is no model `{wanted}`"));
            ledger.failed(&failure);
            reply::failure(dialect, &failure, &visit.request_id)
        }
    }
}

async fn listed(visit: &Visit) -> Result<Vec<Model>, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[derive(Default)]
    struct Listed {
        name: String,
        display_name: String,
        input_token_limit: u64,
        output_token_limit: u64,
        supported_generation_methods: Option<Vec<String>>,
    }
    #[derive(Deserialize)]
    struct List {
        #[serde(default, alias = "publisherModels")]
        models: Vec<Listed>,
    }
    let path = format!("{}?pageSize=1000", visit.current.link.models_path());
    let credential = Plan::credential_of(&visit.current, &visit.client);
    let link = &visit.current.link;
    let response =
        link.forward(http::Method::GET, &path, &credential, &[], bytes::Bytes::new()).await?;
    let (head, body) = response.into_parts();
    let body = whole(body).await?;
    if !head.status.is_success() {
        return Err(decode_error(head.status.as_u16(), &body));
    }
    let list: List = serde_json::from_slice(&body).map_err(|error| {
        let message = format!("the upstream's list cannot be read: {error}");
        Failure::new(FailureKind::UpstreamProtocol, message)
    })?;
    let upstream: Vec<Model> = list
        .models
        .into_iter()
        .filter(|model| {
            model
                .supported_generation_methods
                .as_ref()
                .is_none_or(|methods| methods.iter().any(|method| method == "generateContent"))
        })
        .map(|model| {
            let id = model.name.rsplit('/').next().unwrap_or(&model.name).to_owned();
            let name = if model.display_name.is_empty() { id.clone() } else { model.display_name };
            Model { id, name, input: model.input_token_limit, output: model.output_token_limit }
        })
        .collect();
    let aliases: Vec<Model> = visit
        .current
        .config
        .models
        .names()
        .filter_map(|(alias, meaning)| {
            let model = upstream.iter().find(|model| model.id == meaning.model)?;
            let name = format!("{alias} ({})", model.name);
            Some(Model { id: alias.to_owned(), name, input: model.input, output: model.output })
        })
        .collect();
    Ok(upstream.into_iter().chain(aliases).collect())
}

fn for_anthropic(model: &Model) -> anthropic::Model {
    anthropic::Model {
        id: model.id.clone(),
        display_name: model.name.clone(),
        created: 0,
        max_input_tokens: Some(model.input).filter(|limit| *limit > 0),
        max_tokens: Some(model.output).filter(|limit| *limit > 0),
    }
}

fn for_chat(model: &Model) -> chat::ModelInfo {
    chat::ModelInfo { id: model.id.clone(), created: 0, owned_by: "google".to_owned() }
}

fn list(models: &[Model], anthropic: bool) -> Vec<u8> {
    if anthropic {
        anthropic::encode_models(&models.iter().map(for_anthropic).collect::<Vec<_>>(), false)
    } else {
        chat::encode_models(&models.iter().map(for_chat).collect::<Vec<_>>())
    }
}

fn one(model: &Model, anthropic: bool) -> Vec<u8> {
    if anthropic {
        anthropic::encode_model(&for_anthropic(model))
    } else {
        chat::encode_model(&for_chat(model))
    }
}
