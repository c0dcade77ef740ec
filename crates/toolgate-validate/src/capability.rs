//! The third stage: capabilities of the model.

use toolgate_core::canon::{Backend, Target};

use crate::error::GoogleError;
use crate::model::{Generation, Model};
use crate::request::{Data, Mode, Request, Settings};

/// Refuses settings, tools and parts that the model does not support.
pub(crate) fn check(request: &Request, model: Model, target: &Target) -> Result<(), GoogleError> {
    let refuse = |what: String| Err(GoogleError::invalid(what));
    let settings = &request.settings;
    check_thinking(settings, model, target)?;
    if settings.candidates.is_some_and(|count| count > 1) && model.generation >= Generation::G3 {
        return refuse("Multiple candidates is not enabled for this model".to_owned());
    }
    let on_developer = target.backend == Backend::Developer;
    if on_developer && settings.penalty && model.generation >= Generation::G2_5 {
        return refuse("Penalty is not enabled for this model".to_owned());
    }
    if on_developer && settings.logprobs {
        return refuse("Logprobs is not enabled for this model".to_owned());
    }
    check_tools(request, model, target)?;
    let parts = request.contents.iter().flat_map(|content| &content.parts);
    let has_media = |data: &Data| matches!(data, Data::Response { media, .. } if !media.is_empty());
    if model.generation < Generation::G3 && parts.into_iter().any(|part| has_media(&part.data)) {
        return refuse(
            "Unable to submit request because `function_response.parts` is not supported for this \
             model"
                .to_owned(),
        );
    }
    Ok(())
}

fn check_thinking(settings: &Settings, model: Model, target: &Target) -> Result<(), GoogleError> {
    let refuse = |what: String| Err(GoogleError::invalid(what));
    match (&settings.thinking_level, settings.thinking_budget) {
        (Some(_), Some(_)) => {
            refuse("You can only set only one of thinking budget and thinking level.".to_owned())
        }
        (Some(_), None) if !model.supports_thinking_level() => {
            refuse("Thinking level is not supported for this model.".to_owned())
        }
        (Some(level), None) if level == "MINIMAL" && !model.supports_minimal_level() => {
            refuse(format!(
                "Thinking level {level} is not supported for this model. Please retry with other \
                 thinking level."
            ))
        }
        (None, Some(0)) if !model.can_disable_thinking() => refuse(match target.backend {
            Backend::Developer => {
                "Budget 0 is invalid. This model only works in thinking mode.".to_owned()
            }
            Backend::Vertex => {
                "The model does not support setting thinking_budget to 0.".to_owned()
            }
        }),
        (None, Some(budget)) => match model.thinking_budget_range() {
            Some((min, max)) if budget > 0 && !(min..=max).contains(&budget) => refuse(format!(
                "The thinking budget {budget} is invalid. Please choose a value between \
                     {min} and {max}."
            )),
            _ => Ok(()),
        },
        (_, None) => Ok(()),
    }
}

fn check_tools(request: &Request, model: Model, target: &Target) -> Result<(), GoogleError> {
    let refuse = |what: &str| Err(GoogleError::invalid(what));
    let has_functions = !request.functions.is_empty();
    let has_server_tools = !request.server_tools.is_empty();
    let is_old = model.generation < Generation::G3;
    if request.calling.server_side && is_old {
        return Err(GoogleError::invalid(format!(
            "Tool call context circulation is not enabled for models/{}",
            target.model
        )));
    }
    if has_functions && has_server_tools {
        match (target.backend, is_old) {
            (Backend::Developer, true) => {
                return refuse("Tool use with function calling is unsupported");
            }
            (Backend::Vertex, true) => {
                return refuse("Multiple tools are supported only when they are all search tools.");
            }
            (Backend::Developer, false) if !request.calling.server_side => {
                return refuse(
                    "Please enable tool_config.include_server_side_tool_invocations to use \
                     Built-in tools with Function calling.",
                );
            }
            (Backend::Developer | Backend::Vertex, false) => {}
        }
    }
    if request.settings.mime.as_deref() == Some("application/json") {
        if is_old && has_functions {
            return refuse(
                "Function calling with a response mime type: 'application/json' is unsupported",
            );
        }
        if is_old && has_server_tools {
            return refuse("Tool use with a response mime type: 'application/json' is unsupported");
        }
        if has_functions && request.calling.mode == Mode::Any {
            return refuse(
                "Forced function calling (ANY mode) with a response mime type: 'application/json' \
                 is unsupported",
            );
        }
    }
    Ok(())
}
