//! How hard to think, in the words of each model.

use crate::canon::{Effort, Thinking, ThinkingMode};
use crate::upstream::generate_content::ThinkingControl;

/// Content of `thinkingConfig`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThinkingConfig {
    pub(super) budget: Option<i64>,
    pub(super) level: Option<&'static str>,
    pub(super) include_thoughts: bool,
    /// Difference from the client's setting.
    pub(super) changed: Option<&'static str>,
}

/// Google's own reading of an effort, in tokens.
const LOW: i64 = 1_024;
const MEDIUM: i64 = 8_192;
const HIGH: i64 = 24_576;

/// A greater budget is refused by every model.
const MOST: i64 = 65_535;

const MINIMAL_LEVEL: &str = "MINIMAL";
const LOW_LEVEL: &str = "LOW";

/// Says it as the model wants to hear it: a budget or a level, never both; nothing where the
/// client said nothing. `own_budget`: the budget is a Gemini client's, who knows what models take.
pub(super) fn thinking_config(
    thinking: &Thinking,
    control: ThinkingControl,
    own_budget: bool,
) -> ThinkingConfig {
    let off = thinking.mode == ThinkingMode::Off
        || thinking.effort == Some(Effort::None)
        || thinking.budget == Some(0);
    let include_thoughts = thinking.show == Some(true);
    let mut config = ThinkingConfig { include_thoughts, ..ThinkingConfig::default() };
    match control {
        ThinkingControl::Unavailable => {
            let asked = !off && (thinking.effort.is_some() || thinking.budget.is_some());
            config.include_thoughts = false;
            if asked || thinking.mode == ThinkingMode::On {
                config.changed = Some("this model does not think");
            }
        }
        ThinkingControl::Budget { min, max, off: can_be_off, off_by_default } => {
            config.budget = match (thinking.budget, thinking.effort, thinking.mode) {
                _ if off && can_be_off => Some(0),
                _ if off => {
                    config.changed = Some("this model always thinks; it was told to think least");
                    Some(min)
                }
                (Some(-1), _, _) => Some(-1),
                (Some(budget), _, _) => {
                    let within = budget.clamp(min, max);
                    if within != budget {
                        config.changed = Some("the budget was moved into the range of this model");
                    }
                    Some(within)
                }
                (None, Some(effort), _) => Some(budget_of(effort, max).clamp(min, max)),
                (None, None, ThinkingMode::On) => Some(-1),
                (None, None, ThinkingMode::Unset | ThinkingMode::Off) => None,
            };
            // Refused where nothing is thought.
            let silent = config.budget.map_or(off_by_default, |budget| budget == 0);
            config.include_thoughts &= !silent;
        }
        ThinkingControl::Level { minimal } => {
            let least = if minimal { MINIMAL_LEVEL } else { LOW_LEVEL };
            let level = match (thinking.effort, thinking.budget) {
                _ if off => {
                    config.changed = Some("this model always thinks; it was told to think least");
                    Some(least)
                }
                (Some(effort), _) => level_of(effort),
                (None, Some(budget)) if own_budget && budget > 0 => {
                    config.budget = Some(budget.min(MOST));
                    if budget > MOST {
                        config.changed = Some("the budget was moved into the range of this model");
                    }
                    None
                }
                (None, Some(budget)) => level_of_budget(budget),
                (None, None) => None,
            };
            config.level = level.map(|level| {
                if level == MINIMAL_LEVEL && !minimal {
                    config.changed = Some("this model cannot think less than `LOW`");
                    return LOW_LEVEL;
                }
                level
            });
        }
    }
    config
}

fn budget_of(effort: Effort, max: i64) -> i64 {
    match effort {
        Effort::None => 0,
        Effort::Minimal | Effort::Low => LOW,
        Effort::Medium => MEDIUM,
        Effort::High => HIGH,
        Effort::XHigh | Effort::Max => max,
    }
}

fn level_of(effort: Effort) -> Option<&'static str> {
    match effort {
        Effort::None | Effort::Minimal => Some(MINIMAL_LEVEL),
        Effort::Low => Some(LOW_LEVEL),
        Effort::Medium => Some("MEDIUM"),
        Effort::High | Effort::XHigh | Effort::Max => Some("HIGH"),
    }
}

