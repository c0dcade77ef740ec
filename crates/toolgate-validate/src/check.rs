//! Entry points: the three stages in order.

use toolgate_core::canon::{Backend, Target};

use crate::accepted::{Accepted, Counts, SignatureCheck};
use crate::capability;
use crate::error::GoogleError;
use crate::model::{Generation, Model};
use crate::parse;
use crate::request::Request;
use crate::rules::Rules;
use crate::tree::Tree;
use crate::turns;

/// API method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `generateContent`
    Generate,
    /// `streamGenerateContent`
    Stream,
    /// `countTokens`
    CountTokens,
}

impl Method {
    /// Name of the method in URLs and error texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Generate => "generateContent",
            Self::Stream => "streamGenerateContent",
            Self::CountTokens => "countTokens",
        }
    }
}

/// A request that passed the first stage.
#[derive(Debug)]
pub struct Parsed<'a> {
    tree: Tree<'a>,
    root: &'static str,
    method: Method,
}

/// Checks a request in all three stages.
///
/// ```
/// use toolgate_core::canon::{Backend, Target};
/// use toolgate_validate::{AnySignature, Method, check_request};
///
/// let target = Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer };
/// let body = br#"{"contents":[{"parts":[{"text":"Hi","colour":"red"}]}]}"#;
/// let error = check_request(body, &target, Method::Generate, &AnySignature).unwrap_err();
/// assert!(error.message.ends_with("Unknown name \"colour\" at 'contents[0].parts[0]': Cannot find field."));
/// ```
pub fn check_request(
    body: &[u8],
    target: &Target,
    method: Method,
    signatures: &dyn SignatureCheck,
) -> Result<Accepted, GoogleError> {
    parse_request(body, target.backend, method)?.check(target, signatures)
}

/// Checks the first stage only. The Developer API runs it before it checks the API key.
pub fn parse_request(
    body: &[u8],
    backend: Backend,
    method: Method,
) -> Result<Parsed<'_>, GoogleError> {
    let root = match method {
        Method::Generate | Method::Stream => "GenerateContentRequest",
        Method::CountTokens => "CountTokensRequest",
    };
    let mut tree = parse::parse(body, backend, root)?;
    let mut root = root;
    if method == Method::CountTokens {
        // `generateContentRequest` replaces the other fields.
        if let Some(inner) = tree.get("generateContentRequest").cloned() {
            root = "CountTokensRequest.generate_content_request";
            tree = inner;
        }
    }
    Ok(Parsed { tree, root, method })
}

impl Parsed<'_> {
    /// Returns the request without checking it further.
    pub fn unchecked(&self) -> Request {
        Request::read(&self.tree)
    }

    /// Checks the second and third stage.
    pub fn check(
        &self,
        target: &Target,
        signatures: &dyn SignatureCheck,
    ) -> Result<Accepted, GoogleError> {
        let Self { tree, root, method } = self;
        let Some(model) = Model::named(&target.model) else {
            // The error for a stream names the unary method.
            let method = match method {
                Method::Generate | Method::Stream => Method::Generate,
                Method::CountTokens => Method::CountTokens,
            };
            return Err(GoogleError::model_not_found(&target.model, "v1beta", method.name()));
        };
        let request = Request::read(tree);
        let mut counts = Counts::default();
        Rules { tree, request: &request, model, target, root }.check(&mut counts)?;
        let mut mismatch = None;
        if *method != Method::CountTokens {
            mismatch = turns::check_order(&request, model, target, &mut counts)?;
            capability::check(&request, model, target)?;
            turns::check_end(&request.contents, model)?;
            turns::check_signatures(&request, model, target, signatures, &mut counts)?;
        }
        debug_assert!(mismatch.is_none() || model.generation >= Generation::G3_5);
        Ok(Accepted { request, counts, mismatch })
    }
}
