//! Options of `#[tool(…)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser as _;
use syn::{LitStr, Result};

/// The options of a tool.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) inline: bool,
    timeout_ms: Option<u64>,
    sequential: bool,
    deterministic: bool,
}

const KNOWN_OPTIONS: &str = "a tool's options are `name = \"…\"`, `description = \"…\"`, \
                     `timeout = \"5s\"`, `sequential`, `deterministic` and `inline`";

impl Options {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| options.take(&meta));
        parser.parse2(tokens)?;
        Ok(options)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let is = |name: &str| meta.path.is_ident(name);
        if is("name") {
            let name: LitStr = meta.value()?.parse()?;
            if name.value().trim().is_empty() {
                return Err(syn::Error::new(name.span(), "a tool needs a name"));
            }
            self.name = Some(name.value());
        } else if is("description") {
            let text: LitStr = meta.value()?.parse()?;
            self.description = Some(text.value().trim().to_owned());
        } else if is("timeout") {
            let text: LitStr = meta.value()?.parse()?;
            let parsed = milliseconds(&text.value());
            let reason = "a timeout is a number and `ms`, `s` or `m`: \"500ms\", \"5s\", \"2m\"";
            self.timeout_ms = Some(parsed.ok_or_else(|| syn::Error::new(text.span(), reason))?);
        } else if is("sequential") {
            self.sequential = true;
        } else if is("deterministic") {
            self.deterministic = true;
        } else if is("inline") {
            self.inline = true;
        } else {
            return Err(meta.error(KNOWN_OPTIONS));
        }
        Ok(())
    }

    /// Method calls on the `Tool` for these options.
    pub(crate) fn setters(&self) -> TokenStream {
        let timeout =
            self.timeout_ms.map(|ms| quote! { .timeout(::core::time::Duration::from_millis(#ms)) });
        let sequential = self.sequential.then(|| quote! { .sequential() });
        let deterministic = self.deterministic.then(|| quote! { .deterministic() });
        quote! { #timeout #sequential #deterministic }
    }
}

fn milliseconds(text: &str) -> Option<u64> {
    let split = text.find(|it: char| !it.is_ascii_digit())?;
    let (number, unit) = text.split_at(split);
    let unit = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|ms| *ms > 0)
}
