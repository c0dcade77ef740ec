//! Arguments of a tool: those of the model, and the context.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Attribute, Expr, FnArg, Ident, Pat, Result, Type};

/// An argument of the function.
pub(crate) enum Argument {
    /// The context: `Context` or `&Context`.
    Context { by_reference: bool },
    /// An argument from the model.
    Model(Box<ModelArgument>),
}

/// An argument from the model.
pub(crate) struct ModelArgument {
    name: Ident,
    /// Type of the field that it is parsed into.
    owned: Type,
    by_reference: bool,
    /// Doc comments and attributes of `serde` and `schemars`, which belong to the field.
    attributes: Vec<Attribute>,
    default: Option<Default>,
}

enum Default {
    OfType,
    Value(Box<Expr>),
}

impl Argument {
    /// Parses an argument and removes the attributes of the macro from it.
    pub(crate) fn take(argument: &mut FnArg) -> Result<Option<Self>> {
        let FnArg::Typed(argument) = argument else { return Ok(None) };
        let (attributes, rest) = std::mem::take(&mut argument.attrs).into_iter().partition(is_ours);
        argument.attrs = rest;
        let (by_reference, owned) = owned(&argument.ty)?;
        if is_context(&owned) {
            return Ok(Some(Self::Context { by_reference }));
        }
        let Pat::Ident(name) = &*argument.pat else {
            let reason = "a tool's argument needs a plain name: the model passes it by name";
            return Err(syn::Error::new_spanned(&argument.pat, reason));
        };
        let (own, attributes): (Vec<Attribute>, _) =
            attributes.into_iter().partition(|it: &Attribute| it.path().is_ident("tool"));
        let mut default = None;
        for attribute in own {
            attribute.parse_nested_meta(|meta| {
                if !meta.path.is_ident("default") {
                    return Err(meta.error("an argument's option is `default` or `default = …`"));
                }
                default = Some(match meta.value() {
                    Ok(value) => Default::Value(value.parse()?),
                    Err(_) => Default::OfType,
                });
                Ok(())
            })?;
        }
        let name = name.ident.clone();
        let argument = ModelArgument { name, owned, by_reference, attributes, default };
        Ok(Some(Self::Model(Box::new(argument))))
    }

    /// Expression that passes the argument to the function.
    pub(crate) fn pass(&self) -> TokenStream {
        match self {
            Self::Context { by_reference: true } => quote! { &__context },
            Self::Context { by_reference: false } => quote! { __context.clone() },
            Self::Model(argument) => {
                let borrow = argument.by_reference.then(|| quote! { & });
                let name = &argument.name;
                quote! { #borrow #name }
            }
        }
    }

    pub(crate) fn model_argument(&self) -> Option<&ModelArgument> {
        match self {
            Self::Model(argument) => Some(argument),
            Self::Context { .. } => None,
        }
    }
}

impl ModelArgument {
    pub(crate) fn name(&self) -> &Ident {
        &self.name
    }

    /// Check of the argument's type, whose error points at the type and says what it needs. The errors
    /// of the derived code follow it.
    pub(crate) fn check(&self) -> Option<TokenStream> {
        // The type is not the one that is parsed.
        let is_custom = self.attributes.iter().any(|it| !it.path().is_ident("doc"));
        let owned = &self.owned;
        (!is_custom).then(|| {
            quote_spanned! {owned.span()=>
                const _: fn() = || {
                    fn is_argument<T: ::toolgate::ToolArgument>() {}
                    is_argument::<#owned>();
                };
            }
        })
    }

    /// Field of the argument, and the function of its default value.
    pub(crate) fn field(&self) -> (TokenStream, Option<TokenStream>) {
        let Self { name, owned, attributes, default, .. } = self;
        let (serde, function) = match default {
            None => (None, None),
            Some(Default::OfType) => (Some(quote! { #[serde(default)] }), None),
            Some(Default::Value(value)) => {
                let function = format_ident!("__default_{}", name);
                let path = function.to_string();
                (
                    Some(quote! { #[serde(default = #path)] }),
                    Some(quote! { fn #function() -> #owned { #value } }),
                )
            }
        };
        (quote! { #(#attributes)* #serde #name: #owned }, function)
    }
}

fn is_ours(attribute: &Attribute) -> bool {
    ["doc", "serde", "schemars", "tool"].iter().any(|it| attribute.path().is_ident(it))
}

fn is_context(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|it| it.ident == "Context" && it.arguments.is_empty())
}

/// Owned form of an argument's type, and whether the function borrows it.
fn owned(ty: &Type) -> Result<(bool, Type)> {
    let (by_reference, inner) = if let Type::Reference(reference) = ty {
        if reference.mutability.is_some() {
            let reason = "a tool's argument cannot be `&mut`: take it by value";
            return Err(syn::Error::new_spanned(ty, reason));
        }
        (true, &*reference.elem)
    } else {
        (false, ty)
    };
    if let Type::ImplTrait(_) = inner {
        let reason = "a tool's argument cannot be `impl Trait`: its schema comes from the type";
        return Err(syn::Error::new_spanned(ty, reason));
    }
    let owned: Type = if let Type::Slice(slice) = inner {
        let item = &slice.elem;
        syn::parse_quote! { ::std::vec::Vec<#item> }
    } else if matches!(inner, Type::Path(path) if path.path.is_ident("str")) {
        syn::parse_quote! { ::std::string::String }
    } else {
        inner.clone()
    };
    if borrows(owned.to_token_stream()) {
        let reason = "a tool's argument is parsed from JSON and must own its data \
                      (`String` instead of `&str`)";
        return Err(syn::Error::new_spanned(ty, reason));
    }
    Ok((by_reference, owned))
}

fn borrows(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Punct(punct) => punct.as_char() == '&',
        TokenTree::Group(group) => borrows(group.stream()),
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    })
}
