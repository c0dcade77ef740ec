//! The three stages, one after the other: each hides the next.

use toolgate_core::gemini::{Backend, Target};

use crate::accepted::{Accepted, Counts, SignatureCheck};
use crate::capability;
use crate::error::GoogleError;
use crate::model::{Generation, Model};
use crate::parse;
use crate::request::Request;
use crate::rules::Rules;
use crate::tree::Tree;
use crate::turns;

/// What is asked of the API.
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
    /// Its name in URLs and error texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Generate => "generateContent",
            Self::Stream => "streamGenerateContent",
            Self::CountTokens => "countTokens",
        }
    }
}

/// A body that is a request message: it passed the first stage.
#[derive(Debug)]
pub struct Parsed<'a> {
    tree: Tree<'a>,
    root: &'static str,
    method: Method,
}

/// Says what Google would say to a request.
///
/// ```
/// use toolgate_core::gemini::{Backend, Target};
/// use toolgate_validate::{AnySignature, Method, request};
///
/// let target = Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer };
/// let body = br#"{"contents":[{"parts":[{"text":"Hi","colour":"red"}]}]}"#;
/// let error = request(body, &target, Method::Generate, &AnySignature).unwrap_err();
/// assert!(error.message.ends_with("Unknown name \"colour\" at 'contents[0].parts[0]': Cannot find field."));
/// ```
pub fn request(
    body: &[u8],
    target: &Target,
    method: Method,
    signatures: &dyn SignatureCheck,
) -> Result<Accepted, GoogleError> {
    parse_request(body, target.backend, method)?.check(target, signatures)
}

/// The first stage alone: the Developer API does it before it looks at the key.
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
        // The long form replaces the short one.
        if let Some(inner) = tree.get("generateContentRequest").cloned() {
            root = "CountTokensRequest.generate_content_request";
            tree = inner;
        }
    }
    Ok(Parsed { tree, root, method })
}

impl Parsed<'_> {
    /// The request, whatever the rules say to it.
    pub fn unchecked(&self) -> Request {
        Request::read(&self.tree)
    }

    /// The second and third stage.
    pub fn check(
        &self,
        target: &Target,
        signatures: &dyn SignatureCheck,
    ) -> Result<Accepted, GoogleError> {
        let Self { tree, root, method } = self;
        let Some(model) = Model::named(&target.model) else {
            // Streams are refused with the name of the plain method.
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
