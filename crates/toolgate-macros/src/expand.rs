//! Expansion of `#[tool]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{FnArg, ItemFn, Receiver, ReceiverKind, Result, ReturnType, Safety, Signature};

use crate::argument::{Argument, ModelArgument};
use crate::docs;
use crate::options::Options;

/// Expands to the function and its tool, or to the function and compile errors.
pub(crate) fn tool(options: TokenStream, item: &TokenStream) -> TokenStream {
    let Ok(mut function) = syn::parse2::<ItemFn>(item.clone()) else {
        let reason = "`#[tool]` goes on a function or a method with a body";
        let error = syn::Error::new_spanned(item, reason).into_compile_error();
        return quote! { #error #item };
    };
    // All arguments, even after an error: a doc comment left on an argument is another error.
    let mut faults: Option<syn::Error> = None;
    let mut arguments = Vec::new();
    for input in &mut function.sig.inputs {
        match Argument::take(input) {
            Ok(argument) => arguments.extend(argument),
            Err(error) => combine(&mut faults, error),
        }
    }
    if let Err(error) = check_signature(&function.sig) {
        combine(&mut faults, error);
    }
    let options = Options::parse(options).unwrap_or_else(|error| {
        combine(&mut faults, error);
        Options::default()
    });
    let description = describe(&function, &options).unwrap_or_else(|error| {
        combine(&mut faults, error);
        String::new()
    });
    if let Some(error) = faults {
        let error = error.into_compile_error();
        return quote! { #error #function };
    }
    let expansion =
        Expansion { function: &function, arguments: &arguments, options: &options, description };
    let item = match function.sig.receiver() {
        Some(_) => expansion.method(),
        None => expansion.function(),
    };
    quote! { #function #item }
}

fn combine(faults: &mut Option<syn::Error>, error: syn::Error) {
    match faults {
        Some(fault) => fault.combine(error),
        None => *faults = Some(error),
    }
}

/// Description of the tool.
fn describe(function: &ItemFn, options: &Options) -> Result<String> {
    let text = options.description.clone().unwrap_or_else(|| docs::text(&function.attrs));
    if text.is_empty() {
        let reason = "a tool needs a doc comment: it is the description for the model";
        return Err(syn::Error::new(function.sig.ident.span(), reason));
    }
    Ok(text)
}

fn check_signature(signature: &Signature) -> Result<()> {
    let refuse = |span, reason: &str| Err(syn::Error::new(span, reason));
    let generics = &signature.generics;
    if !generics.params.is_empty() || generics.where_clause.is_some() {
        let reason = "a tool cannot be generic: its schema comes from its argument types";
        return refuse(generics.span(), reason);
    }
    if let Safety::Unsafe(word) = &signature.safety {
        return refuse(word.span(), "a tool cannot be unsafe: a model calls it");
    }
    if let Some(variadic) = &signature.variadic {
        return refuse(variadic.span(), "a tool's arguments need names");
    }
    match signature.receiver() {
        Some(receiver) => check_receiver(receiver),
        None => Ok(()),
    }
}

fn check_receiver(receiver: &Receiver) -> Result<()> {
    let is_shared = if let ReceiverKind::Typed(_, ty) = &receiver.kind {
        quote! { #ty }.to_string().replace(' ', "").ends_with("Arc<Self>")
    } else {
        matches!(&receiver.kind, ReceiverKind::Reference(_, _, None))
    };
    if is_shared {
        return Ok(());
    }
    let reason = "a tool may be called concurrently: take `&self`, and put mutable state \
                  behind a lock";
    Err(syn::Error::new_spanned(receiver, reason))
}

/// Parts of the generated code.
struct Expansion<'a> {
    function: &'a ItemFn,
    arguments: &'a [Argument],
    options: &'a Options,
    description: String,
}

impl Expansion<'_> {
    /// Tool of a function: a type of the same name. Braced structs and functions do not collide.
    fn function(&self) -> TokenStream {
        let ItemFn { vis, sig, .. } = self.function;
        let name = &sig.ident;
        let about = format!("Tool of the function `{name}`.");
        let (types, build) = (self.arguments_type(), self.build(&quote! {}, &quote! { #name }));
        quote! {
            #[doc = #about]
            #[allow(non_camel_case_types)]
            #[derive(Clone, Copy, Debug)]
            #vis struct #name {}

            const _: () = {
                #types
                impl ::toolgate::FunctionTool for #name {
                    fn tool() -> ::toolgate::Tool {
                        #build
                    }
                }
            };
        }
    }

    /// Tool of a method: a companion method that holds the object.
    fn method(&self) -> TokenStream {
        let ItemFn { vis, sig, .. } = self.function;
        let name = &sig.ident;
        let maker = format_ident!("{}_tool", name);
        let about = format!("Tool of the method `{name}` of this object.");
        let keep = quote! { let __object = ::std::sync::Arc::clone(self); };
        let object = quote! { let __object = ::std::sync::Arc::clone(&__object); };
        let shared = matches!(
            sig.inputs.first(),
            Some(FnArg::Receiver(receiver)) if matches!(receiver.kind, ReceiverKind::Typed(..))
        );
        let target = if shared {
            quote! { __object }
        } else {
            quote! { (*__object) }
        };
        let types = self.arguments_type();
        let build = self.build(&object, &quote! { #target.#name });
        quote! {
            #[doc = #about]
            #[must_use]
            #vis fn #maker(self: &::std::sync::Arc<Self>) -> ::toolgate::Tool {
                #types
                #keep
                #build
            }
        }
    }

    /// Type that the model's arguments are parsed into.
    fn arguments_type(&self) -> TokenStream {
        let arguments = self.arguments.iter().filter_map(Argument::model_argument);
        let checks: Vec<_> = arguments.clone().map(ModelArgument::check).collect();
        let (fields, defaults): (Vec<_>, Vec<_>) = arguments.map(|it| it.field()).unzip();
        quote! {
            #(#checks)*
            #[derive(
                ::toolgate::__private::serde::Deserialize,
                ::toolgate::schemars::JsonSchema,
            )]
            #[serde(crate = "::toolgate::__private::serde")]
            #[schemars(crate = "::toolgate::schemars")]
            struct __Arguments { #(#fields),* }
            #(#defaults)*
        }
    }

    fn build(&self, before: &TokenStream, callee: &TokenStream) -> TokenStream {
        let Self { function, arguments, options, description } = self;
        let name = options.name.clone().unwrap_or_else(|| plain(&function.sig.ident.to_string()));
        let setters = options.setters();
        let names = arguments.iter().filter_map(Argument::model_argument).map(|it| it.name());
        let passed = arguments.iter().map(Argument::pass);
        let is_async = function.sig.asyncness.is_some();
        let wait = is_async.then(|| quote! { .await });
        // Errors about the return type point at it.
        let span = match &function.sig.output {
            ReturnType::Type(_, ty) => ty.span(),
            ReturnType::Default => function.sig.ident.span(),
        };
        let convert = quote_spanned! {span=>
            (&__value).__toolgate_returns().convert(__value.0)
        };
        let body = quote! {
            let __Arguments { #(#names),* } = __arguments;
            let __value = ::toolgate::__private::Returned(#callee(#(#passed),*) #wait);
            #[allow(unused_imports)]
            use ::toolgate::__private::{Fallible as _, Infallible as _};
            #convert
        };
        let future = if is_async || options.inline {
            quote! { async move { #body } }
        } else {
            quote! { ::toolgate::__private::blocking(move || { #body }) }
        };
        quote! {
            ::toolgate::__private::tool::<__Arguments, _, _>(
                #name,
                #description,
                move |__arguments: __Arguments, __context: ::toolgate::Context| {
                    #[allow(unused_variables)]
                    let __context = __context;
                    #before
                    #future
                },
            )
            #setters
        }
    }
}

/// Name without `r#`.
fn plain(name: &str) -> String {
    name.strip_prefix("r#").unwrap_or(name).to_owned()
}
