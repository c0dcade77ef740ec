//! `/v1/models`, in the client's dialect.

use bytes::Bytes;
use http::{Request, StatusCode};
use serde::Deserialize;
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::translate::Dialect;
use toolgate_core::{anthropic, chat};

use super::RequestContext;
use super::responses::parameter;
use crate::api::reply::{self, Reply};
use crate::turn::{Attempts, again, open, read_checked};

/// A model, as lists show it.
struct Model {
    id: String,
    name: String,
    input: u64,
    output: u64,
}

/// Lists models, or shows one, to OpenAI's and Anthropic's clients.
pub(crate) async fn models(
    context: RequestContext,
    dialect: Dialect,
    request: &Request<Bytes>,
) -> Reply {
    let mut audit = context.turn.audit(dialect);
    let wanted = request.uri().path().strip_prefix("/v1/models").unwrap_or("").trim_matches('/');
    let query = request.uri().query().unwrap_or("");
    match shown(&context, dialect, wanted, query).await {
        Ok(body) => {
            audit.answered();
            reply::json(StatusCode::OK, body)
        }
        Err(failure) => {
            audit.failed(&failure);
            reply::failure(dialect, &failure, &context.turn.request_id)
        }
    }
}

async fn shown(
    context: &RequestContext,
    dialect: Dialect,
    wanted: &str,
    query: &str,
) -> Result<Vec<u8>, Failure> {
    let is_anthropic = dialect == Dialect::Anthropic;
    if wanted.is_empty() {
        let listed = listed(context).await?;
        if !is_anthropic {
            return Ok(chat::encode_models(&listed.iter().map(for_chat).collect::<Vec<_>>()));
        }
        let (models, has_more) = Page::new(query)?.of(&listed)?;
        let models: Vec<_> = models.iter().map(for_anthropic).collect();
        return Ok(anthropic::encode_models(&models, has_more));
    }
    let meaning = context.turn.current.config.models.meaning(wanted).model;
    let mut listed = listed(context).await?;
    // A name that is listed is shown as it is listed.
    let place = |id: &str| listed.iter().position(|model| model.id == id);
    let at = place(wanted).or_else(|| place(&meaning)).ok_or_else(|| {
        Failure::new(FailureKind::NotFound, format!("there is no model `{wanted}`"))
    })?;
    let model = listed.swap_remove(at);
    let shown = Model { id: wanted.to_owned(), ..model };
    Ok(if is_anthropic {
        anthropic::encode_model(&for_anthropic(&shown))
    } else {
        chat::encode_model(&for_chat(&shown))
    })
}

/// Which of the models Anthropic's clients want to see. OpenAI's always get all.
struct Page<'q> {
    limit: usize,
    after: Option<&'q str>,
    before: Option<&'q str>,
}

impl<'q> Page<'q> {
    fn new(query: &'q str) -> Result<Self, Failure> {
        let limit = match parameter(query, "limit").map(str::parse) {
            None => 20,
            Some(Ok(limit @ 1..=1000)) => limit,
            Some(_) => return Err(wrong("limit: must be 1 to 1000".to_owned())),
        };
        let (after, before) = (parameter(query, "after_id"), parameter(query, "before_id"));
        if after.is_some() && before.is_some() {
            return Err(wrong("before_id: cannot be used together with after_id".to_owned()));
        }
        Ok(Self { limit, after, before })
    }

    /// The models on it, and whether more follow in the direction that is asked for.
    fn of<'m>(&self, models: &'m [Model]) -> Result<(&'m [Model], bool), Failure> {
        let place = |name: &str, id: &str| {
            let at = models.iter().position(|model| model.id == id);
            at.ok_or_else(|| wrong(format!("{name}: there is no model `{id}`")))
        };
        if let Some(id) = self.before {
            let end = place("before_id", id)?;
            let start = end.saturating_sub(self.limit);
            return Ok((&models[start..end], start > 0));
        }
        let start = match self.after {
            Some(id) => place("after_id", id)? + 1,
            None => 0,
        };
        let end = (start + self.limit).min(models.len());
        Ok((&models[start..end], end < models.len()))
    }
}

fn wrong(message: String) -> Failure {
    Failure::new(FailureKind::InvalidRequest, message)
}

/// The upstream's models, and the names that mean one of them.
async fn listed(context: &RequestContext) -> Result<Vec<Model>, Failure> {
    let upstream = upstream(context).await?;
    let aliases: Vec<Model> = context
        .turn
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

/// No list is longer than so many pages of a thousand.
const PAGES: usize = 20;

async fn upstream(context: &RequestContext) -> Result<Vec<Model>, Failure> {
    let mut all = Vec::new();
    let mut token: Option<String> = None;
    for _ in 0..PAGES {
        let mut attempts =
            Attempts::listing(&context.turn, context.turn.current.link.page_path(token.as_deref()));
        let patience = attempts.idle();
        let body = loop {
            let response =
                open(&mut attempts, patience).await.map_err(|refusal| refusal.failure)?;
            match read_checked(response.into_body(), patience).await {
                Ok(body) => break body,
                Err(failure) => again(&mut attempts, &failure).await?,
            }
        };
        let list: List = serde_json::from_slice(&body).map_err(|error| {
            let message = format!("the upstream's list cannot be read: {error}");
            Failure::new(FailureKind::UpstreamProtocol, message)
        })?;
        all.extend(list.models.into_iter().filter(Listed::answers).map(Model::from));
        token = list.next_page_token.filter(|token| !token.is_empty());
        if token.is_none() {
            break;
        }
    }
    Ok(all)
}

/// A page of Gemini's list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List {
    #[serde(default, alias = "publisherModels")]
    models: Vec<Listed>,
    next_page_token: Option<String>,
}

/// A model in it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Listed {
    name: String,
    display_name: String,
    input_token_limit: u64,
    output_token_limit: u64,
    supported_generation_methods: Option<Vec<String>>,
}

impl Listed {
    /// Whether it is one that can be talked to.
    fn answers(&self) -> bool {
        let methods = self.supported_generation_methods.as_ref();
        methods.is_none_or(|methods| methods.iter().any(|method| method == "generateContent"))
    }
}

impl From<Listed> for Model {
    fn from(model: Listed) -> Self {
        let id = model.name.rsplit('/').next().unwrap_or(&model.name).to_owned();
        let name = if model.display_name.is_empty() { id.clone() } else { model.display_name };
        Self { id, name, input: model.input_token_limit, output: model.output_token_limit }
    }
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