fn level_of_budget(budget: i64) -> Option<&'static str> {
    match budget {
        ..=0 => None,
        _ if budget <= LOW => Some(LOW_LEVEL),
        _ if budget <= MEDIUM => Some("MEDIUM"),
        _ => Some("HIGH"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::{Backend, Target};
    use crate::upstream::generate_content::Profile;

    #[track_caller]
    fn check(model: &str, thinking: Thinking, want: &str) {
        let target = Target { model: model.into(), backend: Backend::Developer };
        let config = thinking_config(&thinking, Profile::of(&target).thinking, false);
        let got = format!(
            "{}{}{}{}",
            config.budget.map_or_else(String::new, |budget| budget.to_string()),
            config.level.unwrap_or_default(),
            if config.include_thoughts { "+" } else { "" },
            if config.changed.is_some() { "!" } else { "" },
        );
        assert_eq!(got, want, "{model} {thinking:?}");
    }

    #[test]
    fn thinking_is_said_as_the_model_wants() {
        let unset = Thinking::default();
        let mode = |mode| Thinking { mode, ..unset };
        let effort = |effort| Thinking { effort: Some(effort), ..unset };
        let budget = |budget| Thinking { budget: Some(budget), ..unset };
        let show = Thinking { show: Some(true), ..unset };
        let rows = [
            // requested                2.5-flash  -lite    -pro     3.1-pro  3.6-flash 3.8-flash 2.0
            (unset, ["", "", "", "", "", "", ""]),
            (show, ["+", "", "+", "+", "+", "+", ""]),
            (mode(ThinkingMode::On), ["-1", "-1", "-1", "", "", "", "!"]),
            (mode(ThinkingMode::Off), ["0", "0", "128!", "LOW!", "MINIMAL!", "LOW!", ""]),
            (effort(Effort::None), ["0", "0", "128!", "LOW!", "MINIMAL!", "LOW!", ""]),
            (effort(Effort::Minimal), ["1024", "1024", "1024", "LOW!", "MINIMAL", "LOW!", "!"]),
            (effort(Effort::Low), ["1024", "1024", "1024", "LOW", "LOW", "LOW", "!"]),
            (effort(Effort::Medium), ["8192", "8192", "8192", "MEDIUM", "MEDIUM", "MEDIUM", "!"]),
            (effort(Effort::High), ["24576", "24576", "24576", "HIGH", "HIGH", "HIGH", "!"]),
            (effort(Effort::Max), ["24576", "24576", "32768", "HIGH", "HIGH", "HIGH", "!"]),
            (budget(-1), ["-1", "-1", "-1", "", "", "", "!"]),
            (budget(0), ["0", "0", "128!", "LOW!", "MINIMAL!", "LOW!", ""]),
            (budget(100), ["100", "512!", "128!", "LOW", "LOW", "LOW", "!"]),
            (budget(4_096), ["4096", "4096", "4096", "MEDIUM", "MEDIUM", "MEDIUM", "!"]),
            (budget(31_999), ["24576!", "24576!", "31999", "HIGH", "HIGH", "HIGH", "!"]),
        ];
        let models = [
            "gemini-2.5-flash",
            "gemini-2.5-flash-lite",
            "gemini-2.5-pro",
            "gemini-3.1-pro-preview",
            "gemini-3.6-flash",
            "gemini-3.8-flash",
            "gemini-2.0-flash",
        ];
        for (thinking, wants) in rows {
            for (model, want) in models.iter().zip(wants) {
                check(model, thinking, want);
            }
        }
    }

    #[test]
    fn level_and_budget_are_never_said_together() {
        let both = Thinking {
            mode: ThinkingMode::On,
            effort: Some(Effort::Low),
            budget: Some(20_000),
            show: Some(true),
        };
        check("gemini-2.5-flash", both, "20000+");
        check("gemini-3-flash-preview", both, "LOW+");
        let silent = Thinking { mode: ThinkingMode::Off, show: Some(true), ..both };
        check("gemini-2.5-flash", silent, "0");
    }
}
